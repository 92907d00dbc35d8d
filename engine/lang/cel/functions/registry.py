"""How functions are declared: a signature in words, an implementation in Python, a library they belong to.

`"string.startsWith(string) -> bool"` says receiver, parameters and result; the text is also what `cel function` prints.
A dotted name whose beginning is no kind (`math.ceil(double)`) is a function with that whole name. Lists, maps and optionals may
say what they hold; a single capital letter is any type, the same at each of its places (`list(A).first() -> optional_type(A)`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar

from engine.lang.cel import types
from engine.lang.cel.values import TYPE_NAMES, CelType, Duration, Message, Optional, Timestamp, Uint

_F = TypeVar("_F", bound="Callable[..., Any]")

KINDS: Final[dict[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "uint": (Uint,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "list": (list,),
    "map": (dict,),
    "timestamp": (Timestamp,),
    "duration": (Duration,),
    "type": (CelType,),
    "optional_type": (Optional,),
    "dyn": (),
}
"""Kinds of parameters and the Python types of their values; `dyn` takes anything. Libraries add their own."""

_NATIVE: Final = frozenset(KINDS)

_OPEN: Final = (list, dict)


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function. `kinds` begin with the receiver of a method; `run` takes the env first if `env`.

    `cost` is charged for each call, beside what the lengths of the arguments cost.
    """

    name: str
    is_method: bool
    kinds: tuple[str, ...]
    run: Callable[..., Any]
    env: bool
    variadic: bool
    signature: str
    cost: int = 0

    def types(self) -> tuple[types.Type, ...]:
        """Return what it takes, receiver first, and then what it gives, as far as that is declared."""
        return _types(self.signature)

    def accepts(self, count: int) -> bool:
        """Return whether so many arguments, receiver included, can be given."""
        return count >= len(self.kinds) if self.variadic else count == len(self.kinds)

    def fits(self, values: list[Any]) -> bool:
        """Return whether these values, receiver included, have the right types."""
        for index, value in enumerate(values):
            types = KINDS[self.kinds[min(index, len(self.kinds) - 1)]]
            if types and type(value) not in types and not _is_open(value, types):
                return False
        return True


def _is_open(value: Any, types: tuple[type, ...]) -> bool:
    """Accept subclasses of list and map: those of the caller compute their parts when read."""
    return types[0] in _OPEN and isinstance(value, types)


class Library:
    """A set of functions; `cost` is that of each call, in nodes visited, where a function names no other."""

    def __init__(self, cost: int = 0) -> None:
        self.cost = cost
        self.overloads: list[Overload] = []

    def add(
        self, *signatures: str, env: bool = False, cost: int | None = None
    ) -> Callable[[_F], _F]:
        """Declare the decorated function under one or more signatures; with `env` it takes the CelEnv first."""
        price = self.cost if cost is None else cost

        def register(run: _F) -> _F:
            self.overloads.extend(self._overload(text, run, price, env=env) for text in signatures)
            return run

        return register

    def declare(
        self, functions: Mapping[str | tuple[str, ...], Callable[..., Any]], *, env: bool = False
    ) -> None:
        """Declare functions that are one expression each, by the one signature or the signatures of each."""
        for signatures, run in functions.items():
            each = (signatures,) if isinstance(signatures, str) else signatures
            self.add(*each, env=env)(run)

    def _overload(
        self, signature: str, run: Callable[..., Any], cost: int, *, env: bool
    ) -> Overload:
        name, is_method, taken, _ = _declared(signature, str)
        kinds = tuple(map(_kind, taken))
        assert all(kind in KINDS for kind in kinds), signature
        variadic = "...)" in signature
        return Overload(name, is_method, kinds, run, env, variadic, signature, cost)


@lru_cache(maxsize=1024)
def _types(signature: str) -> tuple[types.Type, ...]:
    name, _, taken, given = _declared(signature, _called)
    return (*taken, types.UNKNOWN if given == types.DYN and name != types.DYN else given)


def _called(kind: str) -> str:
    """Return what a kind is called outside of its library."""
    first, *_ = KINDS.get(kind) or (object,)
    if issubclass(first, Message):
        return first.TYPE
    return kind if kind in _NATIVE else TYPE_NAMES.get(first, kind)


def _declared(
    signature: str, called: Callable[[str], str]
) -> tuple[str, bool, tuple[types.Type, ...], types.Type]:
    """Return the name of a function, whether it is a method, the types it takes, the receiver's first, and the one it gives."""
    call, _, given = signature.replace("...)", ")").partition(" -> ")
    result = types.read(given, called)[0]
    first, rest = types.read(call, called)
    if rest.startswith("."):
        name, _, rest = rest[1:].partition("(")
        return name, True, (first, *_parameters(rest, called)), result
    whole = str(first)
    receiver, _, method = whole.rpartition(".")
    taken = tuple(_parameters(rest[1:], called))
    if receiver in KINDS:
        return method, True, (types.read(receiver, called)[0], *taken), result
    return whole, False, taken, result


def _parameters(text: str, called: Callable[[str], str]) -> Iterator[types.Type]:
    rest = text
    while not rest.startswith(")"):
        kind, rest = types.read(rest.lstrip(", "), called)
        yield kind


def _kind(declared: types.Type) -> str:
    """Return the kind of value that a declared type takes."""
    name = types.head(declared)
    return types.DYN if len(name) == 1 else name
