"""The syntax tree: what the parser makes, macros rewrite and the compiler turns into closures.

Chains of one operator are one node with many parts, so that long expressions nest no deeper than they read.
`at` is the position in the source; `depth` and `size` let limits be checked without walking again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(slots=True, kw_only=True)
class Node:
    """Base of all nodes."""

    at: int = 0
    depth: int = field(default=1, init=False)
    size: int = field(default=1, init=False)

    def grow(self, *children: Node) -> None:
        """Add the children's depth and size to this node's."""
        for child in children:
            self.depth = max(self.depth, child.depth + 1)
            self.size += child.size


@dataclass(slots=True)
class Literal(Node):
    """A constant."""

    value: Any

    def __post_init__(self) -> None:
        self.grow()


@dataclass(slots=True)
class Ident(Node):
    """A name; `absolute` when written with a leading dot, which no local name hides."""

    name: str
    absolute: bool = False


@dataclass(slots=True)
class Select(Node):
    """`operand.field`, `operand.?field`, or `has(operand.field)` when `test`."""

    operand: Node
    field: str
    optional: bool = False
    test: bool = False

    def __post_init__(self) -> None:
        self.grow(self.operand)


@dataclass(slots=True)
class Index(Node):
    """`operand[key]` or `operand[?key]`."""

    operand: Node
    key: Node
    optional: bool = False

    def __post_init__(self) -> None:
        self.grow(self.operand, self.key)


@dataclass(slots=True)
class Call(Node):
    """`name(arguments)` or `target.name(arguments)`."""

    target: Node | None
    name: str
    arguments: list[Node]

    def __post_init__(self) -> None:
        self.grow(*self.arguments)
        if self.target is not None:
            self.grow(self.target)


@dataclass(slots=True)
class Unary(Node):
    """`!` or `-` before an operand."""

    operator: str
    operand: Node

    def __post_init__(self) -> None:
        self.grow(self.operand)


@dataclass(slots=True)
class Chain(Node):
    """Operators of one precedence, applied from left to right: `first op part op part…`."""

    first: Node
    rest: list[tuple[str, Node, int]]

    def __post_init__(self) -> None:
        self.grow(*self.operands)

    @property
    def operands(self) -> tuple[Node, ...]:
        """What stands between the operators, in order."""
        return (self.first, *(part for _, part, _ in self.rest))

    @property
    def is_sum(self) -> bool:
        """Whether all operators are `+`."""
        return all(operator == "+" for operator, _, _ in self.rest)


@dataclass(slots=True)
class Logic(Node):
    """`&&` or `||` between two or more parts."""

    operator: str
    parts: list[Node]

    def __post_init__(self) -> None:
        self.grow(*self.parts)


@dataclass(slots=True)
class Choice(Node):
    """`test ? value : test ? value : otherwise`."""

    cases: list[tuple[Node, Node]]
    otherwise: Node

    def __post_init__(self) -> None:
        self.grow(*(part for case in self.cases for part in case), self.otherwise)

    @property
    def outcomes(self) -> tuple[Node, ...]:
        """What it may come to."""
        return (*(value for _, value in self.cases), self.otherwise)


@dataclass(slots=True)
class ListLiteral(Node):
    """`[a, ?b]`: elements and whether each is optional."""

    items: list[tuple[Node, bool]]

    def __post_init__(self) -> None:
        self.grow(*(item for item, _ in self.items))


@dataclass(slots=True)
class MapLiteral(Node):
    """`{key: value, ?key: optional}`."""

    entries: list[tuple[Node, Node, bool]]

    def __post_init__(self) -> None:
        self.grow(*(part for key, value, _ in self.entries for part in (key, value)))


@dataclass(slots=True)
class MessageLiteral(Node):
    """`Type.Name{field: value, ?field: optional}`."""

    name: str
    entries: list[tuple[str, Node, bool, int]]

    def __post_init__(self) -> None:
        self.grow(*(value for _, value, _, _ in self.entries))


@dataclass(slots=True)
class Comprehension(Node):
    """A macro over the elements of `source`, whose bodies know one or two names.

    `kind` is the macro's name; `filter` is None where it has none; `second` is empty for one name.
    """

    kind: str
    source: Node
    first: str
    second: str
    body: Node
    filter: Node | None = None

    def __post_init__(self) -> None:
        self.grow(self.source, self.body)
        if self.filter is not None:
            self.grow(self.filter)


@dataclass(slots=True)
class Bind(Node):
    """`cel.bind(name, value, body)`; `kind` is `optMap` or `optFlatMap` where the value must be an optional."""

    kind: str
    name: str
    value: Node
    body: Node

    def __post_init__(self) -> None:
        self.grow(self.value, self.body)


def walk(tree: Node) -> Iterator[Node]:
    """Yield a node and all below it."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for part in fields(node):
            waiting += _nodes(getattr(node, part.name))


def _nodes(value: Any) -> Iterable[Node]:
    if isinstance(value, Node):
        return (value,)
    if isinstance(value, list | tuple):
        return (node for part in value for node in _nodes(part))
    return ()
