"""Reads a filter's text into a tree of predicates; knows no columns.

The grammar, loosest first: `a or b`, `a b` (or `a and b`), `not a` (or `!a`), `( … )`, `name op value`, `text`. Depth and
length are bounded, for filters come from files and command lines.
"""

from __future__ import annotations

import re
from typing import Final

from engine.errors import EngineError
from engine.record import record

LONGEST: Final = 2_000
DEEPEST: Final = 20
_SHOWN: Final = 70
_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<open>\()|(?P<close>\))
    | (?P<regex>!?/(?:[^/\\]|\\.)*/)
    | (?P<flag>-[lf]\s+(?:"(?:[^"\\]|\\.)*"|[^\s"]+))
    | (?P<pred>[A-Za-z][A-Za-z_-]*(?:!=|>=|<=|!~|=|>|<|~|:)(?:"(?:[^"\\]|\\.)*"|[^\s()"]*))
    | (?P<not>!(?=[^\s=~/]))
    | (?P<quoted>"(?:[^"\\]|\\.)*")
    | (?P<word>[^\s()"]+)
    )""",
    re.VERBOSE,
)
_JOINTS: Final = ("or", "||", "and", "&&", "not")
_PREDICATE: Final = re.compile(r"([A-Za-z][A-Za-z_-]*)(!=|>=|<=|!~|=|>|<|~|:)(.*)", re.DOTALL)


class FilterError(EngineError):
    """A filter that cannot be read; `position` is where, counted from 0."""

    def __init__(self, message: str, position: int, *, help: str = "") -> None:  # noqa: A002 - the field's name in every front end
        super().__init__(message, help=help)
        self.position = position

    def pointed(self, text: str) -> str:
        """Return the message, and below it the part of the filter that is wrong with a mark under its first character."""
        start = max(0, self.position - _SHOWN // 2)
        shown = text[start : start + _SHOWN]
        if not shown.isascii():
            return self.message
        return f"{self.message}\n  {shown}\n  {' ' * (self.position - start)}^"


@record
class Predicate:
    """`name op value`, as written."""

    name: str
    operator: str
    value: str
    position: int


@record
class Words:
    """A text that some cell contains; `style` is `text`, `regex` or `fuzzy`."""

    text: str
    style: str
    position: int


@record
class Labels:
    """A label selector on the object behind the row."""

    text: str
    position: int


@record
class Negated:
    """What must not hold."""

    part: Node


@record
class Joined:
    """Parts of which all (`and`) or one (`or`) must hold."""

    operator: str
    parts: tuple[Node, ...]


Node = Predicate | Words | Labels | Negated | Joined
_Token = tuple[str, str, int]


def read(text: str) -> Node:
    """Return the tree of a filter; raises FilterError."""
    if len(text) > LONGEST:
        raise FilterError(f"a filter has at most {LONGEST} characters", LONGEST)
    reader = _Reader(_tokens(text), len(text.rstrip()))
    node = reader.either(0)
    if reader.index < len(reader.tokens):
        raise FilterError("a `)` without its `(`", reader.tokens[reader.index][2])
    return node


def parts_of(text: str) -> list[str]:
    """Return the parts of a filter that stand side by side, as written; one part where they are joined in another way."""
    try:
        node, found = read(text) if text.strip() else Joined("and", ()), _tokens(text)
    except FilterError:
        return [text]
    if any(kind in ("open", "close", "not") or (kind == "word" and word.lower() in _JOINTS) for kind, word, _ in found):  # fmt: skip
        return [text.strip()]
    return [word for _, word, _ in found] if isinstance(node, Joined) else [text.strip()]


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    index = 0
    while index < len(text.rstrip()):
        match = _TOKEN.match(text, index)
        if match is None:
            raise FilterError("a quote without its end", index)
        kind = str(match.lastgroup)
        found.append((kind, match[kind], match.start(kind)))
        index = match.end()
    return found


class _Reader:
    """Walks over the tokens; one method for each level of the grammar."""

    def __init__(self, tokens: list[_Token], end: int) -> None:
        self.tokens, self._end = tokens, end
        self.index = 0

    def _peek(self) -> _Token:
        return self.tokens[self.index] if self.index < len(self.tokens) else ("end", "", self._end)

    def _is_word(self, *words: str) -> bool:
        kind, text, _ = self._peek()
        return kind == "word" and text.lower() in words

    def either(self, depth: int) -> Node:
        """Read parts joined by `or`."""
        if depth > DEEPEST:
            raise FilterError(f"a filter is at most {DEEPEST} parentheses deep", self._peek()[2])
        parts = [self.both(depth)]
        while self._is_word("or", "||"):
            self.index += 1
            parts.append(self.both(depth))
        return parts[0] if len(parts) == 1 else Joined("or", tuple(parts))

    def both(self, depth: int) -> Node:
        """Read parts that must all hold."""
        parts: list[Node] = []
        while True:
            if self._is_word("and", "&&"):
                self.index += 1
            if self._peek()[0] in ("end", "close") or self._is_word("or", "||"):
                break
            parts.append(self.single(depth))
        return parts[0] if len(parts) == 1 else Joined("and", tuple(parts))

    def single(self, depth: int) -> Node:
        """Read one part, with what negates it."""
        negations = 0
        while self._peek()[0] == "not" or self._is_word("not"):
            self.index += 1
            negations += 1
        kind, text, position = self._peek()
        if kind in ("end", "close"):
            raise FilterError("`not` without what is not", position)
        self.index += 1
        node = self._atom(kind, text, position, depth)
        return Negated(node) if negations % 2 else node

    def _atom(self, kind: str, text: str, position: int, depth: int) -> Node:
        match kind:
            case "open":
                return self._group(position, depth)
            case "pred":
                return _predicate(text, position)
            case "regex":
                words = Words(text.removeprefix("!")[1:-1].replace("\\/", "/"), "regex", position)
                return Negated(words) if text.startswith("!") else words
            case "flag":
                return _flagged(text, position)
            case "quoted":
                return Words(_unquoted(text), "text", position)
        return Words(text, "text", position)

    def _group(self, position: int, depth: int) -> Node:
        node = self.either(depth + 1)
        if self._peek()[0] != "close":
            raise FilterError("a `(` without its `)`", position)
        self.index += 1
        return node


def _flagged(text: str, position: int) -> Node:
    """Read `-l selector` or `-f fuzzy`."""
    flag, value = text[:2], _unquoted(text[2:].strip())
    return Labels(value, position) if flag == "-l" else Words(value, "fuzzy", position)


def _predicate(text: str, position: int) -> Predicate:
    found = _PREDICATE.fullmatch(text)
    name, operator, value = found.groups() if found else (text, "=", "")
    return Predicate(name.lower(), operator, _unquoted(value), position)


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def quoted(value: str) -> str:
    """Return a value as filters read it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
