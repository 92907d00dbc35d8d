"""Composing nodes from PyYAML's stream of events, without recursion: the careful way, and the way without libyaml.

Called by `compose.py` for texts with tags or anchors. PyYAML's own composers cannot serve there: they refuse an anchor that is
given anew, which YAML allows, and the pure one recurses. Nesting is bounded by the length of a stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import ComposerError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.nodes import MappingNode, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from engine.errors import DocumentError, Location
from engine.lang.json import too_deep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from yaml.nodes import Node

    from engine.lang.limits import Limits


class _Pure(Reader, Scanner, Parser):
    """PyYAML's own parser, many times slower and otherwise the same."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


def has_libyaml() -> bool:
    """Tell whether PyYAML was built with libyaml."""
    return yaml.__with_libyaml__


def _native_parser(text: str) -> Any:
    from yaml._yaml import CParser

    return CParser(text)


def compose(text: str, limits: Limits) -> Iterator[Node]:
    """Yield the root node of every document; raise PyYAML's errors, UnicodeError, or DocumentError for too deep nesting."""
    parser: Any = _native_parser(text) if has_libyaml() else _Pure(text)
    composer = _Composer(limits)
    for event in iter(parser.get_event, None):
        root = composer.take(event)
        if root is not None:
            yield root


class _Composer:
    """The nodes that are open at one point of the stream, and the anchors given so far in this document."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.open: list[tuple[Node, list[Any]]] = []
        self.anchors: dict[str, Node] = {}
        self.root: Node | None = None

    def take(self, event: Any) -> Node | None:
        """Take in one event; return the root when it ends a document."""
        if isinstance(event, ScalarEvent):
            self._place(_scalar(event), event.anchor)
        elif isinstance(event, AliasEvent):
            self._place(self._aliased(event), None)
        elif isinstance(event, SequenceStartEvent | MappingStartEvent):
            self._enter(event)
        elif isinstance(event, SequenceEndEvent | MappingEndEvent):
            self._leave(event)
        elif isinstance(event, DocumentEndEvent):
            root, self.root = self.root, None
            self.anchors = {}
            return root
        return None

    def _place(self, node: Node, anchor: str | None) -> None:
        """Put a node where it belongs: into the collection that is open, or as the root."""
        if anchor is not None:
            self.anchors[anchor] = node
        if self.open:
            self.open[-1][1].append(node)
        else:
            self.root = node

    def _aliased(self, event: Any) -> Node:
        node = self.anchors.get(event.anchor)
        if node is None:
            raise ComposerError(
                None, None, f"found undefined alias `{event.anchor}`", event.start_mark
            )
        return node

    def _enter(self, event: Any) -> None:
        """Open a collection; an alias inside it may already refer to it."""
        if len(self.open) >= self.limits.depth:
            raise DocumentError(too_deep(self.limits), at=Location(line=event.start_mark.line + 1))
        kind = SequenceNode if isinstance(event, SequenceStartEvent) else MappingNode
        node = kind(event.tag, [], event.start_mark)
        self._place(node, event.anchor)
        self.open.append((node, []))

    def _leave(self, event: Any) -> None:
        """Close a collection; the parts of a mapping come in pairs."""
        node, parts = self.open.pop()
        node.end_mark = event.end_mark
        node.value = (
            list(zip(parts[::2], parts[1::2], strict=True))
            if isinstance(node, MappingNode)
            else parts
        )


def _scalar(event: Any) -> ScalarNode:
    """Return a scalar's node: its tag where it has one of its own, else how it was written; half characters are refused."""
    if not event.value.isascii():
        event.value.encode()
    tag = event.implicit if event.tag is None or event.implicit[0] else event.tag
    return ScalarNode(tag, event.value, event.start_mark, event.end_mark, event.style)
