"""What operators take and give, for checks before an evaluation; evaluation itself is `arithmetic`, `comparisons` and `selection`.

As cel-go declares them (`common/stdlib`, `cel/library.go`), with Kubernetes' comparisons across types of numbers. Left out is
what `dyn` covers anyway.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from . import types

_NUMBERS: Final = ("int", "uint", "double")
_ORDERED: Final = ("bool", *_NUMBERS, "string", "bytes", "timestamp", "duration")
_RELATIONS: Final = (
    *(f"{kind}, {kind}, bool" for kind in _ORDERED),
    *(f"{one}, {other}, bool" for one in _NUMBERS for other in _NUMBERS if one != other),
)
_SAME: Final = tuple(f"{kind}, {kind}, {kind}" for kind in _NUMBERS)
_HELD: Final = (
    "optional_type(list(A)), int, optional_type(A)",
    "optional_type(map(K, A)), K, optional_type(A)",
)
_DECLARED: Final[dict[str, tuple[str, ...]]] = {
    "!_": ("bool, bool",),
    "-_": ("int, int", "double, double"),
    "_==_": ("A, A, bool",),
    "_!=_": ("A, A, bool",),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _RELATIONS),
    "_+_": (
        *_SAME,
        "string, string, string",
        "bytes, bytes, bytes",
        "list(A), list(A), list(A)",
        "duration, duration, duration",
        "duration, timestamp, timestamp",
        "timestamp, duration, timestamp",
    ),
    "_-_": (
        *_SAME,
        "duration, duration, duration",
        "timestamp, duration, timestamp",
        "timestamp, timestamp, duration",
    ),
    "_*_": _SAME,
    "_/_": _SAME,
    "_%_": _SAME[:2],
    "@in": ("A, list(A), bool", "K, map(K, A), bool"),
    "_?_:_": ("bool, A, A, A",),
    "_[_]": ("list(A), int, A", "map(K, A), K, A", *_HELD),
    "_[?_]": ("list(A), int, optional_type(A)", "map(K, A), K, optional_type(A)", *_HELD),
}


@cache
def declared(name: str) -> tuple[tuple[types.Type, ...], ...]:
    """Return the overloads of an operator: what each takes, and then what it gives."""
    return tuple(map(_read, _DECLARED[name]))


def _read(text: str) -> tuple[types.Type, ...]:
    found: list[types.Type] = []
    rest = text
    while rest:
        kind, rest = types.read(rest.lstrip(", "), str)
        found.append(kind)
    return tuple(found)
