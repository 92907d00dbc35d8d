"""The admission checks of ClusterPolicy and Policy (sections 1.2 and 1.11).

For the webhook, which refuses on the first error, and for the command line, which prints all findings. What needs a
cluster (unknown kinds A-94b, permissions A-93) is not here.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING

from engine.autogen import ANNOTATION
from engine.lang import wildcard
from engine.lang.lazy_regex import regex

from .findings import Finding, error, gathered, invalid, warning
from .matching import check_matching
from .operations import RuleCheck
from .variables import check_variables, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.model import Block, Json, Policy, Rule

_LONGEST_NAME = 63
_SHORTEST_TIMEOUT, _LONGEST_TIMEOUT = 1, 30
_DEPRECATED_FIELDS = {
    "validationFailureAction": "`failureAction` of the validate rule",
    "validationFailureActionOverrides": "`failureActionOverrides` of the validate rule",
    "failurePolicy": "`webhookConfiguration.failurePolicy`",
    "webhookTimeoutSeconds": "`webhookConfiguration.timeoutSeconds`",
    "generateExisting": "`generateExisting` of the generate rule",
    "mutateExistingOnPolicyUpdate": "`mutateExistingOnPolicyUpdate` of the mutate rule",
    "schemaValidation": "nothing, it has no effect",
}


@gathered
def lint_policy(policy: Policy) -> Iterator[Finding]:
    """Return everything that is wrong or doubtful about a policy, in the order of its parts."""
    yield from _check_metadata(policy)
    yield from _check_spec(policy)
    yield from _check_names(policy)
    for index, rule in enumerate(policy.rules):
        yield from _check_rule(rule, f"spec.rules[{index}]", policy)


def _check_rule(rule: Rule, path: str, policy: Policy) -> Iterator[Finding]:
    yield from check_matching(rule, path, policy)
    yield from RuleCheck(rule, path, policy).findings()
    yield from check_variables(rule, path, policy)
    yield from check_references(rule, path)
    yield from _check_actions(rule, path)


def _check_metadata(policy: Policy) -> Iterator[Finding]:
    if len(policy.name) > _LONGEST_NAME:
        text = f"must be no more than {_LONGEST_NAME} characters"
        yield invalid("metadata.name", policy.name, text)
    if policy.kind == "ClusterPolicy" and (policy.raw.get("metadata") or {}).get("namespace"):
        text = "Forbidden: namespace must not be set for a ClusterPolicy"
        yield error("metadata.namespace", text)
    if policy.annotations.get(ANNOTATION) == "all":
        yield error(
            "metadata.annotations",
            "Forbidden: Autogen annotation does not support 'all' anymore, remove the annotation or set it to a valid"
            " value",
        )


def _check_spec(policy: Policy) -> Iterator[Finding]:
    spec: Block = policy.raw.get("spec") or {}
    if not policy.admission:
        if not all(rule.validate for rule in policy.rules):
            yield error(
                "spec",
                "Forbidden: disabling admission processing is only allowed with validation policies",
            )
        if not policy.background:
            yield error(
                "spec",
                "Forbidden: disabling both admission and background processing is not allowed",
            )
    if spec.get("generateExistingOnPolicyUpdate") is not None:
        text = (
            "Forbidden: deprecated field, define generateExisting under the generate rule instead"
        )
        yield error("spec.generateExistingOnPolicyUpdate", text)
    if policy.kind == "Policy" and spec.get("validationFailureActionOverrides"):
        text = "Forbidden: Use of validationFailureActionOverrides is supported only with ClusterPolicy"
        yield error("spec.validationFailureActionOverrides", text)
    listed = spec.get("validationFailureActionOverrides") or ()
    yield from _check_overrides(listed, "spec.validationFailureActionOverrides")
    webhook: Block = spec.get("webhookConfiguration") or {}
    yield from _check_timeout(spec.get("webhookTimeoutSeconds"), "spec.webhookTimeoutSeconds")
    yield from _check_timeout(
        webhook.get("timeoutSeconds"), "spec.webhookConfiguration.timeoutSeconds"
    )
    yield from _check_spelling(spec.get("validationFailureAction"), "spec")
    for name, instead in _DEPRECATED_FIELDS.items():
        if spec.get(name) is not None:
            yield warning(f"spec.{name}", f"`{name}` is deprecated, use {instead}")


def _check_timeout(value: object, path: str) -> Iterator[Finding]:
    if isinstance(value, int | float) and not _SHORTEST_TIMEOUT <= value <= _LONGEST_TIMEOUT:
        yield invalid(path, value, "the timeout value must be between 1 and 30 seconds")


def _check_actions(rule: Rule, path: str) -> Iterator[Finding]:
    """Check what a validate rule says of its own action, and conditions that it does not look at."""
    # as it is written: what was read has actions in their one spelling
    validate: Block = rule.raw.get("validate") or {}
    yield from _check_spelling(validate.get("failureAction"), path)
    if overrides := validate.get("failureActionOverrides"):
        at = f"{path}.validate.failureActionOverrides"
        yield from _check_overrides(overrides, at)
    if rule.raw.get("celPreconditions") and not validate.get("cel"):
        text = "celPreconditions count for validate.cel only: this rule applies whatever they say"
        yield warning(f"{path}.celPreconditions", text)


def _check_overrides(overrides: Iterable[Block], path: str) -> Iterator[Finding]:
    """Refuse overrides by which one namespace has two actions, named or by a wildcard that has it, too."""
    seen: dict[str, list[str]] = {}
    for index, entry in enumerate(overrides):
        action, at = str(entry.get("action") or "").title(), f"{path}[{index}].namespaces"
        mine = [str(one) for one in entry.get("namespaces") or ()]
        others = [one for other, names in seen.items() if other != action for one in names]
        if both := sorted(set(mine) & set(others)):
            yield error(at, f"conflicting namespaces found in path: {at}: {', '.join(both)}")
        for pattern, name in (*product(mine, others), *product(others, mine)):
            if wildcard.has_wildcard(pattern) and pattern != name and wildcard.match(pattern, name):
                yield error(at, f"wildcard pattern '{pattern}' matches with namespace '{name}'")
        seen.setdefault(action, []).extend(mine)


def _check_spelling(action: object, path: str) -> Iterator[Finding]:
    if action in ("audit", "enforce"):
        text = f"the action `{action}` in lower case is deprecated, use `{str(action).title()}`"
        yield warning(path, text, (str(action), str(action).title()))


def _check_names(policy: Policy) -> Iterator[Finding]:
    counts = Counter(rule.name for rule in policy.rules)
    for index, rule in enumerate(policy.rules):
        path = f"spec.rules[{index}].name"
        if not rule.name:
            yield error(path, "Required value: a rule needs a name")
        elif counts[rule.name] > 1:
            yield error(path, f'Duplicate value: "{rule.name}": duplicate rule name')


# `$(path)` references of patterns and messages that lead nowhere.
#
# A reference is a path in the rule's own document: absolute, or relative to where it stands. What it leads to must be
# there, and must be text where it is a scalar.

_REFERENCE = regex(r"(?:^|[^\\])(\$\([^ ]*?\))")
_ANCHORED = regex(r"[+<=X^]?\((.+)\)\Z")


def check_references(rule: Rule, path: str) -> Iterator[Finding]:
    """Yield references of one rule that can never be resolved."""
    for found in texts(rule.raw, holding="$("):
        for reference in _REFERENCE.findall(found.text):
            why = _fault(rule, reference, found.path)
            if why:
                yield error(
                    path,
                    f"policy contains invalid variables: variable substitution failed for rule {rule.name}: {why}",
                )


def _fault(rule: Rule, reference: str, at: str) -> str:
    value = _follow(rule.raw, _absolute(reference[2:-1], at))
    if value is None:
        return f"got nil resolved variable {reference} at path {at}: <nil>"
    if isinstance(value, bool | int | float):
        return f"NotResolvedReferenceErr,reference {reference} not resolved at path {at}"
    return ""


def _absolute(path: str, at: str) -> list[str]:
    """Return the steps of a reference from the rule's root; a relative one starts at the text that holds it."""
    if path.startswith("/"):
        return [step for step in path.split("/") if step]
    steps = at.split("/")[1:]
    for step in path.split("/"):
        if step == "..":
            steps = steps[:-1]
        elif step not in (".", ""):
            steps.append(step)
    return steps


def _follow(value: Json, steps: list[str]) -> Json:
    for step in steps:
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = _field(value, step)
        else:
            return None
    return value


def _field(block: dict[str, Json], name: str) -> Json:
    """Return a field by its name with or without an anchor around it."""
    if name in block:
        return block[name]
    for key, value in block.items():
        if (anchored := _ANCHORED.match(key)) and anchored[1] == name:
            return value
    return None
