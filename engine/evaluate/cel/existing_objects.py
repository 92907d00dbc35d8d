"""Objects that are there already, changed by a MutatingPolicy: which they are, and what each of them comes to.

Run for a request that the policy matches, or (without one) when the policy is written. Targets are named by resource rules,
which are then listed, or given by an expression over the trigger. Of resource rules everything counts, exclusions and
operations too: a target stands for an object that was created and may be updated. A rule that names a part of objects
(`pods/resize`) says how they are written; which part is meant by a wildcard nobody knows, so that it changes nothing.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from engine.errors import EvaluationError
from engine.evaluate.lookups import ListLookup, ObjectLookup
from engine.lang.cel.functions.encodings import plain
from engine.lang.gotext import compact_json
from engine.model import Block, Object, Policy, Review
from engine.model.resources import resource_of
from engine.record import record, replace

from .constraints import ANY, Constraints, compile_constraints
from .expressions import Named, compile_expression, compile_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.evaluate.state import State
    from engine.lang.cel import Program

    from .bindings import Bindings

_SHOWN = ("CREATE", "UPDATE")
"""The operations that an object which is there stands for."""


@record
class Targets:
    """What existing objects a policy changes, compiled."""

    rules: tuple[Block, ...]
    selector: str
    needs_labels: bool
    constraints: Constraints
    conditions: tuple[Named, ...]
    expression: Program | None

    def of(self, state: State, bindings: Bindings) -> Iterator[tuple[Object, str, str]]:
        """Yield the targets, each with the name of its resource and of the part that is written; raises EvaluationError."""
        if self.expression is not None:
            if bindings["object"] is None:
                bindings["object"] = state.review.old_object
            for obj in _given(plain(bindings.env, bindings.value_of(self.expression))):
                resource = resource_of(str(obj.get("kind")))
                yield obj, resource, self._part_of(str(obj.get("apiVersion")), resource)
            return
        seen = set()
        within = state.policy.namespace
        for at, resource, part in self._named():
            lookup = ListLookup(at, "", within, selector=self.selector, resource=resource)
            answer = state.inputs.ask(lookup)
            if answer.error:
                raise EvaluationError(f"failed to fetch targets {resource}: {answer.error}")
            for obj in () if answer.is_absent else answer.value or ():
                known = (resource, *_place(obj))
                if known not in seen and self._concerns(state, obj, resource):
                    seen.add(known)
                    yield obj, resource, part

    def _named(self) -> Iterator[tuple[str, str, str]]:
        """Yield version, resource and part of what the rules name; what a wildcard means only a request says."""
        for rule in self.rules:
            for group, version, text in product(
                *(rule.get(name) or () for name in ("apiGroups", "apiVersions", "resources"))
            ):
                resource, _, part = str(text).partition("/")
                if ANY not in (group, version, resource, part):
                    yield f"{group}/{version}" if group else str(version), resource, part

    def _part_of(self, api_version: str, resource: str) -> str:
        """Return the part by which rules say that an object is written which an expression gave, empty for the whole."""
        named = (
            part for at, plural, part in self._named() if (at, plural) == (api_version, resource)
        )
        return next(named, "")

    def _concerns(self, state: State, obj: Object, resource: str) -> bool:
        labels: Mapping[str, str] = {}
        if self.needs_labels and (namespace := _place(obj)[0]):
            answer = state.inputs.ask(ObjectLookup("v1", "Namespace", "", namespace))
            found = answer.value if isinstance(answer.value, dict) else {}
            labels = (found.get("metadata") or {}).get("labels") or {}
        review = review_of_target(state.review, obj, resource, labels)
        return any(
            self.constraints.applies(replace(review, operation=operation)) for operation in _SHOWN
        )


def compile_targets(policy: Policy, spec: Block, names: frozenset[str]) -> Targets:
    """Compile what targets a policy with mutateExisting has; raises PolicyError."""
    block = spec.get("targetMatchConstraints") or {}
    expression = block.get("expression")
    if not (block.get("resourceRules") or expression):
        block = spec.get("matchConstraints") or {}
    selector = block.get("objectSelector") or {}
    return Targets(
        rules=tuple(block.get("resourceRules") or ()),
        selector=compact_json(selector) if any(selector.values()) else "",
        needs_labels=any((block.get("namespaceSelector") or {}).values()),
        constraints=compile_constraints(
            {**block, "resourceRules": [whole(rule) for rule in block.get("resourceRules") or ()]},
            namespace=policy.namespace,
        ),
        conditions=compile_named(
            spec.get("targetMatchConditions") or (), names, place="targetMatchConditions"
        ),
        expression=compile_expression(expression, names, place="targetMatchConstraints.expression")
        if expression
        else None,
    )


def whole(rule: Block) -> Block:
    """Return a resource rule that fits objects where it names a part of them, which is only how they are written."""
    return {
        **rule,
        "resources": [str(one).partition("/")[0] for one in rule.get("resources") or ()],
    }


def set_off_by(constraints: Constraints) -> Constraints:
    """Return constraints that a review without any object meets, too: that a policy was written sets it off."""
    return Constraints(
        lambda review: not is_triggered(review) or constraints.applies(review), constraints.tests
    )


def is_triggered(review: Review) -> bool:
    """Tell whether a request or an object set a policy off, and not that it was written."""
    return review.target is not None and bool(review.kind)


def review_of_target(
    trigger: Review, obj: Object, resource: str, labels: Mapping[str, str]
) -> Review:
    """Return the review of a target: an update of it by whoever asked for the trigger."""
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    return Review(
        object=obj,
        operation="UPDATE",
        group=group,
        version=version,
        kind=str(obj.get("kind") or ""),
        user=trigger.user,
        namespace_labels=labels,
        request={"resource": {"group": group, "version": version, "resource": resource}},
    )


def _given(value: Any) -> Iterator[Object]:
    """Yield the objects that an expression gives: one, or the items of a list."""
    listed = value.get("items") if isinstance(value, dict) and "items" in value else [value]
    for obj in listed if isinstance(listed, list) else ():
        if isinstance(obj, dict) and obj.get("kind"):
            yield obj
        elif obj is not None:
            raise EvaluationError("the expression of targets must give objects")


def _place(obj: Object) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
