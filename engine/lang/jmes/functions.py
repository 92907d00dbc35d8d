"""All functions of the language in one table: the standard's and the 51 of Kyverno (rows F-01 to F-09)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .signature import Function


@cache
def table() -> Mapping[str, Function]:
    """Return all functions by name; their code is loaded with the first expression that calls one."""
    from . import arithmetic, builtins, data, encoding, formats, ordering, texts, times

    modules = (builtins, ordering, arithmetic, texts, encoding, times, data, formats)
    return {
        name: function for module in modules for name, function in module.table.functions.items()
    }
