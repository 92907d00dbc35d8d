"""YAML text of plain values, such that Kubernetes' tools and ours read back exactly what was written.

For drafts and `-o yaml`. Block style, lists at the column of their key, as kubectl prints. A text stands plain only where nobody's
YAML could take it for something else; otherwise it is quoted, or a literal block where it has several lines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine.lang.yaml.scalars import resolve_plain

from .harmless import RANGES, unseen

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNPRINTABLE = rf"{RANGES}\xa0"
_WORDS = re.compile(rf"[A-Za-z0-9_./+(<~^$-][^\t\n{_UNPRINTABLE}]*")
_SYNTAX = re.compile(r"^-(?:\s|$)|^(?:---|\.\.\.)|:(?:\s|$)|\s#|\s$|^<<$|^[-+.]?[0-9].*[:_]")
_LINES = re.compile(rf"[^\s{_UNPRINTABLE}][^{_UNPRINTABLE}]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")


def emit(value: Any, *, sort: bool = False) -> str:
    """Return a value as one document that ends with a newline; keys in the order given, or sorted."""
    return "\n".join(_block(value, "", sort=sort)) + "\n"


def _block(value: Any, indent: str, *, sort: bool) -> Iterator[str]:
    """Yield the lines of a value that begins at `indent`."""
    if isinstance(value, dict) and value:
        for key in sorted(value) if sort else value:
            yield from _entry(key, value[key], indent, sort=sort)
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = _block(item, f"{indent}  ", sort=sort)
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from rest
    else:
        yield indent + scalar(value, indent)


def _entry(key: str, value: Any, indent: str, *, sort: bool) -> Iterator[str]:
    """Yield the lines of one key with its value."""
    head = f"{indent}{_inline(key)}:"
    if isinstance(value, dict | list) and value:
        yield head
        yield from _block(value, indent if isinstance(value, list) else f"{indent}  ", sort=sort)
    else:
        yield f"{head} {scalar(value, f'{indent}  ')}"


def scalar(value: Any, indent: str) -> str:
    """Return a value without parts; the lines of a literal block stand at `indent`."""
    if isinstance(value, str):
        return (
            _literal(value, indent) if "\n" in value and _LINES.fullmatch(value) else _inline(value)
        )
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    import orjson  # here, because loading it takes a tenth of what small commands take

    return orjson.dumps(value).decode()


def _inline(text: str) -> str:
    """Return a text on one line: plain, else in double quotes with escapes."""
    words = _WORDS.fullmatch(text)
    if (
        words
        and not _SYNTAX.search(text)
        and not _DATE.match(text)
        and isinstance(resolve_plain(text), str)
    ):
        return text
    return _double(text)


def _double(text: str) -> str:
    """Return a text in double quotes; what YAML forbids in plain sight is escaped, half characters are replaced."""
    import orjson  # here, because loading it takes a tenth of what small commands take

    quoted = orjson.dumps(text.encode("utf-8", "replace").decode()).decode()
    return unseen().sub(_escape, quoted).replace("\xa0", "\\u00a0")


def _escape(found: re.Match[str]) -> str:
    """Return a character as YAML escapes it: one number of four or eight digits."""
    number = ord(found[0])
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _literal(text: str, indent: str) -> str:
    """Return a text of several lines as a literal block; the mark says how many line ends it has."""
    lines = text.split("\n")
    mark = "-" if lines[-1] else "+" if not lines[-2] else ""
    shown = lines if lines[-1] else lines[:-1]
    return "\n".join([f"|{mark}", *(f"{indent}{line}" if line else "" for line in shown)])
