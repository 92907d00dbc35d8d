"""The engine as the sandbox's implementation of CEL: conditions, rules of schemas, and native admission policies.

The sandbox is another distribution, which loads this by its name (`--expressions`) in its own process. `kpolicy_sandbox.expressions` says
what it asks for; a failure is a ValueError, worded for the user. The engine is imported when it is first asked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError, PolicyError
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from engine.evaluate import Answer, CompiledPolicy, Evaluation, Lookup
    from engine.lang.cel import Program
    from engine.model import Review
    from kpolicy_sandbox.expressions import Facts, PolicyInput

Object = dict[str, Any]
_REVIEWS = "/subjectaccessreviews"
_MOST = 256


@record
class Expression:
    """A compiled expression."""

    program: Program

    @property
    def names(self) -> AbstractSet[str]:
        """The names that the bindings have to offer."""
        return self.program.names

    def __call__(self, bindings: Mapping[str, Any], /) -> Any:
        """Return the value. Raises ValueError."""
        try:
            return self.program(bindings)
        except EngineError as error:
            raise ValueError(str(error)) from error


@record
class NotAllowed:
    """A result that does not let a request pass; `unmet` is the expression that was false."""

    message: str
    unmet: str
    is_error: bool


class EngineExpressions:
    """Evaluates with the engine; each policy is compiled once with each binding."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, str], CompiledPolicy] = {}

    def compile(self, text: str, /) -> Expression:
        """Compile an expression. Raises ValueError."""
        from engine.lang.cel import compile as compiled

        try:
            return Expression(compiled(text))
        except EngineError as error:
            raise ValueError(error.message) from error

    def faults(self, obj: Object, /) -> Iterable[tuple[str, str]]:
        """Return what is wrong with an admission policy or its binding: paths of fields, and messages."""
        from engine.lint import lint_binding, lint_cel_policy
        from engine.model import Policy
        from engine.parse.celpolicies import parse_binding, parse_cel_policy

        read = parse_binding if obj["kind"].endswith("Binding") else parse_cel_policy
        try:
            value = read(obj, strict=False)
        except PolicyError as error:
            return [(error.at.path or "spec", f'Invalid value: "": {error.message}')]
        found = lint_cel_policy(value) if isinstance(value, Policy) else lint_binding(value)
        return [(one.path, one.message) for one in found if one.severity == "error"]

    def verdicts(
        self, policy: Object, binding: Object, asked: PolicyInput, facts: Facts, /
    ) -> Iterator[NotAllowed]:
        """Yield what a bound policy does not let pass, in the order of its results. Raises ValueError."""
        from engine.model import Status

        compiled = self._of(policy, binding)
        for one in _evaluated(compiled, asked, facts).results:
            if one.status in (Status.FAIL, Status.ERROR):
                unmet = _unmet(_evaluated(compiled, asked, facts, trace=True))
                yield NotAllowed(one.message, unmet, one.status is Status.ERROR)

    def mutated(
        self, policy: Object, binding: Object, asked: PolicyInput, facts: Facts, /
    ) -> tuple[Object | None, str]:
        """Return the object as a bound policy changes it, and why that failed. Raises ValueError."""
        from engine.model import Status

        results = _evaluated(self._of(policy, binding), asked, facts).results
        failure = next((one.message for one in results if one.status is not Status.PASS), "")
        return next((one.patched for one in results if one.patched is not None), None), failure

    def _of(self, policy: Object, binding: Object) -> CompiledPolicy:
        from engine.evaluate.cel.policies import compile_cel_policy
        from engine.parse.celpolicies import parse_binding, parse_cel_policy

        key = _version(policy), _version(binding)
        if (known := self._compiled.get(key)) is not None:
            return known
        try:
            bound = parse_binding(binding, strict=False)
            made = compile_cel_policy(parse_cel_policy(policy, strict=False), (), (bound,))
        except EngineError as error:
            raise ValueError(f"compilation error: {error.message}") from error
        if len(self._compiled) >= _MOST:
            self._compiled.clear()
        self._compiled[key] = made
        return made


def _version(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata['uid']}/{metadata['resourceVersion']}"


def _review(asked: PolicyInput) -> Review:
    from engine.model import Review, UserInfo

    request = asked.request
    user, resource = request["userInfo"], request["resource"]
    return Review(
        object=request["object"],
        old_object=request["oldObject"],
        operation=request["operation"],
        group=resource["group"],
        version=resource["version"],
        kind=asked.kind,
        subresource=request.get("subResource", ""),
        user=UserInfo(
            user["username"],
            user.get("uid", ""),
            tuple(user.get("groups") or ()),
            user.get("extra") or {},
        ),
        namespace_labels=asked.namespace_labels,
        request=request,
        dry_run=request["dryRun"],
    )


def _evaluated(
    compiled: CompiledPolicy, asked: PolicyInput, facts: Facts, *, trace: bool = False
) -> Evaluation:
    """Return what a policy says, with all that it asks for answered. Raises ValueError."""
    from engine.evaluate import Inputs, PolicySet, evaluate
    from engine.evaluate.asking import conclude, until_answered

    policies, review = PolicySet((compiled,)), _review(asked)

    def ask(answers: Mapping[Lookup, Answer]) -> Evaluation:
        return evaluate(policies, review, Inputs(now=asked.now, answers=answers), trace=trace)

    def answers_of(lookups: Iterable[Lookup]) -> dict[Lookup, Answer]:
        return {one: _answer(facts, one) for one in lookups}

    try:
        return conclude(until_answered(ask, {}), answers_of)
    except EngineError as error:
        raise ValueError(error.message) from error


def _answer(facts: Facts, lookup: Lookup) -> Answer:
    """Return the answer to a question; what is not kept in an API server's store is answered by an error."""
    from engine.evaluate import Answer, ApiCallLookup, ListLookup, ObjectLookup

    try:
        match lookup:
            case ObjectLookup(kind=kind, namespace=namespace, name=name):
                return Answer.found(facts.get(lookup.api_version, kind, namespace, name))
            case ListLookup(kind=kind, namespace=namespace):
                selector = json.loads(lookup.selector or "{}")
                return Answer.found(facts.list(lookup.api_version, kind, namespace, selector))
            case ApiCallLookup(method="POST") if lookup.url_path.endswith(_REVIEWS):
                return Answer.found(facts.reviewed(json.loads(lookup.body)))
    except LookupError as error:
        return Answer.failed(str(error.args[0]))
    return Answer.failed(f"{type(lookup).__name__} is not answered in admission")


def _unmet(found: Evaluation) -> str:
    """Return the expression that was false, as an explanation names it; empty where none was."""
    steps = (step for trace in found.traces for step in trace.steps if step.kind == "expression")
    missed = next((step for step in steps if step.holds is False), None)
    return missed.text if missed is not None and missed.value is None else ""
