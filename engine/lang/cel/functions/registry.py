"""How functions are declared: a signature in words, an implementation in Python, a library they belong to.

`"string.startsWith(string) -> bool"` says receiver, parameters and result; the text is also what `cel function` prints.
A dotted name whose beginning is no kind (`math.ceil(double)`) is a function with that whole name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.lang.cel.values import CelType, Duration, Optional, Timestamp, Uint

if TYPE_CHECKING:
    from collections.abc import Callable

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

_OPEN: Final = (list, dict)
_SIGNATURE: Final = re.compile(r"([\w.@]+)\(([^)]*)\) -> (\w+)")


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
    library: str
    cost: int = 0

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
    """A named set of functions; `cost` is that of each call, in nodes visited, where a function names no other."""

    def __init__(self, name: str, cost: int = 0) -> None:
        self.name = name
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

    def _overload(
        self, signature: str, run: Callable[..., Any], cost: int, *, env: bool
    ) -> Overload:
        found = _SIGNATURE.fullmatch(signature)
        assert found is not None, signature
        receiver, _, method = found[1].rpartition(".")
        is_method = receiver in KINDS
        parameters = tuple(part.strip() for part in found[2].split(",")) if found[2] else ()
        variadic = bool(parameters) and parameters[-1].endswith("...")
        kinds = (receiver, *parameters) if is_method else parameters
        if variadic:
            kinds = (*kinds[:-1], kinds[-1].removesuffix("..."))
        assert all(kind in KINDS for kind in kinds), signature
        name = method if is_method else found[1]
        return Overload(name, is_method, kinds, run, env, variadic, signature, self.name, cost)
