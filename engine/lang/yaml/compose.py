"""Where libyaml is met: text in, composed nodes out, one root per document.

Three ways, all with the same nodes. A text without tags and anchors that cannot nest deep is composed by PyYAML's C code, with
functions written in C in the slots of the resolver (a fifth of the reading time saved); the same with a counter in those slots
where brackets are many; everything else, and everything where libyaml is missing, by `events.py`. Tags of scalars are not
resolved here; a node's `tag` only says, for those who care, whether the scalar was written plain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from yaml import events
from yaml.composer import ComposerError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.scanner import Scanner

from engine.errors import DocumentError, Location
from engine.lang.json import too_deep
from engine.lang.lazy_regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.lang.work import Limits

_MANY_BRACKETS = 1_000
_FAR_INDENTED = 200
_FLAT_BRACKETS = regex(r"\[[\w ,./:-]*\]|\{[\w ,./:-]*\}")
_DEEP_LINE = regex(rf"\n[ \t?:-]{{{_FAR_INDENTED}}}")
_DEEP_ANYWHERE = regex(rf"[ \t?:-]{{{_FAR_INDENTED}}}")
_OTHER_BREAKS = ("\r", "\x85", "\u2028", "\u2029")
_NEEDS_CARE = regex(r"""(?:!|&(?=[A-Za-z0-9_-]))(?<![^\s\[\]{},:?"'\ufeff].)""")


def may_be_deep(text: str) -> bool:
    """Tell whether a text could nest deeper than C code may recurse without counting.

    INVARIANT: a block level costs a column of indentation (a list inside a mapping may stand at its parent's column, hence at most
    two levels a column) and a flow level a bracket; brackets around plain words close at once and add one level in all. So a text
    that passes nests at most 1,401 deep.
    """
    brackets = text.count("{") + text.count("[")
    if brackets > _MANY_BRACKETS and brackets - len(_FLAT_BRACKETS.findall(text)) > _MANY_BRACKETS:
        return True
    if any(mark in text for mark in _OTHER_BREAKS):
        return _DEEP_ANYWHERE.search(text) is not None
    return _DEEP_LINE.search(text) is not None or _DEEP_ANYWHERE.match(text) is not None


def needs_care(text: str) -> bool:
    """Tell whether a text may hold tags or anchors.

    INVARIANT: both begin a token, which in a readable text happens only at the start, after white space or after one of the marks
    listed; `a && b` and `"hello!"` hold neither.
    """
    return ("!" in text or "&" in text) and _NEEDS_CARE.search(text) is not None


def roots(text: str, limits: Limits, file: str, *, care: bool) -> Iterator[Node]:
    """Yield the root node of every document; raise DocumentError with the line where the text is no YAML."""
    try:
        yield from _composed(text, limits, care=care)
    except DocumentError as error:
        raise DocumentError(error.message, at=Location(file, error.at.line)) from error
    except yaml.MarkedYAMLError as error:
        raise DocumentError(_sentence(error), at=Location(file, _line(error))) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # half characters are a ValueError, escapes beyond Unicode either of the two in the pure parser
        at = Location(file, _line_of_unreadable(error, text))
        raise DocumentError(f"not readable as text: {_first_line(error)}", at=at) from error


def _composed(text: str, limits: Limits, *, care: bool) -> Iterator[Node]:
    """Yield the root nodes by the way that suits the text."""
    if care or not has_libyaml():
        yield from compose(text, limits)
        return
    from . import native

    parser: Any = native.Counting(text, limits) if may_be_deep(text) else native.Fast(text)
    while parser.check_node():
        yield parser.get_node()


def _line(error: yaml.MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 0


def _line_of_unreadable(error: Exception, text: str) -> int:
    """Return the line of a character that no YAML may hold, 0 where it is unknown."""
    if isinstance(error, UnicodeEncodeError) and error.object == text:
        return text.count("\n", 0, error.start) + 1
    if isinstance(error, ReaderError):
        # libyaml counts bytes, the pure parser characters
        if has_libyaml():
            return text.encode("utf-8", "replace")[: error.position].count(b"\n") + 1
        return text.count("\n", 0, error.position) + 1
    return 0


def _sentence(error: yaml.MarkedYAMLError) -> str:
    """Return libyaml's two half sentences as one, for example `did not find expected key while parsing a block mapping`."""
    return (
        " ".join(part for part in (error.problem, error.context) if part) or "not readable as YAML"
    )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


# Composing nodes from PyYAML's stream of events, without recursion: the careful way, and the way without libyaml.
#
# Called by `compose.py` for texts with tags or anchors. PyYAML's own composers cannot serve there: they refuse an anchor that is
# given anew, which YAML allows, and the pure one recurses. Nesting is bounded by the length of a stack.


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
        if isinstance(event, events.ScalarEvent):
            self._place(_scalar(event), event.anchor)
        elif isinstance(event, events.AliasEvent):
            self._place(self._aliased(event), None)
        elif isinstance(event, events.SequenceStartEvent | events.MappingStartEvent):
            self._enter(event)
        elif isinstance(event, events.SequenceEndEvent | events.MappingEndEvent):
            self._leave(event)
        elif isinstance(event, events.DocumentEndEvent):
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
        kind = SequenceNode if isinstance(event, events.SequenceStartEvent) else MappingNode
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
