"""What a rule wants to know of a request beside its object: who asks, by which operation, and what was there before.

Where nobody proved that the API server told it, a rule that does work on other objects (generate, mutate existing) is asked
about the object as it is in the cluster, as nobody's; one that needs to know more is not carried out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.lang.lazy_regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .model import Block, Json, Rule

WHO_ASKS: Final = "who asks"
_WHO: Final = ("subjects", "roles", "clusterRoles")
_SEEN: Final = frozenset({"CREATE", "UPDATE"})
"""Operations that leave an object which can be looked at."""

_EXPRESSION: Final = regex(r"\{\{(.*?)\}\}", re.DOTALL)
_LITERAL: Final = regex(r"'(?:[^'\\]|\\.)*'|`[^`]*`")
_ACCOUNT: Final = regex(r"\bserviceAccount(?:Name|Namespace)\b")
_REQUEST: Final = regex(
    r'(?:(?<![\w."-])|(?<=@\.))"?request"?(?!\w)(?!\s*\.\s*"?(?:object|name|namespace|kind|operation)\b)'
)
_OBJECT: Final = regex(r"\b(?:object|oldObject|images|element|target)\b|\brequest\b(?!\s*\.)")
_CEL: Final = regex(
    r"(?<![\w.])(?:request\.(?!object\b|name\b|namespace\b|kind\b|operation\b)|oldObject\b)"
)
_CEL_REQUEST: Final = regex(
    r"(?<![\w.])(?:oldObject\b|request(?!\w|\s*\.\s*(?:object|name|namespace|kind|operation)\b))"
)
_CEL_TEXTS: Final = frozenset({"expression", "valueExpression", "value"})
_WHOLE_TEXT: Final = frozenset({"jmesPath", "list"})
"""Fields that are an expression without braces."""


def asks_of_request(rule: Rule) -> str:
    """Return what a rule wants to know of a request that its object does not show, nothing for most rules."""
    for block in (rule.match, rule.exclude):
        for entry in _entries(block):
            if any(entry.get(name) for name in _WHO):
                return WHO_ASKS
    if found := _of_match(rule.match):
        return found
    for text in _expressions({key: value for key, value in rule.raw.items() if key not in ("match", "exclude")}):  # fmt: skip
        bare = _LITERAL.sub("", text)
        if _ACCOUNT.search(bare) or "userInfo" in bare or "request.roles" in bare or "request.clusterRoles" in bare:  # fmt: skip
            return WHO_ASKS
        if _REQUEST.search(bare):
            return "the request"
    return "the request" if _CEL.search(_LITERAL.sub("", _conditions(rule.raw))) else ""


def denies_who_asks(rule: Rule) -> bool:
    """Tell whether a rule denies requests by who asks, whatever their object is: no object can have broken it before."""
    deny = (rule.validate or {}).get("deny")
    if deny is None or asks_of_request(rule) != WHO_ASKS:
        return False
    asked = [deny.get("conditions") or rule.preconditions, list(rule.context)]
    return not any(_OBJECT.search(_LITERAL.sub("", text)) for text in _expressions(asked))


def asks_of_expressions(spec: Block) -> str:
    """Return what a policy written in CEL wants to know of a request that its object does not show."""
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        operations = rule.get("operations")
        if operations and not {*_SEEN, "*"} & {*operations}:
            return "deletions"
        if any("/" in str(resource) for resource in rule.get("resources") or ()):
            return "requests for subresources"
    bare = [_LITERAL.sub("", text) for text in _texts(spec)]
    if any("userInfo" in text for text in bare):
        return WHO_ASKS
    return "the request" if any(map(_CEL_REQUEST.search, bare)) else ""


def _texts(value: Json, name: str = "") -> Iterator[str]:
    """Yield the expressions and templates in a part of a policy written in CEL."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _texts(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, str) and name in _CEL_TEXTS:
        yield value


def _of_match(match: Block) -> str:
    for entry in _entries(match):
        resources = entry.get("resources")
        if not isinstance(resources, dict):
            continue
        operations = resources.get("operations")
        if operations and not _SEEN & {*operations}:
            return "deletions"
        if any(_has_subresource(str(kind)) for kind in resources.get("kinds") or ()):
            return "requests for subresources"
    return ""


def _has_subresource(kind: str) -> bool:
    """Tell whether a kind, written GROUP/VERSION/KIND/SUBRESOURCE in part, names a part of objects: kinds begin with capitals."""
    parts = kind.split("/")
    return len(parts) > 1 and parts[-1][:1].islower()


def _entries(block: Block) -> Iterator[Block]:
    for entry in (*(block.get("any") or ()), *(block.get("all") or ()), block):
        if isinstance(entry, dict):
            yield entry


def _expressions(value: Json, name: str = "") -> Iterator[str]:
    """Yield the expressions in a block of a rule."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _expressions(key)
            yield from _expressions(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from _expressions(one, name)
    elif isinstance(value, str):
        yield from _EXPRESSION.findall(value)
        if name in _WHOLE_TEXT and "{{" not in value:
            yield value


def _conditions(raw: Block) -> str:
    found = raw.get("celPreconditions")
    if not found:
        return ""
    import json  # here: few rules have conditions in CEL

    return json.dumps(found)
