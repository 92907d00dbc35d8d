"""Functions on texts beyond the standard ones (the strings extension); positions count characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from engine.lang.cel.errors import CelError, shown

from .format import formatted
from .registry import Library

if TYPE_CHECKING:
    from engine.lang.cel.env import CelEnv

LIBRARY: Final = Library()
_LOWER: Final = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})
_UPPER: Final = str.maketrans({chr(code): chr(code - 32) for code in range(97, 123)})
_WHITE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED: Final = re.compile(r'[\a\b\f\n\r\t\v\\"\ud800-\udfff]')
_QUOTES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip


@LIBRARY.add("string.charAt(int) -> string")
def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


@LIBRARY.add("string.indexOf(string, int) -> int")
def _index_of_from(text: str, part: str, start: int) -> int:
    if part == "":
        return start
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


@LIBRARY.add("string.lastIndexOf(string, int) -> int")
def _last_index_of_until(text: str, part: str, last: int) -> int:
    if part == "":
        return last
    if last < 0:
        raise CelError(f"index out of range: {last}")
    return text.rfind(part, 0, last + len(part)) if last < len(text) else -1


@LIBRARY.add("string.substring(int) -> string")
def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text[start:]


@LIBRARY.add("string.substring(int, int) -> string")
def _substring_until(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise CelError(f"index out of range: {index}")
    return text[start:end]


@LIBRARY.add(
    "string.replace(string, string) -> string",
    "string.replace(string, string, int) -> string",
    env=True,
)
def _replace(env: CelEnv, text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old) if count < 0 else min(text.count(old), count)
    env.charge((len(text) + found * len(new)) // 8)
    return text.replace(old, new, count if count >= 0 else -1)


@LIBRARY.add(
    "string.split(string) -> list(string)", "string.split(string, int) -> list(string)", env=True
)
def _split(env: CelEnv, text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        env.charge(text.count(separator))
        return text.split(separator, count - 1 if count > 0 else -1)
    env.charge(len(text))
    if 0 < count < len(text):
        return [*text[: count - 1], text[count - 1 :]]
    return list(text)


@LIBRARY.add("list(string).join() -> string", "list(string).join(string) -> string", env=True)
def _join(env: CelEnv, items: list[Any], separator: str = "") -> str:
    for item in items:
        if not isinstance(item, str):
            raise CelError(f"join: invalid input: {shown(item)}")
    length = sum(map(len, items)) + len(separator) * len(items)
    env.charge(len(items) + length // 8)
    return separator.join(items)


def _escaped(found: re.Match[str]) -> str:
    return _QUOTES.get(found[0], "\ufffd")


LIBRARY.declare(
    {
        "string.indexOf(string) -> int": str.find,
        "string.lastIndexOf(string) -> int": str.rfind,
        "string.lowerAscii() -> string": lambda text: text.translate(_LOWER),
        "string.upperAscii() -> string": lambda text: text.translate(_UPPER),
        "string.reverse() -> string": lambda text: text[::-1],
        "string.trim() -> string": lambda text: text.strip(_WHITE),
        "strings.quote(string) -> string": lambda text: f'"{_QUOTED.sub(_escaped, text)}"',
    }
)
LIBRARY.add("string.format(list) -> string", env=True)(formatted)
