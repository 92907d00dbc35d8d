"""All functions of the language in one table: the standard's and the 51 of section 3.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import (
    arithmetic,
    builtins,
    certificates,
    data,
    encoding,
    images,
    matching,
    ordering,
    semvers,
    texts,
    times,
    urls,
)

if TYPE_CHECKING:
    from .signature import Function

_MODULES: Final = (
    builtins,
    ordering,
    arithmetic,
    texts,
    matching,
    encoding,
    times,
    data,
    images,
    urls,
    semvers,
    certificates,
)

TABLE: Final[dict[str, Function]] = {
    name: function for module in _MODULES for name, function in module.table.functions.items()
}


def signatures() -> list[str]:
    """Return the line of every function, sorted by name: `truncate(string, number) string`."""
    return [TABLE[name].signature for name in sorted(TABLE)]


def describe(name: str) -> tuple[str, str] | None:
    """Return signature and note of a function, or None where no function has the name."""
    function = TABLE.get(name)
    return None if function is None else (function.signature, function.note)
