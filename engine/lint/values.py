"""Rules that may decide otherwise because values are data: Kyverno reads what some of their values hold as expressions.

Which values hold braces nobody knows before they are there. So this names the places where policies are known to rely on it:
texts with a value that was looked up, which may be a template, and expressions that are put together from values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine.errors import LimitError
from engine.fields import items
from engine.lang import jmes
from engine.lang.variables.braces import Braces, Items, cut
from engine.lang.variables.splicing import unquoted

from .variables import texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Json

_INDEX = re.compile(r"elementIndex[0-9]*\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONSTANT = ("/name", "/match", "/exclude")


def rereadings(rule: dict[str, Any]) -> list[str]:
    """Return the texts of a rule, as a policy has it, that may come to something else than in Kyverno."""
    looked_up = _looked_up(rule)
    found: dict[str, None] = {}
    for text in texts(rule, holding="{{", without=frozenset(_CONSTANT)):
        try:
            items = cut(text.text)
        except LimitError:
            continue
        is_path = text.path.endswith("/jmesPath")
        if is_path:
            doubtful = any(_is_open(one) for one in unquoted(items, starts_path=True))
        else:
            is_embedded = len(items) > 1 and any(
                _names(one) & looked_up for one in items if isinstance(one, Braces)
            )
            doubtful = is_embedded or any(_is_put_together(one) for one in items)
        if doubtful:
            found[text.text] = None
    return list(found)


def _is_put_together(item: str | Braces) -> bool:
    """Tell whether a value stands outside quotes in an expression, other than the index of a loop."""
    if isinstance(item, str):
        return False
    return any(_is_open(one) for one in unquoted(item.items)) or any(
        map(_is_put_together, item.items)
    )


def _is_open(braces: Braces) -> bool:
    return not _INDEX.match(_written(braces.items))


def _written(items: Items) -> str:
    return "".join(item for item in items if isinstance(item, str))


def _names(braces: Braces) -> frozenset[str]:
    """Return the names that an expression mentions, those of variables in it too."""
    text = _written(braces.items)
    inner = frozenset[str]().union(*(_names(o) for o in braces.items if isinstance(o, Braces)))
    try:
        return jmes.compile(text).names | inner
    except jmes.ExpressionError:
        return frozenset(_NAME.findall(text)) | inner


def _looked_up(rule: Json) -> frozenset[str]:
    """Return the context entries that come from look-ups, and the variables that are made of those."""
    found: set[str] = set()
    entries = list(_entries(rule))
    for _ in entries:
        before = len(found)
        for entry in entries:
            variable = entry.get("variable")
            if variable is None or any(
                found.intersection(_NAME.findall(text.text)) for text in texts(variable)
            ):
                found.add(str(entry.get("name")))
        if len(found) == before:
            break
    return frozenset(found)


def _entries(node: Json) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield from items(node, "context")
        for item in node.values():
            yield from _entries(item)
    elif isinstance(node, list):
        for item in node:
            yield from _entries(item)
