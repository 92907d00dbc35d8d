"""YAML text of plain values, in block style with lists at the column of their key, in one of two dialects.

`GO` is what Go's library writes, byte for byte: block messages and what upstream's command line prints are made by it.
`SAFE` is for drafts, signatures and `-o yaml`: a text stands plain only where nobody's YAML could take it for something
else, and nothing in it can steer a terminal. Both read back as exactly the values that were written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Protocol

from engine.errors import EvaluationError
from engine.lang.gotext import plain as go_number
from engine.lang.unseen import RANGES, unseen

from .scalars import resolve_plain


class Dialect(Protocol):
    """How keys, texts and numbers are written."""

    def key(self, text: str) -> str:
        """Return a text as a key, which is always on one line."""

    def text(self, text: str, column: int) -> str:
        """Return a text as a value; further lines of it stand at `column`."""

    def number(self, value: float) -> str:
        """Return a number."""


def write(value: Any, dialect: Dialect | None = None, *, sort: bool = False) -> str:
    """Return a value as one document that ends with a newline, SAFE where no dialect is named.

    Keys are in the order given, or sorted.
    """
    return "\n".join(_block(value, 0, dialect or SAFE, sort=sort)) + "\n"


def write_all(values: list[Any], dialect: Dialect | None = None, *, sort: bool = False) -> str:
    """Return several documents with separators between them."""
    return "---\n".join(write(value, dialect, sort=sort) for value in values)


def _block(value: Any, column: int, dialect: Dialect, *, sort: bool) -> Iterator[str]:
    """Yield the lines of a value that begins at `column`."""
    if isinstance(value, dict) and value:
        for key in sorted(value) if sort else value:
            yield from _entry(key, value[key], column, dialect, sort=sort)
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = _block(item, column + 2, dialect, sort=sort)
            yield f"{' ' * column}- {first[column + 2 :]}"
            yield from rest
    else:
        yield f"{' ' * column}{_scalar(value, column, dialect)}"


def _entry(key: str, value: Any, column: int, dialect: Dialect, *, sort: bool) -> Iterator[str]:
    """Yield the lines of one key with its value."""
    head = f"{' ' * column}{dialect.key(key)}:"
    if isinstance(value, dict | list) and value:
        yield head
        inner = column if isinstance(value, list) else column + 2
        yield from _block(value, inner, dialect, sort=sort)
    else:
        yield f"{head} {_scalar(value, column + 2, dialect)}"


def _scalar(value: Any, column: int, dialect: Dialect) -> str:
    if isinstance(value, str):
        return dialect.text(value, column)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return dialect.number(value)


def _literal(text: str, column: int, hint: str = "") -> str:
    """Return several lines as a literal block, none of them folded; the mark says how many line ends it has."""
    lines = text.split("\n")
    mark = "-" if lines[-1] else "+" if not lines[-2] else ""
    pad = " " * column
    shown = lines if lines[-1] else lines[:-1]
    return "\n".join([f"|{hint}{mark}", *(pad + line if line else "" for line in shown)])


_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]")
_DATES: Final = (
    "2006-1-2",
    "2006-1-2T15:4:5.999999999Z07:00",
    "2006-1-2t15:4:5.999999999Z07:00",
    "2006-1-2 15:4:5.999999999",
)
"""Layouts of what Go's library reads as an instant where it is not quoted."""
_INDICATORS: Final = frozenset("#,[]{}&*!|>'\"%@`")
_NOT_GO: Final = "[^\\n\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd]"
_UNPRINTABLE: Final = re.compile(_NOT_GO)
"""What Go's library shows as escapes: of the characters beyond the basic plane, all."""
_SPACE_BREAK: Final = re.compile(r" \n")
_BREAK_SPACE: Final = re.compile(r"\n ")
_ESCAPED: Final = re.compile(rf'["\\\n]|{_NOT_GO}')
_ESCAPES: Final = {
    "\0": "\\0", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r",
    "\x1b": "\\e", '"': '\\"', "\\": "\\\\", "\x85": "\\N", "\xa0": "\\_", "\u2028": "\\L", "\u2029": "\\P",
}  # fmt: skip


class _Go:
    """Quotes for texts that would be read back as something else, literal blocks for several lines, then what syntax allows."""

    def key(self, text: str) -> str:
        # Go's library leaves `<<` plain here, too, and then reads it as another word for merging.
        return _go_double(text) if "\n" in text or text == "<<" else self.text(text, 0)

    def text(self, text: str, column: int) -> str:
        if "\n" in text:
            if not _fits_block(text):
                return _go_double(text)
            return _literal(text, column, "2" if text[0] in " \n" else "")
        if _is_other_in_go(text) or _UNPRINTABLE.search(text):
            return _go_double(text)
        if _fits_plain(text):
            return text
        doubled = text.replace("'", "''")
        return f"'{doubled}'"

    def number(self, value: float) -> str:
        return go_number(value)


def _is_other_in_go(text: str) -> bool:
    """Tell whether a plain text would be read back as a number, a boolean, null or a date."""
    return (
        text == ""
        or not isinstance(resolve_plain(text), str)
        or bool(_BASE_60.fullmatch(text))
        or (bool(_DATE.match(text)) and _is_instant(text))
    )


def _is_instant(text: str) -> bool:
    from engine.lang import golayout  # here, because few texts begin like a date

    for layout in _DATES:
        with suppress(EvaluationError):
            golayout.parse(layout, text)
            return True
    return False


def _fits_plain(text: str) -> bool:
    first, last = text[0], text[-1]
    if first == " " or last == " " or first in _INDICATORS:
        return False
    if first in "?:-" and (len(text) == 1 or text[1] == " "):
        return False
    if text.startswith(("---", "...")) or last == ":":
        return False
    return ": " not in text and " #" not in text


def _fits_block(text: str) -> bool:
    return not (
        _UNPRINTABLE.search(text)
        or _SPACE_BREAK.search(text)
        or text.endswith(" ")
        or (text.startswith("\n") and _BREAK_SPACE.match(text))
    )


def _go_double(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda found: _go_escape(found[0]), text) + '"'


def _go_escape(char: str) -> str:
    if known := _ESCAPES.get(char):
        return known
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


_HIDDEN: Final = rf"{RANGES}\xa0"
_WORDS: Final = re.compile(rf"[A-Za-z0-9_./+(<~^$-][^\t\n{_HIDDEN}]*")
_SYNTAX: Final = re.compile(r"^-(?:\s|$)|^(?:---|\.\.\.)|:(?:\s|$)|\s#|\s$|^<<$|^[-+.]?[0-9].*[:_]")
_LINES: Final = re.compile(rf"[^\s{_HIDDEN}][^{_HIDDEN}]*")
_LIKE_A_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")


class _Safe:
    """Plain only where every reader agrees, else in double quotes with escapes, or a literal block of harmless lines."""

    def key(self, text: str) -> str:
        if (
            _WORDS.fullmatch(text)
            and not _SYNTAX.search(text)
            and not _LIKE_A_DATE.match(text)
            and isinstance(resolve_plain(text), str)
        ):
            return text
        return _safe_double(text)

    def text(self, text: str, column: int) -> str:
        if "\n" in text and _LINES.fullmatch(text):
            return _literal(text, column)
        return self.key(text)

    def number(self, value: float) -> str:
        import orjson  # here, because loading it takes a tenth of what small commands take

        return orjson.dumps(value).decode()


def _safe_double(text: str) -> str:
    """Return a text in double quotes; what YAML forbids in plain sight is escaped, half characters are replaced."""
    import orjson  # here, because loading it takes a tenth of what small commands take

    quoted = orjson.dumps(text.encode("utf-8", "replace").decode()).decode()
    return unseen().sub(_safe_escape, quoted).replace("\xa0", "\\u00a0")


def _safe_escape(found: re.Match[str]) -> str:
    """Return a character as YAML escapes it: one number of four or eight digits."""
    number = ord(found[0])
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


GO: Final[Dialect] = _Go()
SAFE: Final[Dialect] = _Safe()
