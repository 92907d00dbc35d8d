"""Go's words for what is wrong with a JSON text.

A state machine over characters like the one in Go's encoding/json, because its texts name the state ("after array
element") in which the wrong character came. Only run on text that could not be decoded.
"""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_STRING: Final = re.compile(r'[^"\\\x00-\x1f]*')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_HEX: Final = re.compile(r"[0-9a-fA-F]{0,4}")
_WORDS: Final = {"t": "true", "f": "false", "n": "null"}
_NUMBER_STARTS: Final = frozenset("-0123456789")
_UNEXPECTED_END: Final = "unexpected end of JSON input"
_MAX_DEPTH: Final = 10_000


class _ComplaintError(Exception):
    pass


def complaint(text: str) -> str:
    """Return Go's error text for `text`, or an empty text when Go's syntax check would pass."""
    try:
        _Scanner(text).document()
    except _ComplaintError as error:
        return str(error)
    return ""


class _Scanner:
    """One walk over a text; `at` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open: list[str] = []

    def document(self) -> None:
        self.value()
        while self.open:
            self.after_value()
        self.space()
        if self.at < len(self.text):
            self.refuse("after top-level value")

    def value(self) -> None:
        """Scan a scalar, or enter a list or object as far as its first scalar."""
        while self.enters():
            pass

    def enters(self) -> bool:
        """Scan a scalar or an empty container, or enter one: True when its first value comes next."""
        char = self.space()
        if char == '"':
            self.string()
        elif char in _WORDS:
            self.word(_WORDS[char])
        elif char in _NUMBER_STARTS:
            self.number()
        elif char == "[":
            return self.opens("]")
        elif char == "{":
            return self.opens("}")
        else:
            self.refuse("looking for beginning of value")
        return False

    def opens(self, closing: str) -> bool:
        self.at += 1
        self.open.append(closing)
        if len(self.open) > _MAX_DEPTH:
            raise _ComplaintError("exceeded max depth")
        if self.space() == closing:
            self.close()
            return False
        if closing == "}":
            self.key()
        return True

    def after_value(self) -> None:
        closing = self.open[-1]
        char = self.space()
        if char == closing:
            self.close()
        elif char == ",":
            self.at += 1
            if closing == "}":
                self.key()
            self.value()
        else:
            self.refuse("after array element" if closing == "]" else "after object key:value pair")

    def key(self) -> None:
        if self.space() != '"':
            self.refuse("looking for beginning of object key string")
        self.string()
        if self.space() != ":":
            self.refuse("after object key")
        self.at += 1

    def close(self) -> None:
        self.at += 1
        self.open.pop()

    def string(self) -> None:
        self.at += 1
        while True:
            self.skip(_STRING)
            char = self.peek()
            if char == '"':
                self.at += 1
                return
            if char != "\\":
                if not char:
                    raise _ComplaintError(_UNEXPECTED_END)
                self.refuse("in string literal")
            self.at += 1
            self.escape()

    def escape(self) -> None:
        char = self.peek_or_space()
        if char == "u":
            self.at += 1
            start = self.at
            self.skip(_HEX)
            if self.at - start < 4:
                self.refuse_at_space("in \\u hexadecimal character escape")
        elif char in 'bfnrt\\/"':
            self.at += 1
        else:
            self.refuse_at_space("in string escape code")

    def word(self, word: str) -> None:
        for expected in word:
            if self.peek_or_space() != expected:
                self.refuse_at_space(f"in literal {word} (expecting {_quoted(expected)})")
            self.at += 1

    def number(self) -> None:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            self.at += 1
            self.refuse_at_space("in numeric literal")
            return
        self.at = found.end()
        char = self.peek()
        if char == "." and "." not in found.group() and "e" not in found.group().lower():
            self.at += 1
            self.refuse_at_space("after decimal point in numeric literal")
        if char in ("e", "E") and "e" not in found.group().lower():
            self.at += 1
            if self.peek() in ("+", "-"):
                self.at += 1
            self.refuse_at_space("in exponent of numeric literal")

    def space(self) -> str:
        """Skip white space and return the next character, or nothing at the end."""
        self.skip(_SPACE)
        return self.peek()

    def skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def peek_or_space(self) -> str:
        return self.peek() or " "

    def refuse(self, where: str) -> None:
        if self.at >= len(self.text):
            raise _ComplaintError(_UNEXPECTED_END)
        raise _ComplaintError(f"invalid character {_quoted(self.text[self.at])} {where}")

    def refuse_at_space(self, where: str) -> None:
        """Refuse as Go does inside a token: the end of the text counts as a space there."""
        raise _ComplaintError(f"invalid character {_quoted(self.peek_or_space())} {where}")


def _quoted(char: str) -> str:
    if char in ("'", '"'):
        return "'\\''" if char == "'" else "'\"'"
    first_byte = char.encode("utf-8", "replace")[0]
    named = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
    if first_byte in named:
        return f"'{named[first_byte]}'"
    if first_byte < 0x20 or first_byte == 0x7F:
        return f"'\\x{first_byte:02x}'"
    shown = chr(first_byte)
    return f"'{shown}'" if shown.isprintable() else f"'\\u{first_byte:04x}'"
