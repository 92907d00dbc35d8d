"""YAML written as Go's library writes it for Kyverno's CLI: sorted keys, block style, lists at the level of their key.

A string stands plain where it reads back as itself, in single quotes where its characters would be syntax, in double
quotes where it would be read as another type, and as a literal block where it has several lines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine.lang.gotext import plain as go_plain
from engine.lang.yaml.scalars import resolve_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAFE = re.compile(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`=<~][^\n]*")
_DASHED = re.compile(r"[-?:][^\s][^\n]*")
_SYNTAX = re.compile(r": |:$| #|\s$")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt ].*)?")
_OLD_BOOLEANS = frozenset(
    form
    for word in ("y", "n", "yes", "no", "on", "off")
    for form in (word, word.title(), word.upper())
)


def dump(value: Any, *, sort: bool = True) -> str:
    """Return `value` as one YAML document that ends with a newline."""
    return "\n".join(_node(value, "", sort)) + "\n"


def _node(value: Any, indent: str, sort: bool) -> Iterator[str]:
    if isinstance(value, dict) and value:
        yield from _map(value, indent, sort)
    elif isinstance(value, list) and value:
        yield from _list(value, indent, sort)
    else:
        yield indent + _scalar(value, indent)


def _map(value: dict[str, Any], indent: str, sort: bool) -> Iterator[str]:
    for key in sorted(value) if sort else value:
        below = value[key]
        name = _double(key) if "\n" in key else _text(key, indent)
        head = f"{indent}{name}:"
        if isinstance(below, dict) and below:
            yield head
            yield from _map(below, indent + "  ", sort)
        elif isinstance(below, list) and below:
            yield head
            yield from _list(below, indent, sort)
        else:
            yield f"{head} {_scalar(below, indent + '  ')}"


def _list(value: list[Any], indent: str, sort: bool) -> Iterator[str]:
    for item in value:
        lines = _node(item, indent + "  ", sort)
        first = next(lines)
        yield f"{indent}- {first[len(indent) + 2 :]}"
        yield from lines


def _scalar(value: Any, indent: str) -> str:
    if isinstance(value, str):
        return _text(value, indent)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return go_plain(value)


def _text(text: str, indent: str) -> str:
    if _CONTROL.search(text):
        return _double(text)
    if "\n" in text:
        return _block(text, indent) if not text.startswith((" ", "\n")) else _double(text)
    if (
        not text
        or text in _OLD_BOOLEANS
        or _DATE.fullmatch(text)
        or not isinstance(resolve_plain(text), str)
    ):
        return _double(text)
    safe = _SAFE.fullmatch(text) or _DASHED.fullmatch(text)
    if safe and not _SYNTAX.search(text) and not text.startswith(("---", "...")):
        return text
    return "'" + text.replace("'", "''") + "'"


def _double(text: str) -> str:
    import orjson  # here, because loading it takes a tenth of what small commands take

    quoted = orjson.dumps(text.encode("utf-8", "replace").decode()).decode()
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _block(text: str, indent: str) -> str:
    chomp = (
        ""
        if text.endswith("\n") and not text.endswith("\n\n")
        else "+"
        if text.endswith("\n")
        else "-"
    )
    lines = (text.removesuffix("\n")).split("\n")
    return "\n".join([f"|{chomp}", *(f"{indent}{line}" if line else "" for line in lines)])
