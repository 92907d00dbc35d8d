"""YAML that every reader takes the same way: sorted keys, and quotes around whatever is not plainly a word.

Signed text is read again by other programs with other ideas of YAML: `1e3`, `0o17`, `y` or `12:30` are numbers, booleans
or text depending on who reads. A signature is worth nothing if they disagree, so doubtful strings are always quoted.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Json

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_NOT_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_BLOCK_LINE = re.compile(r"[\x20-\x7e]*[\x21-\x7e]|")
_MAX_PLAIN = 120


def write_document(value: Json) -> str:
    """Return one document as YAML, with a newline at its end."""
    return "\n".join(_lines(value, "")) + "\n"


def write_documents(values: list[Json]) -> str:
    """Return several documents with separators between them."""
    return "---\n".join(write_document(value) for value in values)


def _lines(value: Json, indent: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _member(f"{indent}{_scalar(key)}:", value[key], indent)
    elif isinstance(value, list) and value:
        for item in value:
            yield from _item(item, indent)
    else:
        yield f"{indent}{_scalar(value)}"


def _member(head: str, value: Json, indent: str) -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        yield head
        yield from _lines(value, indent if isinstance(value, list) else f"{indent}  ")
    elif isinstance(value, str) and _is_block(value):
        yield f"{head} |" if value.endswith("\n") else f"{head} |-"
        for line in value.removesuffix("\n").split("\n"):
            yield f"{indent}  {line}" if line else ""
    else:
        yield f"{head} {_scalar(value)}"


def _item(value: Json, indent: str) -> Iterator[str]:
    lines = _lines(value, f"{indent}  ")
    yield f"{indent}- {next(lines)[len(indent) + 2 :]}"
    yield from lines


def _scalar(value: Json) -> str:
    if isinstance(value, str):
        return value if _is_word(value) else json.dumps(value)
    return json.dumps(value)


def _is_word(text: str) -> bool:
    is_plain = len(text) <= _MAX_PLAIN and _WORD.fullmatch(text)
    return bool(is_plain) and text.lower() not in _NOT_WORDS


def _is_block(text: str) -> bool:
    """Tell whether a text of several lines can stand as it is: printable, no odd blanks, one newline at its end."""
    lines = text.removesuffix("\n").split("\n")
    if len(lines) < 2 or not lines[0] or not lines[-1] or lines[0].startswith(" "):
        return False
    return all(_BLOCK_LINE.fullmatch(line) for line in lines)
