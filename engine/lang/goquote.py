"""Go's quoted form of texts (`%q`), and values as Go source, which stand in texts that have to equal upstream's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang import gotext
from engine.lang.lazy_regex import regex

if TYPE_CHECKING:
    import re

    from engine.model import Json

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


def go_syntax(value: Json) -> str:
    """Return a decoded JSON value as Go source, like `%#v` of one inside a map."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(go_syntax, value))}}}"
    if isinstance(value, dict):
        members = ", ".join(f"{quote(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    return "interface {}(nil)" if value is None else gotext.plain(value)


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
