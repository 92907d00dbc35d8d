"""How a value is put into the text of an expression: as data of the place where it stands, never as more expression.

Between quotes every value can stand, because it is quoted anew. Outside of them only a number can, or a name that goes
on a path that the text began: everything else would let the value say what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.lang.gotext import compact_json
from engine.lang.jmes.gojson import GoJsonError, decode
from engine.lang.lazy_regex import regex

from .braces import Braces, Item, Items

if TYPE_CHECKING:
    from engine.model.json import Json


Insert = Callable[["Json"], str]
Piece = tuple[str, "Braces | None", "Insert | None"]
"""Text of an expression, or a variable in it with what makes text of its value."""

_NAMES = regex(r"[A-Za-z0-9_]+(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_NUMBER = regex(r"-?[0-9]+\Z")
_NAME_SO_FAR = regex(r"[A-Za-z0-9_]\Z")
_SPACE = frozenset(" \t\n\r")


def splice(items: Items, *, starts_path: bool = False) -> tuple[Piece, ...]:
    """Cut the text of an expression where values go, each with its way in.

    `starts_path` says that a value at the very start goes on a path, too: that of the data that the whole expression
    is asked of. The ways in raise EvaluationError for a value that cannot stand at its place.
    """
    pieces: list[Piece] = []
    at = 0
    goes_on = starts_path
    while at < len(items):
        item = items[at]
        if isinstance(item, Braces):
            goes_on = _goes_on_a_path(items, at, goes_on=goes_on)
            pieces.append(("", item, _as_name if goes_on else _as_number))
            at += 1
        elif item in _QUOTES:
            end = _end_of_quote(items, at)
            pieces += _QUOTES[item](items[at:end])
            at = end
        else:
            pieces.append((item, None, None))
            at += 1
    return tuple(_joined(pieces))


def unquoted(items: Items, *, starts_path: bool = False) -> list[Braces]:
    """Return the variables in the text of an expression that stand outside quotes, where few values can stand."""
    return [
        braces
        for _, braces, insert in splice(items, starts_path=starts_path)
        if braces is not None and insert in (_as_name, _as_number)
    ]


def _joined(pieces: list[Piece]) -> Iterator[Piece]:
    """Yield the pieces with text that stands side by side as one."""
    text = ""
    for piece in pieces:
        if piece[1] is None:
            text += piece[0]
            continue
        if text:
            yield (text, None, None)
        text = ""
        yield piece
    if text:
        yield (text, None, None)


def _goes_on_a_path(items: Items, at: int, *, goes_on: bool) -> bool:
    """Tell whether a value stands after a dot or within a name, and is not called as a function.

    `goes_on` says so of the value before it, or of the start, for one that nothing stands before.
    """
    after = at + 1
    while after < len(items) and items[after] in _SPACE:
        after += 1
    if items[after : after + 1] == ("(",):
        return False
    before = items[at - 1] if at else None
    if not isinstance(before, str):
        return goes_on
    if _NAME_SO_FAR.match(before):
        return True
    while at and items[at - 1] in _SPACE:
        at -= 1
    return items[at - 1 : at] == (".",)


def _end_of_quote(items: Items, start: int) -> int:
    """Return where the quoted part that begins at `start` ends; the end of all where it is never closed.

    Between `'` a backslash only escapes `'`, elsewhere whatever follows.
    """
    quote = items[start]
    at = start + 1
    while at < len(items):
        if items[at] == "\\" and (quote != "'" or items[at + 1 : at + 2] == ("'",)):
            at += 2
        elif items[at] == quote:
            return at + 1
        else:
            at += 1
    return len(items)


def _raw(quoted: Items) -> list[Piece]:
    """Write a raw string with values in it as the same string in JSON, in which every character can be escaped."""
    if not any(isinstance(item, Braces) for item in quoted):
        return _plain(quoted)
    pieces: list[Piece] = [('`"', None, None)]
    body = quoted[1:-1] if quoted[-1:] == ("'",) else quoted[1:]
    for index, item in enumerate(body):
        if isinstance(item, Braces):
            pieces.append(("", item, _in_json_text))
        elif not (item == "\\" and body[index + 1 : index + 2] == ("'",)):
            pieces.append((_in_json_text(item), None, None))
    pieces.append(('"`' if quoted[-1:] == ("'",) else "", None, None))
    return pieces


def _name(quoted: Items) -> list[Piece]:
    return [
        ("", item, _in_json_text) if isinstance(item, Braces) else (item, None, None)
        for item in quoted
    ]


def _literal(quoted: Items) -> list[Piece]:
    """Let values stand in a JSON literal as JSON, or as part of a text in it."""
    pieces: list[Piece] = []
    in_text = escaped = False
    for item in quoted:
        if isinstance(item, Braces):
            pieces.append(("", item, _in_json_text if in_text else _as_json))
            continue
        if item == '"' and not escaped:
            in_text = not in_text
        escaped = item == "\\" and not escaped
        pieces.append((item, None, None))
    return pieces


def _plain(quoted: Items) -> list[Piece]:
    return [(item, None, None) for item in quoted if isinstance(item, str)]


_QUOTES: dict[Item, Callable[[Items], list[Piece]]] = {"'": _raw, '"': _name, "`": _literal}


def _in_json_text(value: Json) -> str:
    import json  # here: few patterns hold variables inside of texts

    text = value if isinstance(value, str) else compact_json(value)
    return _without_backticks(json.dumps(text, ensure_ascii=False)[1:-1])


def _as_json(value: Json) -> str:
    """Return JSON of a value; a text counts as JSON where it is JSON."""
    if not isinstance(value, str):
        return _without_backticks(compact_json(value))
    try:
        decode(value)
    except GoJsonError as error:
        raise EvaluationError("the value is not JSON") from error
    return _without_backticks(value)


def _without_backticks(text: str) -> str:
    return text.replace("`", "\\u0060")


def _as_name(value: Json) -> str:
    text = value if isinstance(value, str) else compact_json(value)
    if _NAMES.match(text):
        return text
    return _as_number(value)


def _as_number(value: Json) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return compact_json(value)
    if isinstance(value, str) and _NUMBER.match(value):
        return value
    raise EvaluationError("the value is data, and outside quotes only a name or a number may stand")
