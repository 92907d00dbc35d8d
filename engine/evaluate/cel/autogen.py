"""Policies written in CEL for Pods, extended to the controllers of Pods (row G-08).

The counterpart of `engine.autogen` for resource rules: expressions that read a Pod's spec and metadata are rewritten to
read those of the pod template. A policy that selects Pods by anything but their resource is not extended.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.errors import LimitError
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from engine.model import Block

_TEMPLATED = {
    "daemonsets": "apps",
    "deployments": "apps",
    "jobs": "batch",
    "replicasets": "apps",
    "replicationcontrollers": "",
    "statefulsets": "apps",
}
_REWRITTEN = ("matchConditions", "variables", "validations", "auditAnnotations")


@record
class Variant:
    """A policy's spec for other resources than those it was written for."""

    name: str
    resources: tuple[str, ...]
    spec: Block


def variants(spec: Block) -> Iterator[Variant]:
    """Yield a policy's spec for controllers with `spec.template`, and for CronJobs, as far as they are wanted."""
    if not _concerns_pods(spec.get("matchConstraints") or {}):
        return
    wanted = _wanted(spec)
    templated = [name for name in _TEMPLATED if name in wanted]
    if templated:
        yield _variant(spec, "autogen-defaults", templated, "spec.template")
    if "cronjobs" in wanted:
        yield _variant(spec, "autogen-cronjobs", ["cronjobs"], "spec.jobTemplate.spec.template")


def _wanted(spec: Block) -> Collection[str]:
    """Return the controllers that `autogen.podControllers.controllers` lists; all of them where nothing is listed."""
    listed = ((spec.get("autogen") or {}).get("podControllers") or {}).get("controllers")
    return (*_TEMPLATED, "cronjobs") if listed is None else listed


def _concerns_pods(constraints: Block) -> bool:
    """Tell whether only Pods are asked for, and by nothing but their resource."""
    if _selects(constraints.get("namespaceSelector")) or _selects(
        constraints.get("objectSelector")
    ):
        return False
    rules = constraints.get("resourceRules") or ()
    return bool(rules) and all(
        rule.get("resources") == ["pods"] and not rule.get("resourceNames") for rule in rules
    )


def _selects(selector: Block | None) -> bool:
    return bool(selector) and any((selector or {}).values())


def _variant(spec: Block, name: str, resources: list[str], path: str) -> Variant:
    operations = [
        operation
        for rule in spec["matchConstraints"]["resourceRules"]
        for operation in rule.get("operations") or ("*",)
    ]
    rules = [
        {
            "apiGroups": [_TEMPLATED.get(resource, "batch")],
            "apiVersions": ["v1"],
            "operations": operations,
            "resources": [resource],
        }
        for resource in resources
    ]
    changed: dict[str, Any] = {key: spec[key] for key in _REWRITTEN if spec.get(key)}
    made = {**spec, **_moved(changed, path), "matchConstraints": {"resourceRules": rules}}
    return Variant(name, tuple(resources), made)


def _moved(blocks: dict[str, Any], path: str) -> dict[str, Any]:
    """Replace paths into the Pod's spec and metadata in every text, as upstream does in its JSON."""
    try:
        text = json.dumps(blocks)
        for part in ("spec", "metadata"):
            for name in ("object", "oldObject"):
                text = text.replace(f"{name}.{part}", f"{name}.{path}.{part}")
        return dict(json.loads(text))
    except RecursionError as error:
        raise LimitError("policy is nested too deeply") from error
