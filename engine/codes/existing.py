"""Whether an update leaves a violation as it was: what may be forgiven where the rule's exceptions are to be asked for.

A rule reports its first miss only. So everything has to stay but what no violation of this rule can lie in: status, and of
labels, annotations and the number of replicas those that the rule does not look at. Otherwise one admitted violation would let
all later ones of the same object through.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from .violations import violation_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.model import Forgiven, Object, Outcome, Rule

_UNRELATED: Final = frozenset({"match", "exclude", "name"})
_WHOLE: Final = re.compile(
    r"\b(?:request|object|oldObject|metadata|spec)\b(?!\s*\.\s*\\?[\"A-Za-z_])"
)
"""A part of the object that an expression takes as a whole, so that nothing of it can be said not to matter."""


def is_left_as_it_was(before: Object, after: Object, forgiven: Forgiven, rule: Rule | None) -> bool:
    """Tell whether an update keeps what is wrong with an object; an unknown rule may look at everything."""
    parts = {} if rule is None else {k: v for k, v in rule.raw.items() if k not in _UNRELATED}
    texts = None if rule is None else tuple(_texts(parts))
    unread = {word for word in ("label", "annotation", "replicas") if not _reads(texts, word)}
    old = _violation(before, forgiven.before, unread)
    return old == _violation(after, forgiven.now, unread)


def _texts(part: Any) -> Iterator[tuple[str, bool]]:
    """Yield every text that can decide, and whether it can be an expression: a key of a pattern is none."""
    if isinstance(part, dict):
        for key, item in part.items():
            if key != "message":
                yield key, "{{" in key
                yield from _texts(item)
    elif isinstance(part, list):
        for item in part:
            yield from _texts(item)
    elif isinstance(part, str):
        yield part, True


def _reads(texts: Iterable[tuple[str, bool]] | None, word: str) -> bool:
    return texts is None or any(
        word in text or (is_expression and _WHOLE.search(text) is not None)
        for text, is_expression in texts
    )


def _violation(obj: Object, failures: Iterable[Outcome], unread: set[str]) -> str:
    # the miss without a path stands for the labels and annotations that are left
    misses = [("", ""), *(("", one.path) for one in failures)]
    return violation_of(_without(obj, unread), misses)


def _without(obj: Object, unread: set[str]) -> Object:
    """Return an object without what a rule does not look at."""
    made = dict(obj)
    spec, metadata = obj.get("spec"), obj.get("metadata")
    if isinstance(spec, dict):
        made["spec"] = _left(spec, unread)
    if isinstance(metadata, dict):
        made["metadata"] = _left(metadata, {f"{word}s" for word in unread})
    return made


def _left(part: dict[str, Any], unread: set[str]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in unread}
