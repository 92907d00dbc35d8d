"""Variables that can never be resolved, or not where they stand (rows A-18, A-91, A-92).

A text is played through as at evaluation, with null for every value: that finds variables that appear only when inner
ones have been replaced. Which roots exist is decided as upstream does, by looking for a known name anywhere in the
expression.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.fields import items
from engine.lang import jmes, wildcard
from engine.lang.lazy_regex import regex
from engine.lang.variables import template
from engine.record import record

from .findings import Finding, error, warning
from .matching import background_text
from .spelling import misspelt_in_jmespath, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Json, Policy, Rule


_REQUESTER = ("serviceAccountName", "serviceAccountNamespace")
_ROOTS = ("element", "elementIndex", "@", "images", "image")
_FUNCTION = r"([a-z_0-9]+\()[^{}]"
_FORBIDDEN_IN_BACKGROUND = regex(
    r"[^.](?:serviceAccountName|serviceAccountNamespace|request\.userInfo|request\.roles|request\.clusterRoles)\b"
)
_ELEMENT = regex(r"element(?:Index)?\b")
_NAME = regex(r"\w+")
_DYNAMIC = frozenset({"/mutate/targets", "/match", "/exclude"})
_IDENTIFYING = ("apiVersion", "kind", "namespace", "name", "uid")
"""The fields that say which object a target is."""
_PREFIX = "policy contains invalid variables: "
_ROUNDS = 64


def check_variables(rule: Rule, path: str, policy: Policy) -> Iterator[Finding]:
    """Yield what is wrong with the variables of one rule."""
    if not any(texts(rule.raw, holding="{{")):
        return
    if policy.background and not (rule.mutate or {}).get("targets"):
        yield from _check_background(rule, path)
    yield from _check_fixed_sections(rule, path)
    dynamic = _DYNAMIC | {
        f"/verifyImages/{index}/attestations" for index in range(len(rule.verify_images))
    }
    allowed = _Allowed.of(rule, policy)
    yield from _check_targets(rule, path, policy)
    for found in texts(rule.raw, holding="{{", without=dynamic):
        yield from _check_element(found, path)
        if why := _unresolvable(found, allowed):
            text = f"{_PREFIX}variable substitution failed for rule {rule.name}: {why}"
            fix = allowed.meant(found.text)
            advice = f"did you mean `{fix[1]}`?" if fix else ""
            yield error(f"{path}{_dotted(found.path)}", text, advice, fix)
        else:
            for variable in template.variables_in(found.text):
                for one in misspelt_in_jmespath(template.expression_of(variable)):
                    yield warning(f"{path}{_dotted(found.path)}", one.message, one.fix)


class _Allowed:
    """Which expressions may stand in a rule: known roots, functions, and names of context entries."""

    def __init__(self, roots: tuple[str, ...], names: list[str]) -> None:
        self.pattern = "|".join((*roots, _FUNCTION))
        self._is_known = re.compile("|".join((*map(re.escape, roots), _FUNCTION))).search
        self._names = (*roots, *names)
        self.patterns = [f"{name}*" for name in names]
        self._tests = [wildcard.compiled(pattern) for pattern in self.patterns]

    @classmethod
    def of(cls, rule: Rule, policy: Policy, *, names_targets: bool = False) -> _Allowed:
        """Collect what one rule may use, or (with `names_targets`) what may say which its targets are: none is known yet."""
        acts_on_targets = (rule.mutate or {}).get("targets") and not names_targets
        target = ("target",) if acts_on_targets else ()
        requester = () if policy.background else _REQUESTER
        return cls(("request", *requester, *_ROOTS, *target), context_names(rule.raw))

    def allows(self, expression: str) -> bool:
        """Tell whether an expression mentions a known root or starts with the name of a context entry."""
        return bool(self._is_known(expression)) or any(test(expression) for test in self._tests)

    def meant(self, text: str) -> tuple[str, str] | None:
        """Return the first unknown name of a text and the known one that it is close to, None where there is none."""
        for variable in template.variables_in(text):
            expression = template.expression_of(variable)
            name = _NAME.match(expression)
            if name and not self.allows(expression.replace('"', "")):
                near = nearest(name[0], self._names)
                return (name[0], near) if near else None
        return None


def _check_targets(rule: Rule, path: str, policy: Policy) -> Iterator[Finding]:
    """Refuse variables that cannot say which objects a mutate rule changes."""
    targets = (rule.mutate or {}).get("targets") or ()
    allowed = _Allowed.of(rule, policy, names_targets=True)
    for index, target in enumerate(targets):
        for name in _IDENTIFYING:
            at = f"/mutate/targets/{index}/{name}"
            found = Text(at, str(target.get(name) or ""))
            if "{{" in found.text and (why := _unresolvable(found, allowed)):
                text = f"{_PREFIX}invalid variables defined at mutate.targets[{index}]: {why}"
                yield error(f"{path}{_dotted(at)}", text)


def _unresolvable(found: Text, allowed: _Allowed) -> str:
    """Return why a text can never be rendered, empty when it can."""
    text = found.text
    for _ in range(_ROUNDS):
        variables = template.variables_in(text)
        for variable in variables:
            if why := _fault(template.expression_of(variable), found.path, allowed):
                return why
            text = text.replace(variable, "null", 1)
        if not variables or variables[0] == found.text:
            break
    return ""


def _fault(expression: str, path: str, allowed: _Allowed) -> str:
    if not expression:
        return f"failed to resolve  at path {path}: invalid query (nil)"
    try:
        jmes.compile(expression)
    except jmes.ExpressionError as problem:
        return (
            f"failed to resolve {expression} at path {path}: invalid JMESPath query {expression}:"
            f" {problem.message}"
        )
    shown = expression.replace('"', "")
    if allowed.allows(shown):
        return ""
    patterns = " ".join(allowed.patterns)
    return f'variable {shown} must match regex "{allowed.pattern}" or patterns [{patterns}]'


def _check_element(found: Text, path: str) -> Iterator[Finding]:
    if "/foreach/" in found.path or found.path.startswith("/generate"):
        return
    for variable in template.variables_in(found.text):
        expression = template.expression_of(variable)
        if _ELEMENT.match(expression):
            text = f"variable '{expression}' present outside of foreach at path {found.path}"
            yield error(f"{path}{_dotted(found.path)}", text)


def _check_fixed_sections(rule: Rule, path: str) -> Iterator[Finding]:
    """Refuse variables in parts that are compiled before there is an object (row A-92)."""
    for name, section in (("match", rule.match), ("exclude", rule.exclude)):
        if any(texts(section, holding="{{")):
            text = f'{_PREFIX}rule "{rule.name}" should not have variables in {name} section'
            yield error(f"{path}.{name}", text)
    for index, entry in enumerate(rule.verify_images):
        if any(texts(entry.get("imageReferences"), holding="{{")):
            name = "imageReferences"
            text = f'{_PREFIX}rule "{rule.name}" should not have variables in {name} section'
            yield error(f"{path}.verifyImages[{index}].{name}", text)


def _check_background(rule: Rule, path: str) -> Iterator[Finding]:
    for found in texts(rule.raw, holding="{{"):
        for variable in template.variables_in(found.text):
            if _FORBIDDEN_IN_BACKGROUND.search(variable):
                yield error(
                    f"{path}{_dotted(found.path)}",
                    background_text(f"variable {variable} is not allowed"),
                )


def _dotted(path: str) -> str:
    parts = path.split("/")[1:]
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


# Every text of a rule with its place, which is what checks of variables and references go over.

DEEPEST = 200
"""Levels of a policy part that are read; rendering refuses anything deeper."""


@record
class Text:
    """A string of a document and its slash path."""

    path: str
    text: str


def texts(
    value: Json, path: str = "", *, holding: str = "", without: frozenset[str] = frozenset()
) -> Iterator[Text]:
    """Yield all strings below `value` that hold `holding`, but those below the paths in `without`."""
    if not _holds(value, holding):
        # true of most parts of policies, and paths are not put together for nothing
        return
    stack: list[tuple[str, Json, int]] = [(path, value, 0)]
    while stack:
        at, node, depth = stack.pop()
        if at in without or depth > DEEPEST:
            continue
        if isinstance(node, str):
            if holding in node:
                yield Text(at, node)
        elif isinstance(node, list):
            below = [(f"{at}/{index}", item, depth + 1) for index, item in enumerate(node)]
            stack.extend(reversed(below))
        elif isinstance(node, dict):
            yield from (Text(f"{at}/{key}", key) for key in node if "{{" in key and holding in key)
            below = [(f"{at}/{key}", item, depth + 1) for key, item in node.items()]
            stack.extend(reversed(below))


def _holds(value: Json, mark: str) -> bool:
    """Tell whether a key or a string below `value` holds `mark`."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            if mark in node:
                return True
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            stack.extend(node)
            stack.extend(node.values())
    return False


def context_names(value: Json) -> list[str]:
    """Return the names of all context entries of a rule, those of its foreach blocks and targets included."""
    found: list[str] = []
    stack: list[tuple[Json, int]] = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > DEEPEST:
            continue
        if isinstance(node, list):
            stack.extend((item, depth + 1) for item in node)
        elif isinstance(node, dict):
            found += [str(entry["name"]) for entry in items(node, "context") if "name" in entry]
            stack.extend((item, depth + 1) for item in node.values())
    return found
