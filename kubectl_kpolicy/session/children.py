"""Processes of our own that outlive a command: how they find the packages that this process was started with.

For the sandbox and the engine beside it. A release unpacked by krew is no environment of Python's; its executables know where
packages lie, and `python -m` would not.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment for a process that imports what this one can import."""
    folders = [path for path in sys.path if path and Path(path).is_dir()]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **more}
