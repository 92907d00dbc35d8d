"""Policies applied to one object after the other, in Kyverno's order.

For each object: the mutate rules of all policies first, each on what the one before left; then verifyImages, validate on
the patched object, generate. What policies ask for is answered from a MockCluster until nothing is missing.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from engine import autogen
from engine.errors import Location, PolicyError
from engine.evaluate import Inputs, PolicySet, Problem, Trace, dotted_path, evaluate
from engine.evaluate.asking import conclude, until_answered
from engine.evaluate.policy_set import CLASSIC
from engine.lang.work import metered
from engine.lint import lint_policy
from engine.model import NOBODY, Review, RuleType
from engine.record import field, record

from .mock_cluster import MockCluster
from .names import name_of, namespace_of
from .payloads import Payload, is_timed
from .values import NO_VALUES, Values, ValueSet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from engine.evaluate import Answer, Evaluation, Lookup
    from engine.evaluate.rules import CompiledPolicy
    from engine.model import Object, Policy, PolicyException, RuleResult, UserInfo
    from engine.model.policy import Binding, CelException


IN_ORDER = (RuleType.MUTATION, RuleType.IMAGE_VERIFY, RuleType.VALIDATION, RuleType.GENERATION)


class PolicyAnswer:
    """What the rules of one policy and one type said about one object, and the object after them."""

    __slots__ = ("object", "patched", "policy", "results", "type")

    def __init__(
        self, policy: Policy, rule_type: RuleType, before: Object, patched: Object
    ) -> None:
        self.policy = policy
        self.type = rule_type
        self.object = before
        self.patched = patched
        self.results: list[RuleResult] = []


@record
class Setting:
    """What all objects of a run have in common: who asks, when, with which values, in which world."""

    now: datetime
    seed: bytes = b""
    user: UserInfo = NOBODY
    values: ValueSet = NO_VALUES
    world: MockCluster = field(default_factory=MockCluster)
    namespace_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    resolve_values: bool = False

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace: those of the values file, else those of its own object."""
        known = self.values.namespace_labels.get(namespace)
        return self.namespace_labels.get(namespace, {}) if known is None else known


class Processor:
    """Applies one set of policies; objects are given one by one.

    `problems` lists the policies that a server would refuse or that do not compile, `mutating` those that change
    objects. `traces` collects the steps of every rule when `trace` is set. With `kinds`, objects of no other kinds are
    given: what only others are asked is not compiled.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        exceptions: Sequence[PolicyException | CelException] = (),
        *,
        bindings: Sequence[Binding] = (),
        setting: Setting,
        trace: bool = False,
        kinds: Collection[str] | None = None,
    ) -> None:
        self._policies = {policy.identity: policy for policy in policies}
        self._exceptions = tuple(exceptions)
        self._bindings = tuple(bindings)
        self._setting = setting
        self._trace = trace
        self.traces: list[Trace] = []
        self._kinds = kinds
        self._answers: dict[Lookup, Answer] = {}
        self._sets: dict[tuple[int, ...], PolicySet] = {}
        self._ordered, refused = admitted(policies)
        everything = self._set_of(self._ordered)
        self._first = tuple(one for one in self._ordered if not is_timed(one))
        # what deletes judges the objects as they are, whatever mutation made of them (row CC-04)
        self._second = tuple(one for one in self._ordered if is_timed(one))
        self.problems = (*refused, *everything.problems)
        self.rule_count = sum(map(_rule_count, everything.policies))
        self.mutating = tuple(
            compiled.policy
            for compiled in everything.policies
            if any(rule.type is RuleType.MUTATION for rule in compiled.rules)
        )

    def apply(self, obj: Object, *, operation: str = "") -> list[PolicyAnswer]:
        """Return the answers of all policies on `obj`; `operation` wins over the one of the values."""
        self.traces = []
        answers = self._pass(self._first, obj, operation)
        return answers + self._pass(self._second, obj, operation) if self._second else answers

    def _pass(self, ordered: tuple[Policy, ...], obj: Object, operation: str) -> list[PolicyAnswer]:
        batches = list(self._batches(ordered, obj, operation))
        if len(batches) == 1:
            policies, variables = batches[0]
            return self._run(policies, variables, obj, IN_ORDER)
        answers: list[PolicyAnswer] = []
        for type_ in IN_ORDER:
            for policies, variables in batches:
                made = self._run(policies, variables, obj, (type_,))
                answers += made
                if made and type_ is RuleType.MUTATION:
                    obj = made[-1].patched
        return answers

    def judge(self, payload: Payload) -> list[PolicyAnswer]:
        """Return the answers of the policies of a payload's mode on it; classic policies judge only objects."""
        policies = self._set_of(tuple(one for one in self._ordered if one.kind not in CLASSIC))
        review = Review(object=payload.value, operation="", payload=payload.mode)
        evaluation = self._decide(policies, review, self._inputs({}), IN_ORDER)
        self.traces = list(evaluation.traces)
        return self._grouped(payload.shown, evaluation)

    def _batches(
        self, ordered: tuple[Policy, ...], obj: Object, operation: str
    ) -> Iterator[tuple[PolicySet, Values]]:
        """Yield runs of policies that see the same variables for this object; mostly that is one run of all."""
        values, name = self._setting.values, name_of(obj)
        more = {"request.operation": operation} if operation else {}
        if not values.resources:
            yield self._set_of(ordered), values.for_policy("", name) | more
            return
        seen = ((values.for_policy(policy.name, name), policy) for policy in ordered)
        for variables, run in groupby(seen, key=lambda pair: pair[0]):
            policies = tuple(policy for _, policy in run)
            yield self._set_of(policies), variables | more

    def _run(
        self, policies: PolicySet, variables: Values, obj: Object, types: Sequence[RuleType]
    ) -> list[PolicyAnswer]:
        review = self._review(obj, variables)
        evaluation = self._decide(policies, review, self._inputs(variables), types)
        self.traces += evaluation.traces
        return self._grouped(review.target or obj, evaluation)

    def _inputs(self, variables: Values) -> Inputs:
        setting = self._setting
        return Inputs(
            now=setting.now,
            seed=setting.seed,
            variables=variables,
            rule_values=setting.values.rules,
            foreach_values=setting.values.foreach,
            answers=self._answers,
            resolve_values=setting.resolve_values,
        )

    def _decide(
        self, policies: PolicySet, review: Review, inputs: Inputs, types: Sequence[RuleType]
    ) -> Evaluation:
        """Evaluate until nothing is missing, answering from the world; raises LimitError for rules that never stop asking."""
        work = partial(evaluate, policies, review, inputs, types=types, trace=self._trace)
        # `inputs` holds the very answers that are learnt
        asking = until_answered(lambda _: metered(work), self._answers)
        return conclude(asking, self._setting.world.answers)

    def _grouped(self, obj: Object, evaluation: Evaluation) -> list[PolicyAnswer]:
        answers: list[PolicyAnswer] = []
        current, key, type_ = obj, "", RuleType.MUTATION
        for result in evaluation.results:
            if result.identity != key or result.type is not type_:
                key, type_ = result.identity, result.type
                answers.append(PolicyAnswer(self._policies[key], type_, obj, current))
            answer = answers[-1]
            answer.results.append(result)
            if result.patched is not None and not result.targets:
                answer.patched = current = result.patched
        return answers

    def _review(self, obj: Object, variables: Values) -> Review:
        setting = self._setting
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        kind = str(obj.get("kind", ""))
        subresource = ""
        parent = setting.values.parents.get((group, version, kind))
        if parent is not None:
            group, version, kind = parent.group, parent.version, parent.kind
            subresource = parent.subresource
        operation = str(variables.get("request.operation") or "CREATE")
        new, old = overridden(obj, variables, operation)
        return Review(
            object=new,
            old_object=old,
            operation=operation,
            group=group,
            version=version,
            kind=kind,
            subresource=subresource,
            user=setting.user,
            namespace_labels=setting.labels_of(namespace_of(obj)),
        )

    def _set_of(self, policies: tuple[Policy, ...]) -> PolicySet:
        key = tuple(map(id, policies))
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = PolicySet.compile(
                policies, self._exceptions, self._bindings, kinds=self._kinds
            )
        return found


def _rule_count(compiled: CompiledPolicy) -> int:
    """Return how many rules a policy has, whatever was compiled of them."""
    is_classic = compiled.policy.kind in CLASSIC
    return autogen.count(compiled.policy) if is_classic else len(compiled.rules)


# The object that a request carries once variables given by hand are put into it (`request.object.metadata.labels.x=y`).

_NEW, _OLD = ["request", "object"], ["request", "oldObject"]


def overridden(
    obj: Object, variables: Mapping[str, Any], operation: str
) -> tuple[Object | None, Object | None]:
    """Return the new and the old object of a request on `obj`.

    As in Kyverno's CLI an UPDATE changes nothing but what variables say, and a DELETE has only an old object.
    """
    new: Object | None = None if operation == "DELETE" else obj
    old: Object | None = obj if operation in ("UPDATE", "DELETE") else None
    for key, value in variables.items():
        if not key.startswith("request."):
            continue
        path = dotted_path(key)
        if path[:2] == _NEW and new is not None:
            new = _placed(new, path[2:], value)
        elif path[:2] == _OLD and old is not None:
            old = _placed(old, path[2:], value)
    return new, old


def _placed(data: Any, path: Sequence[str], value: Any) -> Any:
    """Return `data` with `value` at `path`; only the maps on the way are copied, maps that meet are merged."""
    if path:
        known = data if isinstance(data, dict) else {}
        return {**known, path[0]: _placed(known.get(path[0]), path[1:], value)}
    if isinstance(data, dict) and isinstance(value, dict):
        return {**data, **{key: _placed(data.get(key), (), below) for key, below in value.items()}}
    return value


# Which policies a server would take: the same checks as at admission, so that a policy refused there decides nothing here.

_refusals: dict[int, tuple[Policy, Problem | None]] = {}


def admitted(policies: Iterable[Policy]) -> tuple[tuple[Policy, ...], tuple[Problem, ...]]:
    """Return the policies that pass the checks of policies (rows A-91 to A-94b), and a problem for each of the others.

    A policy is checked once per process, because many test cases name the same files.
    """
    taken, refused = [], []
    for policy in policies:
        problem = _refusal(policy)
        if problem is None:
            taken.append(policy)
        else:
            refused.append(problem)
    return tuple(taken), tuple(refused)


def _refusal(policy: Policy) -> Problem | None:
    known = _refusals.get(id(policy))
    if known is None:
        # INVARIANT: the policy is kept beside its result, so that its id cannot come to mean another one
        known = _refusals[id(policy)] = (policy, _checked(policy))
    return known[1]


def _checked(policy: Policy) -> Problem | None:
    if policy.kind not in CLASSIC:
        return None
    errors = [finding for finding in lint_policy(policy) if finding.severity == "error"]
    if not errors:
        return None
    first, more = errors[0], len(errors) - 1
    return Problem(
        policy,
        PolicyError(
            f"policy `{policy.key}` is refused: {first.message}",
            at=Location(policy.at.file, policy.at.line, first.path),
            help=f"`kubectl kpolicy lint` shows {more} more" if more else "",
        ),
    )
