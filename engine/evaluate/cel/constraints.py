"""Which reviews a policy written in CEL concerns: resource rules, selectors and exclusions, compiled once.

The rules are those of the API server for admission policies and webhooks (`k8s.io/apiserver/pkg/admission/plugin/webhook`).
They name resources where classic policies name kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.fields import part
from engine.match import compile_selector
from engine.match.combine import every, some
from engine.match.marks import UNPLACED, either, fewest, marks_of_names, marks_of_selector
from engine.reach import GUARDED_GROUPS
from engine.record import field, record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from engine.match.marks import Marks
    from engine.model import Block, Json, Review

    Test = Callable[[Review], bool]

ANY = "*"
_OF_SORT = frozenset({"evaluation.mode", "resourceRules", "excludeResourceRules"})
"""The tests that ask what sort of object a review is of."""
_OF_OBJECT = _OF_SORT | {"objectSelector"}
"""The tests that ask for more of an object than where it is, at least where resource rules name objects."""


@record
class Constraints:
    """Compiled match constraints, to be asked as the matcher of a rule is.

    `kinds` is always open: a request says its resource, and no table knows every kind's. `is_decided` says that they come to
    the same for all reviews of one sort: nothing else of an object is asked for. `of_sort` and `of_place` are the names of tests
    that come to the same for all reviews of a sort, and of a sort in a namespace; of `marks` an object must bear one. For reviews of
    a resource of `by_resource` its constraints stand in for the tests.
    """

    applies: Test
    tests: tuple[tuple[str, Test], ...]
    kinds: frozenset[str] | None = None
    is_decided: bool = False
    of_sort: frozenset[str] = frozenset()
    of_place: frozenset[str] = frozenset()
    marks: Marks = None
    by_resource: Mapping[str, Constraints] = field(default_factory=dict)

    def settled(self, review: Review, *, in_place: bool) -> bool | None:
        """Return what is said to all reviews of a sort, or of a sort in a namespace; None where that differs."""
        if self.is_decided:
            return self.applies(review)
        if (other := self.by_resource.get(review.resource)) is not None:
            return other.settled(review, in_place=in_place)
        # a Namespace is selected by its own labels
        known = self.of_place if in_place and not _is_namespace(review) else self.of_sort
        return (
            False if any(name in known and not test(review) for name, test in self.tests) else None
        )

    def refusal(self, review: Review) -> str | None:
        """Return the part of the constraints that keeps a review out, None when all let it in."""
        return next(
            (f"not matched by {name}" for name, test in self.tests if not test(review)), None
        )


def compile_constraints(
    block: Block, *, namespace: str = "", open_without_rules: bool = False
) -> Constraints:
    """Compile `matchConstraints` or the `matchResources` of a binding; raises PolicyError for parts of a wrong type.

    Without resource rules a binding concerns everything (`open_without_rules`), a policy nothing. A namespaced policy
    concerns what is in its `namespace`, except what decides about policies.
    """
    tests = _tests(block, namespace, open_without_rules=open_without_rules)
    rules = block.get("resourceRules") or ()
    # a resource rule asks for an object itself, so that one test less is called
    asked = tests[1:] if rules else tests
    is_decided = not namespace and {name for name, _ in tests} <= _OF_SORT
    named = (*rules, *(block.get("excludeResourceRules") or ()))
    are_open = all(_is_open(rule) for rule in named)
    of_sort = frozenset(name for name, _ in tests if are_open and name in _OF_SORT)
    return Constraints(
        every([test for _, test in asked]),
        tuple(tests),
        is_decided=is_decided and are_open,
        of_sort=of_sort,
        of_place=of_sort | {name for name, _ in tests if name not in _OF_OBJECT},
        marks=fewest(
            (
                marks_of_selector(block.get("objectSelector")),
                _marks_of_namespaces(block.get("namespaceSelector")),
                marks_of_names((namespace,) if namespace else (), "namespace"),
                _marks_of_rules(rules),
            )
        ),
    )


def _tests(block: Block, namespace: str, *, open_without_rules: bool) -> list[tuple[str, Test]]:
    """Return what constraints ask, each test with the name of what it is about."""
    tests: list[tuple[str, Test]] = [("evaluation.mode", lambda review: not review.payload)]
    if namespace:
        tests.append(
            (f"the policy's namespace `{namespace}`", lambda review: review.namespace == namespace)
        )
        tests.append(("what is in its reach", lambda review: review.group not in GUARDED_GROUPS))
    rules = block.get("resourceRules") or ()
    if rules or not open_without_rules:
        tests.insert(1, ("resourceRules", some([_rule(rule) for rule in rules])))
    if left_out := block.get("excludeResourceRules"):
        excluded = some([_rule(rule) for rule in left_out])
        tests.append(("excludeResourceRules", lambda review: not excluded(review)))
    if selector := block.get("namespaceSelector"):
        tests.append(("namespaceSelector", _by_namespace(selector)))
    if selector := block.get("objectSelector"):
        tests.append(("objectSelector", _by_object(selector)))
    return tests


def _marks_of_rules(rules: Iterable[Block]) -> Marks:
    """Return the marks of objects that resource rules name; no wildcards are read in such names."""
    named = [rule.get("resourceNames") or () for rule in rules]
    if not named or not all(named):
        return None
    return frozenset(("name", name) for names in named for name in names)


def _marks_of_namespaces(selector: Json) -> Marks:
    """Return the marks of objects in namespaces that are selected; those in none are selected always, or by labels of their own."""
    found = marks_of_selector(selector, "space")
    return None if found is None else found | {UNPLACED}


def compile_payload_constraints(mode: str) -> Constraints:
    """Return the constraints of a policy that is asked of documents of one mode, whatever they hold."""

    def applies(review: Review) -> bool:
        return review.payload == mode

    return Constraints(applies, (("evaluation.mode", applies),))


def all_of(parts: Iterable[Constraints]) -> Constraints:
    """Return constraints that hold where each of several holds."""
    tests = tuple(test for part in parts for test in part.tests)
    return Constraints(every([test for _, test in tests]), tests)


def any_of(own: Constraints, by_resource: Mapping[str, Constraints]) -> Constraints:
    """Return constraints that hold where those for a resource do, `own` for resources that no others are for.

    A refusal is told of the policy's own constraints.
    """
    if not by_resource:
        return own
    tests = {name: one.applies for name, one in by_resource.items()}
    every = (own, *by_resource.values())
    return Constraints(
        lambda review: tests.get(review.resource, own.applies)(review),
        own.tests,
        is_decided=all(one.is_decided for one in every),
        of_sort=own.of_sort,
        of_place=own.of_place,
        marks=either(one.marks for one in every),
        by_resource=by_resource,
    )


def _rule(rule: Block) -> Test:
    operations, groups = _set(rule.get("operations")), _set(rule.get("apiGroups"))
    versions, names = _set(rule.get("apiVersions")), frozenset(rule.get("resourceNames") or ())
    is_resource = _resources(rule.get("resources") or ())
    scope, is_open = rule.get("scope") or ANY, _is_open(rule)

    def concerns(review: Review) -> bool:
        return (
            not review.payload
            and (operations is None or review.operation in operations)
            and (groups is None or review.group in groups)
            and (versions is None or review.version in versions)
            and is_resource(review)
            and (
                is_open
                or (
                    (not names or review.name in names)
                    and (scope == ANY or (scope == "Namespaced") == _is_namespaced(review))
                )
            )
        )

    return concerns


def _is_open(rule: Block) -> bool:
    """Tell whether a rule asks for nothing of an object but what sort it is."""
    return not rule.get("resourceNames") and (rule.get("scope") or ANY) == ANY


def _set(values: Iterable[str] | None) -> frozenset[str] | None:
    """Return the values to find, None where everything will do: `*`, or nothing said at all."""
    found = frozenset(values or (ANY,))
    return None if ANY in found else found


def _resources(texts: Collection[str]) -> Test:
    """Compile resources: `pods`, `pods/log`, `pods/*`, `*/scale`, `*` (no subresource), `*/*`."""
    plain = frozenset(text for text in texts if ANY not in text and "/" not in text)
    if len(plain) == len(texts):
        return lambda review: not review.subresource and review.resource in plain
    pairs = tuple((head, tail) for head, _, tail in (text.partition("/") for text in texts))

    def concerns(review: Review) -> bool:
        resource, subresource = review.resource, review.subresource
        return any(head in (ANY, resource) and tail in (ANY, subresource) for head, tail in pairs)

    return concerns


def _is_namespaced(review: Review) -> bool:
    return bool(review.namespace) and not _is_namespace(review)


def _is_namespace(review: Review) -> bool:
    return review.kind == "Namespace" and not review.group


def _by_namespace(selector: Json) -> Test:
    """Compile a namespace selector: a Namespace counts by its own labels, other cluster-wide objects always fit."""
    fits = compile_selector(selector)

    def selected(review: Review) -> bool:
        if _is_namespace(review):
            return fits(part(review.target, "metadata", "labels"))
        return not review.namespace or fits(review.namespace_labels)

    return selected


def _by_object(selector: Json) -> Test:
    """Compile an object selector: the new or the old object has to fit."""
    fits = compile_selector(selector)

    def selected(review: Review) -> bool:
        return any(
            fits(part(obj, "metadata", "labels"))
            for obj in (review.object, review.old_object)
            if obj
        )

    return selected
