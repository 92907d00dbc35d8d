"""The shape of compiled expressions, for annotations: frames and closures over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Frame = list[Any]
"""Bindings at 0, the CelEnv at 1, local names from 2 on."""

Closure = Callable[[Frame], Any]
"""A compiled node."""
