"""Types of expressions as a checker knows them before anything is evaluated: what may stand where, and what fits both of two.

A type is a name (`int`, `dyn`, `Object.spec`) or a tuple of a name and its parts: `("list", "int")`. A `Free` one is found
while checking. `UNKNOWN` is what nobody here knows: it fits everything and, unlike `dyn`, is never complained of.
Rules as in cel-go (`checker/types.go`), so that what Kubernetes compiles compiles here, and what it refuses is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias


class Free:
    """A type that is not settled yet; told apart by identity."""

    __slots__ = ()


Type: TypeAlias = "str | Free | tuple[str | Type, ...]"

UNKNOWN: Final = "?"
DYN: Final = "dyn"
ERROR: Final = "!error!"
"""The type of what was complained of already."""

CLOSED: Final = "*"
"""A field that says of a type that it has no others than those that are named."""

_OPEN: Final = frozenset((UNKNOWN, DYN, ERROR))
SCALARS: Final = frozenset(("bool", "int", "uint", "double", "string", "bytes", "null", "type"))
_NOT_NULLABLE: Final = SCALARS | {"list", "map"}


def list_of(element: Type) -> Type:
    """Return the type of lists of an element."""
    return ("list", element)


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps; of what nests deeply nothing is known, since a map of two such parts is twice as large."""
    return ("map", *(UNKNOWN if _is_deep(part) else part for part in (key, value)))


def _is_deep(kind: Type, left: int = 8) -> bool:
    return left == 0 or any(_is_deep(part, left - 1) for part in parts(kind))


def optional_of(held: Type) -> Type:
    """Return the type of what holds a value or none."""
    return ("optional_type", held)


def head(kind: Type) -> str:
    """Return the name of a type without its parts, empty for one that is not settled."""
    if isinstance(kind, tuple):
        return str(kind[0])
    return kind if isinstance(kind, str) else ""


def is_open(kind: Type) -> bool:
    """Tell whether a type stands for any."""
    return isinstance(kind, str) and kind in _OPEN


def parts(kind: Type) -> tuple[Type, ...]:
    """Return what a type is made of."""
    return kind[1:] if isinstance(kind, tuple) else ()


def mentions(kind: Type, name: str) -> bool:
    """Tell whether a type is another, or has it among its parts."""
    return kind == name or any(mentions(part, name) for part in parts(kind))


def shown(kind: Type) -> str:
    """Return a type as errors write it."""
    if isinstance(kind, tuple):
        return f"{kind[0]}({', '.join(map(shown, kind[1:]))})"
    return DYN if isinstance(kind, Free) or kind == UNKNOWN else kind


class Unifier:
    """What free types have been found to be in one check."""

    def __init__(self) -> None:
        self._found: dict[Free, Type] = {}

    def settled(self, kind: Type, *, is_final: bool = False) -> Type:
        """Return a type with what is known in place of free ones; finally, `dyn` for those that are still free."""
        if isinstance(kind, Free):
            found = self._found.get(kind)
            if found is not None:
                return self.settled(found, is_final=is_final)
            return DYN if is_final else kind
        if isinstance(kind, tuple):
            return (kind[0], *(self.settled(part, is_final=is_final) for part in kind[1:]))
        return kind

    def fit(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        """Tell whether types may stand where others are wanted, and remember what free ones are then."""
        before = dict(self._found)
        if len(given) == len(wanted) and all(map(self._fits, given, wanted)):
            return True
        self._found = before
        return False

    def joined(self, known: Type, added: Type) -> Type | None:
        """Return the type of what is one or the other, None where they have none in common."""
        return _wider(known, added) if self.fit((known,), (added,)) else None

    def _fits(self, given: Type, wanted: Type) -> bool:
        if isinstance(wanted, Free):
            is_possible, is_bound = self._bind(given, wanted)
            if is_possible or is_bound:
                return is_possible
        if isinstance(given, Free):
            return self._bind(wanted, given)[0]
        if is_open(given) or is_open(wanted):
            return True
        if given == "null" or wanted == "null":
            other = wanted if given == "null" else given
            return other == "null" or head(other) not in _NOT_NULLABLE
        if head(given) != head(wanted) or len(parts(given)) != len(parts(wanted)):
            return False
        return all(map(self._fits, parts(given), parts(wanted)))

    def _bind(self, kind: Type, free: Free) -> tuple[bool, bool]:
        """Take a type for a free one; return whether that is possible, and whether it stood for another before."""
        if kind is free:
            return True, True
        found = self._found.get(free)
        if found is not None:
            if not self._fits(kind, found):
                return False, True
            wider = _wider(kind, found)
            if not self._has(wider, free):
                self._found[free] = wider
            return True, True
        if self._has(kind, free):
            return False, False
        self._found[free] = kind
        return True, False

    def _has(self, kind: Type, free: Free) -> bool:
        if isinstance(kind, Free):
            return kind is free or (kind in self._found and self._has(self._found[kind], free))
        return any(self._has(part, free) for part in parts(kind))


def _wider(one: Type, other: Type) -> Type:
    """Return the one of two types that fit each other that says less."""
    return one if _says_less(one, other) else other


def _says_less(one: Type, other: Type) -> bool:
    if is_open(one) or isinstance(one, Free):
        return True
    if is_open(other) or isinstance(other, Free):
        return False
    if head(one) != head(other) or len(parts(one)) != len(parts(other)):
        return False
    return all(map(_says_less, parts(one), parts(other)))


def fresh(kinds: tuple[Type, ...]) -> tuple[Type, ...]:
    """Return types with free ones of their own in place of the letters of a declaration: `A`, `B`."""
    letters: dict[str, Free] = {}
    return tuple(_lettered(kind, letters) for kind in kinds)


def _lettered(kind: Type, letters: dict[str, Free]) -> Type:
    if isinstance(kind, tuple):
        return (kind[0], *(_lettered(part, letters) for part in kind[1:]))
    if isinstance(kind, str) and len(kind) == 1 and kind.isupper():
        return letters.setdefault(kind, Free())
    return kind


def read(text: str, called: Callable[[str], str]) -> tuple[Type, str]:
    """Return the type that a text begins with, and what follows it; `called` gives the name of a type by that of its kind.

    A list, map or optional of which nothing is said holds what nobody knows.
    """
    end = next((index for index, char in enumerate(text) if char in "(),"), len(text))
    name, rest = text[:end].strip(), text[end:].lstrip()
    if name not in _PARTS or not rest.startswith("("):
        bare = called(name)
        return ((bare, *[UNKNOWN] * _PARTS[name]) if name in _PARTS else bare), rest
    found: list[Type] = []
    while not rest.startswith(")"):
        kind, rest = read(rest[1:].lstrip(), called)
        found.append(kind)
    return (name, *found), rest[1:].lstrip()


_PARTS: Final = {"list": 1, "map": 2, "optional_type": 1}
