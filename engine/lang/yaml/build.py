"""From composed nodes to plain values: keys as text, merge keys, the last of equal keys, no tags left.

Called by the reader, once per document. The plain builder is the fast path for texts without tags and anchors, which is nearly
all of them: it looks at nothing that such a text cannot contain and shares equal scalars. The careful builder adds tags,
aliases (rebuilt at every use and counted) and strict keys.
"""

from __future__ import annotations

from base64 import b64decode
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from engine.errors import DocumentError, Location
from engine.lang.lazy_regex import regex

from .scalars import Scalar, key_text, resolve_plain, through_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.work import Limits

_MISSING: Any = object()
_TAG = "tag:yaml.org,2002:"
_MERGE_WANTS = "map merge requires map or sequence of maps as the value"
_TIMESTAMP = regex(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_TYPES: dict[str, Callable[[Scalar], bool]] = {
    f"{_TAG}bool": lambda value: isinstance(value, bool),
    f"{_TAG}int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    f"{_TAG}float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    f"{_TAG}null": lambda value: value is None,
}


class Builder:
    """Builds the values of one text that holds neither tags nor anchors."""

    # INVARIANT: `same` holds only texts that mean themselves, quoted or not, as key and as value; so the two loops that are the
    # whole cost of reading ask it first and nothing else.

    def __init__(self, limits: Limits, file: str) -> None:
        self.limits = limits
        self.file = file
        self.plain: dict[str, Any] = {}
        self.same: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.repeated: dict[tuple[int, str], None] = {}
        """Lines of keys that stand in the same mapping before, and the keys, each once."""

    def build(self, node: Node, depth: int = 0) -> Any:
        """Return the value of a node; raise DocumentError for what JSON cannot express or what is too deep."""
        if type(node) is ScalarNode:
            return self.scalar(node)
        if depth >= self.limits.depth:
            self.refuse(f"nested deeper than {self.limits.depth} levels", node)
        if type(node) is MappingNode:
            return self.mapping(node, depth + 1)
        return self.sequence(node, depth + 1)

    def scalar(self, node: Any) -> Any:
        """Return what a scalar means, the same object for the same text."""
        text = node.value
        if node.style:
            return self.texts.setdefault(text, text)
        value = self.plain.get(text, _MISSING)
        return self.learn(node) if value is _MISSING else value

    def learn(self, node: Node) -> Any:
        """Resolve an unquoted text that has not come up before."""
        text = node.value
        value = resolve_plain(text)
        if isinstance(value, str):
            value = self.texts.setdefault(text, text)
            if text != "<<":
                self.same[text] = value
        else:
            value = self.expressible(value, node)
        self.plain[text] = value
        return value

    def expressible(self, value: Scalar, node: Node) -> Scalar:
        """Return a value as JSON leaves it; refuse infinities and NaN."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        if not isfinite(value):
            self.refuse(f"unsupported value: `{node.value}` is no number that JSON knows", node)
        return through_json(value)

    def sequence(self, node: Node, depth: int) -> list[Any]:
        """Return a list."""
        same = self.same
        values: list[Any] = []
        for item in node.value:
            if type(item) is ScalarNode:
                values.append(same.get(item.value) or self.scalar(item))
            else:
                values.append(self.build(item, depth))
        return values

    def mapping(self, node: Node, depth: int) -> dict[str, Any]:
        """Return a mapping; of equal keys the last one wins, and merges take effect where they stand."""
        same = self.same
        values: dict[str, Any] = {}
        for key_node, item in node.value:
            key = same.get(key_node.value) if type(key_node) is ScalarNode else None
            if key is None:
                if is_merge(key_node):
                    self.merge(item, values, depth)
                    continue
                key = self.key(key_node)
            if type(item) is ScalarNode:
                values[key] = same.get(item.value) or self.scalar(item)
            else:
                values[key] = self.build(item, depth)
        if len(values) < len(node.value):
            self.note(node)
        return values

    def note(self, node: Node) -> None:
        """Keep which keys of a mapping are given again."""
        found: set[str] = set()
        for key_node, _ in node.value:
            if not is_merge(key_node):
                key = self.key(key_node)
                if key in found:
                    self.repeated[key_node.start_mark.line + 1, key] = None
                found.add(key)

    def key(self, node: Node) -> str:
        """Return the text of a key; lists, mappings, null and unsigned giants are no keys."""
        if type(node) is not ScalarNode:
            self.refuse("invalid map key: only text, numbers and truth values can be keys", node)
        text: str = node.value
        if node.style:
            return self.texts.setdefault(text, text)
        value = resolve_plain(text)
        if isinstance(value, str) and text != "<<":
            self.same[text] = text
        return self.key_of(value, node)

    def key_of(self, value: Scalar, node: Node) -> str:
        """Return a resolved key as text."""
        if isinstance(value, str):
            return self.texts.setdefault(value, value)
        if value is None or (isinstance(value, int) and value >= 1 << 63):
            self.refuse(f"unsupported map key `{node.value}`", node)
        return key_text(value)

    def merge(self, node: Node, values: dict[str, Any], depth: int) -> None:
        """Add the entries of a merged mapping; in a list of mappings the earlier ones take precedence."""
        if type(node) is MappingNode:
            self.absorb(self.build(node, depth), values, node)
            return
        if type(node) is not SequenceNode:
            self.refuse(_MERGE_WANTS, node)
        for source in reversed(node.value):
            if type(source) is not MappingNode:
                self.refuse(_MERGE_WANTS, source)
            self.absorb(self.build(source, depth), values, source)

    def absorb(self, more: dict[str, Any], values: dict[str, Any], _node: Node) -> None:
        """Take over the entries of one merged mapping; they replace entries that stand before the merge."""
        values.update(more)

    def refuse(self, message: str, node: Node) -> NoReturn:
        """Raise DocumentError at a node."""
        raise DocumentError(message, at=Location(self.file, node.start_mark.line + 1))


class CarefulBuilder(Builder):
    """Builds texts with tags, anchors or strict keys: slower, and bounded in what aliases may add."""

    def __init__(self, limits: Limits, file: str, *, size: int, strict: bool) -> None:
        super().__init__(limits, file)
        self.budget = size + limits.expansion
        self.strict = strict
        self.open: set[int] = set()

    def build(self, node: Node, depth: int = 0) -> Any:
        """Count every value built, so that aliases cannot multiply without end, and notice a value inside itself."""
        self.budget -= 1
        if self.budget < 0:
            self.refuse("document contains excessive aliasing", node)
        if type(node) is ScalarNode:
            return self.scalar(node)
        if id(node) in self.open:
            self.refuse("an anchor's value contains itself", node)
        self.open.add(id(node))
        value = super().build(node, depth)
        self.open.discard(id(node))
        return value

    def sequence(self, node: Node, depth: int) -> list[Any]:
        """Build every item the slow way."""
        return [self.build(item, depth) for item in node.value]

    def mapping(self, node: Node, depth: int) -> dict[str, Any]:
        """Build every entry the slow way; a second equal key is an error where keys are strict."""
        values: dict[str, Any] = {}
        for key_node, item in node.value:
            if is_merge(key_node):
                self.merge(item, values, depth)
                continue
            key = self.key(key_node)
            if self.strict and key in values:
                self.refuse(f"key `{key}` already set in map", key_node)
            values[key] = self.build(item, depth)
        if len(values) < len(node.value):
            self.note(node)
        return values

    def absorb(self, more: dict[str, Any], values: dict[str, Any], node: Node) -> None:
        """Refuse, where keys are strict, a merge that would replace an entry."""
        twice = sorted(more.keys() & values.keys()) if self.strict else ()
        if twice:
            self.refuse(f"key `{twice[0]}` already set in map", node)
        values.update(more)

    def scalar(self, node: Any) -> Any:
        """Return what a scalar means under its tag."""
        if type(node.tag) is not str and node.tag[0]:
            return super().scalar(node)
        return self.expressible(self.tagged(node), node)

    def key(self, node: Node) -> str:
        """Return the text of a key under its tag."""
        if type(node) is not ScalarNode or (type(node.tag) is not str and node.tag[0]):
            return super().key(node)
        return self.key_of(self.tagged(node), node)

    def tagged(self, node: Node) -> Scalar:
        """Return the value of a scalar whose tag says what it must be; tags of one's own mean text."""
        tag, text = node.tag, node.value
        if tag == f"{_TAG}binary":
            return self.binary(node)
        if tag == f"{_TAG}timestamp" and not _TIMESTAMP.fullmatch(text):
            self.refuse(f"cannot decode `{text}` as a !!timestamp", node)
        if tag not in _TYPES:
            return str(text)
        value = resolve_plain(text)
        if not _TYPES[tag](value):
            self.refuse(f"cannot decode `{text}` as a !!{tag.removeprefix(_TAG)}", node)
        return value

    def binary(self, node: Node) -> str:
        """Return the text inside a base64 scalar; bytes that are no UTF-8 are replaced, as JSON does."""
        try:
            return b64decode("".join(node.value.split()), validate=True).decode("utf-8", "replace")
        except ValueError:
            self.refuse("!!binary value contains invalid base64 data", node)


def is_merge(node: Node) -> bool:
    """Tell whether a key is the unquoted `<<`."""
    if type(node) is not ScalarNode or node.value != "<<":
        return False
    return node.tag == f"{_TAG}merge" if type(node.tag) is str else not node.style
