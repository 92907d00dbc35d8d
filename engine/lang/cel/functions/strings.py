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


@LIBRARY.add("string.indexOf(string) -> int")
def _index_of(text: str, part: str) -> int:
    return text.find(part)


@LIBRARY.add("string.indexOf(string, int) -> int")
def _index_of_from(text: str, part: str, start: int) -> int:
    if part == "":
        return start
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


@LIBRARY.add("string.lastIndexOf(string) -> int")
def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


@LIBRARY.add("string.lastIndexOf(string, int) -> int")
def _last_index_of_until(text: str, part: str, last: int) -> int:
    if part == "":
        return last
    if last < 0:
        raise CelError(f"index out of range: {last}")
    return text.rfind(part, 0, last + len(part)) if last < len(text) else -1


@LIBRARY.add("string.lowerAscii() -> string")
def _lower(text: str) -> str:
    return text.translate(_LOWER)


@LIBRARY.add("string.upperAscii() -> string")
def _upper(text: str) -> str:
    return text.translate(_UPPER)


@LIBRARY.add("string.reverse() -> string")
def _reverse(text: str) -> str:
    return text[::-1]


@LIBRARY.add("string.trim() -> string")
def _trim(text: str) -> str:
    return text.strip(_WHITE)


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


@LIBRARY.add("string.replace(string, string) -> string", env=True)
def _replace(env: CelEnv, text: str, old: str, new: str) -> str:
    return _replaced(env, text, old, new, -1)


@LIBRARY.add("string.replace(string, string, int) -> string", env=True)
def _replaced(env: CelEnv, text: str, old: str, new: str, count: int) -> str:
    found = text.count(old) if count < 0 else min(text.count(old), count)
    env.charge((len(text) + found * len(new)) // 8)
    return text.replace(old, new, count if count >= 0 else -1)


@LIBRARY.add("string.split(string) -> list(string)", env=True)
def _split(env: CelEnv, text: str, separator: str) -> list[str]:
    return _split_at_most(env, text, separator, -1)


@LIBRARY.add("string.split(string, int) -> list(string)", env=True)
def _split_at_most(env: CelEnv, text: str, separator: str, count: int) -> list[str]:
    if count == 0:
        return []
    if separator:
        env.charge(text.count(separator))
        return text.split(separator, count - 1 if count > 0 else -1)
    env.charge(len(text))
    if 0 < count < len(text):
        return [*text[: count - 1], text[count - 1 :]]
    return list(text)


@LIBRARY.add("list(string).join() -> string", env=True)
def _join(env: CelEnv, items: list[Any]) -> str:
    return _join_with(env, items, "")


@LIBRARY.add("list(string).join(string) -> string", env=True)
def _join_with(env: CelEnv, items: list[Any], separator: str) -> str:
    for item in items:
        if not isinstance(item, str):
            raise CelError(f"join: invalid input: {shown(item)}")
    length = sum(map(len, items)) + len(separator) * len(items)
    env.charge(len(items) + length // 8)
    return separator.join(items)


@LIBRARY.add("strings.quote(string) -> string")
def _quote(text: str) -> str:
    return '"' + _QUOTED.sub(lambda found: _QUOTES.get(found[0], "\ufffd"), text) + '"'


LIBRARY.add("string.format(list) -> string", env=True)(formatted)
