"""Policies written in CEL for Pods, extended to the controllers of Pods, byte for byte as upstream does (row G-08).

The counterpart of `engine.autogen` for resource rules. Expressions that read a Pod's spec and metadata are rewritten to read
those of the pod template: in the text of the whole spec where a policy validates, in two places where it mutates. Nothing but
one rule for Pods alone is extended.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from engine.errors import LimitError
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from engine.model import Block

_TEMPLATED: Final = {
    "daemonsets": ("apps", "DaemonSet"),
    "deployments": ("apps", "Deployment"),
    "jobs": ("batch", "Job"),
    "replicasets": ("apps", "ReplicaSet"),
    "statefulsets": ("apps", "StatefulSet"),
}
_CRON_JOBS: Final = {"cronjobs": ("batch", "CronJob")}

_MOVED: Final = re.compile(
    r"\b(object|oldObject|Object)\.(spec|metadata\.labels|metadata\.annotations)"
)
_ONLY_NAMESPACE: Final = r"(?!\.namespace(?![A-Za-z0-9_]))"


@record
class Variant:
    """A policy's spec for other resources than those it was written for; `targets` name them as the status shows them."""

    name: str
    targets: tuple[Block, ...]
    spec: Block

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of the resources."""
        return tuple(str(target["resource"]) for target in self.targets)


def variants(spec: Block) -> Iterator[Variant]:
    """Yield a policy's spec for controllers with `spec.template`, and for CronJobs, as far as they are wanted."""
    if not concerns_pods(spec.get("matchConstraints") or {}):
        return
    wanted = _wanted(spec)
    for name, kinds, path in (
        ("defaults", _TEMPLATED, ("template",)),
        ("cronjobs", _CRON_JOBS, ("jobTemplate", "spec", "template")),
    ):
        chosen = {resource: kind for resource, kind in kinds.items() if resource in wanted}
        if chosen:
            targets = tuple(
                {"group": group, "version": "v1", "resource": resource, "kind": kind}
                for resource, (group, kind) in sorted(
                    chosen.items(), key=lambda one: (one[1][0], one[0])
                )
            )
            yield Variant(name, targets, _rewritten(spec, targets, path))


def every_spec(spec: Block) -> Iterator[Block]:
    """Yield a policy's own spec, and those that autogen makes of it."""
    yield spec
    yield from (variant.spec for variant in variants(spec))


def _wanted(spec: Block) -> Collection[str]:
    """Return the controllers that `autogen.podControllers.controllers` lists; all of them where nothing is listed."""
    listed = ((spec.get("autogen") or {}).get("podControllers") or {}).get("controllers")
    return (*_TEMPLATED, *_CRON_JOBS) if listed is None else listed


def concerns_pods(constraints: Block) -> bool:
    """Tell whether Pods alone are asked for, by nothing but their resource and their namespace."""
    rules = list(constraints.get("resourceRules") or ())
    if len(rules) != 1 or constraints.get("excludeResourceRules"):
        return False
    if any((constraints.get("objectSelector") or {}).values()):
        return False
    rule = rules[0]
    named = tuple(rule.get(name) for name in ("apiGroups", "apiVersions", "resources"))
    return named == ([""], ["v1"], ["pods"]) and not rule.get("resourceNames")


def _rewritten(spec: Block, targets: Sequence[Block], path: tuple[str, ...]) -> Block:
    rewrite = _mutating if "mutations" in spec else _validating
    try:
        made = rewrite(spec, path)
    except RecursionError as error:
        raise LimitError("policy is nested too deeply") from error
    return {**made, "matchConstraints": _constraints(spec["matchConstraints"], targets)}


def _constraints(own: Block, targets: Sequence[Block]) -> Block:
    """Return the constraints for controllers: a rule for each group with the operations of the Pods' rule."""
    operations = own["resourceRules"][0].get("operations")
    groups: dict[str, list[str]] = {}
    for target in targets:
        groups.setdefault(target["group"], []).append(target["resource"])
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["v1"],
            **({"operations": operations} if operations else {}),
            "resources": resources,
        }
        for group, resources in groups.items()
    ]
    selector = own.get("namespaceSelector")
    return {**({"namespaceSelector": selector} if selector else {}), "resourceRules": rules}


def _validating(spec: Block, path: tuple[str, ...]) -> Block:
    """Replace paths into the Pod's spec and metadata in every text of a spec."""
    text = json.dumps(spec)
    prefix = ".".join(("spec", *path))
    for part in ("spec", "metadata"):
        for name in ("object", "oldObject"):
            pattern = re.escape(f"{name}.{part}") + _ONLY_NAMESPACE
            text = re.sub(pattern, f"{name}.{prefix}.{part}", text)
    return dict(json.loads(text))


def _mutating(spec: Block, path: tuple[str, ...]) -> Block:
    """Replace paths in match conditions and apply configurations, whose own braces are wrapped in those of the template."""
    made = dict(spec)
    if spec.get("matchConditions"):
        conditions = spec["matchConditions"]
        made["matchConditions"] = [_at(one, lambda text: _moved(text, path)) for one in conditions]

    def rewrite(text: str) -> str:
        return _wrapped(_moved(text, path), path)

    made["mutations"] = [
        {**one, "applyConfiguration": _at(one["applyConfiguration"], rewrite)}
        if one.get("applyConfiguration")
        else one
        for one in spec["mutations"] or ()
    ]
    return made


def _at(block: Block, rewrite: Callable[[str], str]) -> Any:
    return {**block, "expression": rewrite(str(block.get("expression") or ""))}


def _moved(text: str, path: tuple[str, ...]) -> str:
    prefix = ".".join(("spec", *path))
    return _MOVED.sub(lambda found: f"{found[1]}.{prefix}.{found[2]}", text)


def _wrapped(text: str, path: tuple[str, ...]) -> str:
    """Put what stands in the outermost braces of `Object{…}` into the template; any other text stays."""
    trimmed = text.strip()
    opening = trimmed.find("{")
    if opening < 0 or trimmed[:opening].strip() != "Object":
        return text
    closing = _closing(trimmed, opening)
    inner = trimmed[opening + 1 : closing]
    if closing < 0 or not inner.strip():
        return text
    steps, lead = "Object", "Object{"
    for name in ("spec", *path):
        steps += f".{name}"
        lead += f"{name}: {steps}{{"
    return lead + inner + "}" * (len(path) + 2) + trimmed[closing + 1 :]


def _closing(text: str, opening: int) -> int:
    """Return where the brace closes that opens there, -1 where it does not."""
    depth = 0
    for index in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index
    return -1
