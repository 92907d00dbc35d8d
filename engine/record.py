"""Records: frozen values with named fields, for every part of the engine, at almost no cost when a module is imported.

They are written, and read by type checkers, as frozen dataclasses. `dataclasses` compiles six methods for each
class and loads `inspect` to do so, half a millisecond a class, which for the hundred classes that a command touches is
most of its time. Here nothing is compiled: the methods are shared, the constructor is one closure, and
a field that is not given is read from the class, so that a value with many defaults is made as quickly as a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, Generic, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T")


class _Fresh:
    """Stands where a default would, for a field whose default is made anew for each value."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], T]) -> T:
    """Give a field a default that `default_factory` makes anew for each value."""
    return cast("T", _Fresh(default_factory))


class lazy(Generic[T]):  # noqa: N801 - it is used like `functools.cached_property`, which takes a lock before 3.12
    """A value of a record that is worked out when it is asked for first."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, value: Any, _owner: type) -> T:
        made: T
        made = value.__dict__[self._name] = self._make(value)
        return made


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a class of annotated fields a record: constructor, equality, hash, text; no field can be set afterwards.

    Methods that the class defines itself stay. Classes do not inherit from records.
    `dataclasses.replace`, `fields` and `asdict` take records.
    """
    names = tuple(cls.__annotations__)
    own = vars(cls)
    fresh = {name: make for name in names if (make := _maker(own.get(name))) is not None}
    methods = {
        **_METHODS,
        "__values__": _getter(names),
        "__match_args__": names,
        "__init__": _constructor(names, frozenset(own), fresh),
    }
    # the class is not made a second time, which takes longer than all the rest
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


def replace(value: T, /, **changes: Any) -> T:
    """Return a record like `value` with some fields changed; raises TypeError for names that are no fields."""
    given: Any = value
    own = given.__dict__
    # what is not in the record itself is a default, which the class has
    fields = {name: own[name] for name in given.__match_args__ if name in own}
    return value.__class__(**{**fields, **changes})


def filled(cls: type[T], fields: Mapping[str, Any]) -> T:
    """Return a record of fields by their names, for one that is made for each request: that they are complete and right is not checked."""
    made = cls.__new__(cls)
    made.__dict__.update(fields)
    return made


def _getter(names: tuple[str, ...]) -> Any:
    """Return a property of the values of all fields: of a single one its own value, of none an empty tuple."""
    return property(attrgetter(*names) if names else lambda _: ())


def _maker(default: Any) -> Callable[[], Any] | None:
    """Return what makes a default that each value must hold itself; others are read from the class."""
    if isinstance(default, _Fresh):
        return default.make
    return (lambda: default) if hasattr(default, "__get__") else None


def _constructor(
    names: tuple[str, ...], defaults: frozenset[str], fresh: Mapping[str, Callable[[], Any]]
) -> Callable[..., None]:
    """Return `__init__`: values by position or name; how a call that gives the same fields ends is worked out once."""
    endings: dict[tuple[str, ...], tuple[tuple[str, Callable[[], Any]], ...]] = {}

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807 - it becomes one
        fields = self.__dict__
        if given:
            fields.update(zip(names, given, strict=False))
        if named:
            fields.update(named)
        if len(fields) != len(given) + len(named):
            raise TypeError(f"{type(self).__qualname__} is given a value twice, or one too many")
        present = tuple(fields)
        ending = endings.get(present)
        if ending is None:
            ending = endings[present] = completed(self, present)
        for name, make in ending:
            fields[name] = make()

    def completed(self: Any, present: tuple[str, ...]) -> tuple[tuple[str, Callable[[], Any]], ...]:
        if wrong := {*present} - {*names}:
            raise TypeError(f"{type(self).__qualname__} has no field {min(wrong)!r}")
        absent = [name for name in names if name not in present]
        if missing := [name for name in absent if name not in defaults]:
            raise TypeError(f"{type(self).__qualname__} needs {missing[0]!r}")
        return tuple((name, fresh[name]) for name in absent if name in fresh)

    return __init__


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self is other or self.__values__ == other.__values__


def _hash(self: Any) -> int:
    return hash(self.__values__)


def _text(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{self.__class__.__qualname__}({shown})"


def _refuse(self: Any, name: str, *_: object) -> NoReturn:
    raise AttributeError(f"cannot change field {name!r} of {self.__class__.__qualname__}")


def _reduce(self: Any) -> tuple[Any, ...]:
    return self.__class__, tuple(getattr(self, name) for name in self.__match_args__)


class _Fields:
    """Describes the fields as `dataclasses` does, for its functions; loaded when one of them is used."""

    def __get__(self, _instance: object, owner: Any) -> Any:
        from dataclasses import make_dataclass

        named = owner.__annotations__.items()
        described: Any = make_dataclass(owner.__name__, named, init=False)
        owner.__dataclass_fields__ = (
            described.__dataclass_fields__
        )  # in place of this, so that it is made once
        return described.__dataclass_fields__


_METHODS: Final = {
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _text,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__reduce__": _reduce,
    "__dataclass_fields__": _Fields(),
}
