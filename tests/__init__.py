"""Tests of everything in this tree; the sandbox, which is a distribution of its own, is imported from its folder."""

import sys
from pathlib import Path

_SANDBOX = str(Path(__file__).parents[1] / "controllers" / "sandbox")
if _SANDBOX not in sys.path:
    sys.path.append(_SANDBOX)
