"""`python -m kubectl_kpolicy`: the plugin without its console script."""

from __future__ import annotations

import sys

from .entry import main

sys.exit(main())
