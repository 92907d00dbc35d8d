"""`python -m kubectl_kpolicy`: the plugin without its console script."""

from __future__ import annotations

from .entry import program

program()
