r"""Regular expressions that users write: RE2 syntax, linear time, Go's error texts and Go's rules of replacing.

Go's regexp package and the RE2 library are the same language; what differs (the words of errors, `$1` in replacements,
`\C`) is adjusted here, so that nothing else in the engine has to know the library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import re2

from engine.errors import EvaluationError, LimitError
from engine.lang.work import charge

MAX_PATTERN: Final = 10_000
_CACHED_LENGTH: Final = 500
_MAX_RESULT: Final = 8 << 20
_LONGEST_GROUP_NUMBER: Final = 8
_MEMORY: Final = 2 << 20
"""Bytes that one expression may take with the states that texts have led it to."""
_COST: Final = 2
"""Of one instruction at one character, where the library has to try all of them at once."""
_MATCH_COST: Final = 3_000
_MATCHES: Final = 256
_COMPILE_COST: Final = 5_000
"""Of one character of an expression."""

_GO_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
_REFERENCE: Final = re.compile(r"\$(?:\$|\{(?P<braced>\w+)\}|(?P<bare>\w+))")
_ANY_BYTE: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\C|\\.", re.DOTALL)


class Pattern:
    """A compiled regular expression."""

    __slots__ = ("_compiled", "_size", "text")

    def __init__(self, text: str, compiled: Any) -> None:
        self.text = text
        self._compiled = compiled
        self._size = compiled.programsize * _COST

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def search(self, text: str) -> bool:
        """Return whether the expression matches somewhere in `text`."""
        charge(len(text) * self._size)
        return self._compiled.search(_encodable(text)) is not None

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Yield all matches with their places in `text`, which holds no halves of surrogate pairs. Raises LimitError."""
        charge(len(text) * self._size)
        for number, found in enumerate(self._compiled.finditer(text), 1):
            if number % _MATCHES == 0:
                charge(_MATCHES * _MATCH_COST)
            yield found

    def replace(self, text: str, template: str) -> str:
        """Replace every match; `$1` and `${name}` in `template` stand for groups. Raises LimitError."""
        if "$" not in template:
            return self.replace_literal(text, template)
        pieces = _template(template, self._compiled.groups, self._compiled.groupindex)
        return self._replaced(
            text,
            lambda found: "".join(
                piece if isinstance(piece, str) else (found.group(piece) or "") for piece in pieces
            ),
        )

    def replace_literal(self, text: str, replacement: str) -> str:
        """Replace every match by `replacement` as it stands. Raises LimitError."""
        return self._replaced(text, lambda _: replacement)

    def _replaced(self, text: str, replacement: Callable[[Any], str]) -> str:
        text = _encodable(text)
        built: list[str] = []
        length = last = 0
        for found in self.matches(text):
            start, end = found.span()
            piece = text[last:start]
            if end > last or start == 0:
                piece += replacement(found)
            length += len(piece)
            if length > _MAX_RESULT:
                raise LimitError(f"the replaced text is longer than {_MAX_RESULT} characters")
            built.append(piece)
            last = end
        built.append(text[last:])
        return "".join(built)


def compile(pattern: str) -> Pattern:  # noqa: A001 - named as in every module of regular expressions
    """Compile RE2 syntax. Raises EvaluationError with Go's text when it is none."""
    return _cached(pattern) if len(pattern) <= _CACHED_LENGTH else _compiled(pattern)


def _compiled(pattern: str) -> Pattern:
    if len(pattern) > MAX_PATTERN:
        raise LimitError(f"the regular expression is longer than {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    charge(len(pattern) * _COMPILE_COST)
    try:
        compiled = re2.compile(_encodable(pattern), options)
    except re2.error as error:
        raise EvaluationError(f"error parsing regexp: {_in_go_words(error)}") from None
    if any(found.group() == "\\C" for found in _ANY_BYTE.finditer(pattern)):
        raise EvaluationError("error parsing regexp: invalid escape sequence: `\\C`")
    return Pattern(pattern, compiled)


_cached = lru_cache(maxsize=128)(_compiled)


def _in_go_words(error: Exception) -> str:
    raw = error.args[0] if error.args else ""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    kind, _, argument = text.partition(": ")
    return f"{_GO_WORDS.get(kind, kind)}: `{argument}`"


def _template(template: str, groups: int, names: dict[str, int]) -> list[str | int]:
    """Return the pieces of a replacement: texts, and numbers of groups."""
    pieces: list[str | int] = []
    last = 0
    for found in _REFERENCE.finditer(template):
        pieces.append(template[last : found.start()])
        last = found.end()
        name = found.group("braced") or found.group("bare")
        pieces.append("$" if name is None else _group(name, groups, names))
    pieces.append(template[last:])
    return pieces


def _group(name: str, groups: int, names: dict[str, int]) -> str | int:
    if name.isascii() and name.isdigit() and (name[0] != "0" or name == "0"):
        number = int(name) if len(name) <= _LONGEST_GROUP_NUMBER else groups + 1
        return number if number <= groups else ""
    return names.get(name, "")


def _encodable(text: str) -> str:
    """Return `text` without halves of surrogate pairs, which have no UTF-8 form."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()
