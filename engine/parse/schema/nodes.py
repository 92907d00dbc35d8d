"""The words in which the fields of policy documents are described.

The tables built from them serve three readers: parsing (unknown fields, wrong types), the command line's help on fields,
and the generated CustomResourceDefinitions. They hold data only; `engine.parse.check` is what walks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from engine.record import record


@record
class Text:
    """A string; `enum` lists the only accepted spellings, `default` is what absence means."""

    enum: tuple[str, ...] = ()
    default: str | None = None
    longest: int | None = None


@record
class Flag:
    """A boolean."""

    default: bool | None = None


@record
class Whole:
    """A whole number within bounds."""

    least: int | None = None
    most: int | None = None
    default: int | None = None


@record
class Free:
    """Any JSON value; its inside belongs to another language and is not looked at."""


@record
class MapOf:
    """A map from free keys to values of one type."""

    values: Node


@record
class ListOf:
    """A list of values of one type; with `key`, maps of which no two have the same value there, `unique` a set."""

    items: Node
    key: str = ""
    unique: bool = False


@record
class Shape:
    """A map with known fields; an `open` one may have others. Of `one_of` exactly one must be given.

    One that is `filled_in` is there in every object that an API server stores, with the defaults of its fields.
    """

    fields: Mapping[str, Node]
    required: tuple[str, ...] = ()
    open: bool = False
    one_of: tuple[str, ...] = ()
    filled_in: bool = False


@record
class MapOrList:
    """A value that is written either as a map or as a list."""

    as_map: Shape
    as_list: ListOf


@record
class Later:
    """A node that holds itself somewhere inside, given by name of its maker."""

    make: Callable[[], Any]


Node: TypeAlias = Text | Flag | Whole | Free | MapOf | ListOf | Shape | MapOrList | Later

TEXT = Text()
FLAG = Flag()
FREE = Free()
TEXTS = ListOf(TEXT)
TEXT_MAP = MapOf(TEXT)


def without(shape: Shape, *names: str) -> Shape:
    """Return the shape without some fields: how an older or newer version differs."""
    kept = {name: node for name, node in shape.fields.items() if name not in names}
    return Shape(kept, tuple(n for n in shape.required if n not in names), open=shape.open)


def replaced(shape: Shape, **nodes: Node) -> Shape:
    """Return the shape with some fields given another type."""
    return Shape({**shape.fields, **nodes}, shape.required, open=shape.open)


METADATA = Shape(
    {"name": TEXT, "namespace": TEXT, "labels": TEXT_MAP, "annotations": TEXT_MAP}, open=True
)
"""The metadata that policies are read for; the rest of ObjectMeta belongs to Kubernetes."""
