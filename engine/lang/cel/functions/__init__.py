"""The function libraries, and the tables that the compiler looks names up in.

Every library is a module of declarations; which of them an expression may use is a set of their names.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .registry import Library, Overload

_MODULES: Final = {
    "standard": ("standard", "times"),
    "strings": ("strings",),
    "lists": ("lists",),
    "math": ("maths",),
    "sets": ("sets",),
    "encoders": ("encoders",),
    "regex": ("regexes",),
    "quantity": ("quantities",),
    "url": ("urls",),
    "ip": ("addresses",),
    "format": ("formats",),
    "semver": ("semvers",),
    "authorizer": ("authorizing",),
    "kyverno": ("cluster", "imagenames", "encodings", "instants", "responses"),
}
NAMES: Final = tuple(_MODULES)
"""All libraries, in the order in which they are shown."""


@lru_cache(maxsize=8)
def table(libraries: frozenset[str]) -> Mapping[tuple[str, bool], tuple[Overload, ...]]:
    """Return the overloads of some libraries by name and whether it is a method. Raises KeyError for unknown names."""
    found: dict[tuple[str, bool], tuple[Overload, ...]] = {}
    for name in sorted(libraries, key=NAMES.index):
        for overload in _overloads(name):
            key = (overload.name, overload.is_method)
            found[key] = (*found.get(key, ()), overload)
    return found


def _overloads(name: str) -> list[Overload]:
    return [overload for module in _MODULES[name] for overload in _library(module).overloads]


def _library(module: str) -> Library:
    library: Library = import_module(f".{module}", __name__).LIBRARY
    return library


def signatures(libraries: frozenset[str] | None = None) -> list[tuple[str, str]]:
    """Return library and signature of every function, for `cel function`."""
    names = NAMES if libraries is None else sorted(libraries, key=NAMES.index)
    return [(name, overload.signature) for name in names for overload in _overloads(name)]
