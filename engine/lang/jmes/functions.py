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
    from . import arithmetic, builtins, data, encoding, formats, matching, ordering, texts, times

    modules = (builtins, ordering, arithmetic, texts, matching, encoding, times, data, formats)
    return {
        name: function for module in modules for name, function in module.table.functions.items()
    }


def signatures() -> list[str]:
    """Return the line of every function, sorted by name: `truncate(string, number) string`."""
    return [table()[name].signature for name in sorted(table())]


def describe(name: str) -> tuple[str, str] | None:
    """Return signature and note of a function, or None where no function has the name."""
    function = table().get(name)
    return None if function is None else (function.signature, function.note)
