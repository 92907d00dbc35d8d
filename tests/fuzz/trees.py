"""Changed trees: JSON values of the seeds with parts replaced, doubled, deepened, by values that nobody would write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from random import Random

TEXTS: Final = (
    "", "*", "?*", "!*", "a" * 3000, "{{ request.object }}", "{{", "}}", "{{@}}", "{{ request.object.metadata.name }}", "1Gi", "-1", "1e999",
    "<5 & >3 | !=4", "1-5", "2!-9", "é🐱", "\u0000", "nginx:1.2@sha256:" + "0" * 64, "2026-11-22T00:00:00Z", "1h30m", "$(./../a)", "^(a)",
    "(image)", "+(a)", "=(a)", "X(a)", "<(a)", "kyverno.io", "../../..", "/", "~1", "~0", "-", "[]", "{}", "null", "true", "٣", "１２",
)  # fmt: skip
NUMBERS: Final = (0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 0.1, 1e308, -0.0)
KEYS: Final = (
    "a", "", "(a)", "^(containers)", "=(spec)", "+(labels)", "X(hostPath)", "<(a)", "*", "?*", "metadata", "name", "namespace", "labels",
    "spec", "containers", "kind", "$patch", "~1", "a/b", "0", "-1",
)  # fmt: skip


def leaf(chance: Random) -> Any:
    """Return a value without parts."""
    kind = chance.random()
    if kind < 0.6:
        return chance.choice(TEXTS)
    return chance.choice(NUMBERS) if kind < 0.85 else chance.choice((None, True, False))


def grown(chance: Random, depth: int) -> Any:
    """Return a small tree."""
    kind = chance.random()
    if depth <= 0 or kind < 0.4:
        return leaf(chance)
    size = chance.choice((0, 1, 2, 3))
    if kind < 0.6:
        return [grown(chance, depth - 1) for _ in range(size)]
    return {chance.choice(KEYS): grown(chance, depth - 1) for _ in range(size)}


def deep(chance: Random) -> Any:
    """Return a value nested far beyond what objects have."""
    value: Any = leaf(chance)
    for _ in range(chance.choice((20, 90, 150, 400))):
        value = [value] if chance.random() < 0.5 else {chance.choice(KEYS): value}
    return value


def long(chance: Random) -> Any:
    """Return a list or a map with many parts."""
    size = chance.choice((50, 500, 3000))
    if chance.random() < 0.5:
        return [leaf(chance)] * size
    return {f"{chance.choice(KEYS)}{number}": leaf(chance) for number in range(size)}


def strange(chance: Random) -> Any:
    """Return what stands in for a part that is replaced."""
    kind = chance.random()
    if kind < 0.02:
        return deep(chance)
    return long(chance) if kind < 0.03 else grown(chance, 3)


def changed(chance: Random, value: Any) -> Any:
    """Return a tree with one to four places changed; the given one stays as it is."""
    made = _copied(value)
    for _ in range(chance.choice((1, 1, 2, 4))):
        made = _changed_once(chance, made)
    return made


def _changed_once(chance: Random, root: Any) -> Any:
    places = list(_places(root))
    if not places or chance.random() < 0.02:
        return strange(chance)
    holder, key = chance.choice(places)
    act = chance.random()
    if act < 0.5:
        holder[key] = strange(chance)
    elif act < 0.6:
        other = chance.choice(places)
        holder[key] = _copied(other[0][other[1]])
    elif act < 0.75:
        _moved(chance, holder, key)
    elif isinstance(holder[key], str):
        holder[key] = cut(chance, holder[key])
    else:
        del holder[key]
        return root
    return root


def _moved(chance: Random, holder: Any, key: Any) -> None:
    """Give a part another key, or stand it twice in its list."""
    if isinstance(holder, dict):
        holder[chance.choice(KEYS)] = holder.pop(key)
    else:
        holder.insert(chance.randrange(len(holder) + 1), holder[key])


def _places(root: Any) -> Any:
    pending = [root]
    while pending:
        holder = pending.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()  # fmt: skip
        for key in keys:
            yield holder, key
            pending.append(holder[key])


def cut(chance: Random, text: str) -> str:
    """Return a text with a piece taken out, doubled or replaced."""
    at = chance.randrange(len(text) + 1)
    end = min(len(text), at + chance.choice((0, 1, 1, 3, 10)))
    new = chance.choice(("", text[at:end] * 2, chance.choice(TEXTS), chr(chance.randrange(32, 127))))  # fmt: skip
    return text[:at] + new + text[end:]


def packed(value: Any) -> bytes:
    """Return a tree as JSON, however deep."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


def _copied(value: Any) -> Any:
    return json.loads(packed(value))
