"""Go's quoted form of texts (`%q`), which stands in error texts that have to equal upstream's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang.lazy_regex import regex

if TYPE_CHECKING:
    import re

_SPECIAL: Final = regex(r'["\\]|[^\x20-\x7e]')
_BYTES = regex(r'["\\]|[^\x20-\x7f]')
_NAMED: Final = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r",
    "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def quote(text: str) -> str:
    """Return `text` between double quotes, with Go's escapes for what cannot be printed."""
    return f'"{_SPECIAL.sub(_escaped, text)}"'


def quote_bytes(text: str) -> str:
    """Return `text` between double quotes as Go's time package does: the bytes of what is not ASCII in hexadecimal."""
    return f'"{_BYTES.sub(_in_hexadecimal, text)}"'


def _in_hexadecimal(found: re.Match[str]) -> str:
    char = found.group()
    if char in '"\\':
        return f"\\{char}"
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "replace"))


def _escaped(found: re.Match[str]) -> str:
    char = found.group()
    code = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if char.isprintable():
        return char
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
