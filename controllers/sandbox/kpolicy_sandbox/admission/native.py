"""Native admission policies with their bindings, judged by the engine: the API server's own checks, which need nobody beside it.

Mutating ones come before the mutating webhooks and validating ones before the validating webhooks, and a policy that nothing binds does nothing. What the expressions ask for
(parameters, namespaces, rights) is answered from the store at once. The texts are kube-apiserver's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import ApiError, forbidden

from .lookups import answers_of
from .rules import match
from .webhook_client import review_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.evaluate import Answer, CompiledPolicy, Evaluation, Lookup
    from engine.model import Review, RuleResult
    from kpolicy_sandbox.call import Call

    from .webhook_client import Subject

Object = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
VALIDATING, MUTATING = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"
_PLURALS = {VALIDATING: "validatingadmissionpolicies", MUTATING: "mutatingadmissionpolicies"}
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
_INVALID = (422, "Invalid")
_DURING = "failed to evaluate: "
_NO_PARAMS = "no params found"
_MOST = 256


class NativePolicies:
    """Judges requests by the policies that the store holds; each is compiled once with each binding."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, str], CompiledPolicy] = {}

    def judge(self, call: Call, subject: Subject) -> None:
        """Add the warnings of all policies to a request. ApiError for the first denial, once all have been asked."""
        denials = [
            denial
            for policy, binding in _bound(call, VALIDATING)
            if (denial := self._asked(call, subject, policy, binding)) is not None
        ]
        if denials:
            raise denials[0]

    def mutate(self, call: Call, subject: Subject) -> Object | None:
        """Return the object as the mutating policies leave it, in the order of their bindings. ApiError for one that fails."""
        for policy, binding in _bound(call, MUTATING):
            if subject.obj is not None:
                subject = replace(subject, obj=self._mutated(call, subject, policy, binding))
        return subject.obj

    def _mutated(self, call: Call, subject: Subject, policy: Object, binding: Object) -> Object:
        from engine.errors import EngineError
        from engine.model import Status
        from kpolicy_sandbox.objects.versions import presented

        obj: Object = subject.obj or {}
        review = _review(call, subject, policy)
        if review is None:
            return obj
        is_open = policy["spec"].get("failurePolicy") == "Ignore"
        try:
            results = _evaluated(call, self._of(policy, binding), review).results
            failed = next((one.message for one in results if one.status is not Status.PASS), "")
        except EngineError as error:
            results, failed = [], error.message
        if failed and not is_open:
            raise _denied(call, policy, binding, _worded(failed), review.name, _INVALID)
        made = next((one.patched for one in results if one.patched is not None), None)
        return obj if made is None else presented(call.resource, made)

    def _asked(
        self, call: Call, subject: Subject, policy: Object, binding: Object
    ) -> ApiError | None:
        from engine.errors import EngineError

        review = _review(call, subject, policy)
        if review is None:
            return None
        try:
            compiled = self._of(policy, binding)
        except EngineError as error:
            if policy["spec"].get("failurePolicy") == "Ignore":
                return None
            text = f"compilation error: {error.message}"
            return _denied(call, policy, binding, text, review.name, _INVALID)
        try:
            results = _evaluated(call, compiled, review).results
        except EngineError as error:
            if compiled.policy.failure_policy == "Ignore":
                return None
            return _denied(call, policy, binding, error.message, review.name, _INVALID)
        for result in results:
            if (denial := _ruled(call, compiled, review, binding, result)) is not None:
                return denial
        return None

    def _of(self, policy: Object, binding: Object) -> CompiledPolicy:
        """Return a policy as one binding binds it; raises EngineError."""
        from engine.evaluate.cel.policies import compile_cel_policy
        from engine.parse.celpolicies import parse_binding, parse_cel_policy

        key = _version(policy), _version(binding)
        found = self._compiled.get(key)
        if found is None:
            bound = parse_binding(binding, strict=False)
            found = compile_cel_policy(parse_cel_policy(policy, strict=False), (), (bound,))
            if len(self._compiled) >= _MOST:
                self._compiled.clear()
            self._compiled[key] = found
        return found


def _version(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{metadata['uid']}/{metadata['resourceVersion']}"


def _bound(call: Call, kind: str) -> Iterator[tuple[Object, Object]]:
    """Yield the policies of a kind that are bound, each with its binding; none is about policies and webhooks themselves."""
    store = call.cluster.store
    for binding in store.list(f"{GROUP}/{_PLURALS[kind].replace('policies', 'policybindings')}"):
        name = str((binding.get("spec") or {}).get("policyName"))
        policy = store.get(f"{GROUP}/{_PLURALS[kind]}", "", name)
        if policy is not None:
            yield _typed(policy, kind), _typed(binding, f"{kind}Binding")


def _typed(obj: Object, kind: str) -> Object:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, **obj}


def _review(call: Call, subject: Subject, policy: Object) -> Review | None:
    """Return a request in the version that a policy names; None where its constraints keep it out by themselves."""
    from engine.model import Review, UserInfo

    constraints = (policy.get("spec") or {}).get("matchConstraints") or {}
    hook = {
        "rules": constraints.get("resourceRules"),
        "matchPolicy": constraints.get("matchPolicy") or "Equivalent",
    }
    found = match(call, hook, subject.operation, (subject.obj, subject.old))
    if found is None:
        return None
    request = review_of(call, found, subject)["request"]
    user = call.user
    space = call.cluster.store.get("/namespaces", "", call.namespace) or {}
    return Review(
        object=request["object"],
        old_object=request["oldObject"],
        operation=subject.operation,
        group=found.resource.group,
        version=found.resource.version,
        kind=found.resource.kind,
        subresource=call.subresource,
        user=UserInfo(user.name, user.uid, tuple(user.groups), dict(user.extra)),
        namespace_labels=(space.get("metadata") or {}).get("labels") or {},
        request=request,
        dry_run=call.dry_run,
    )


def _evaluated(
    call: Call, compiled: CompiledPolicy, review: Review, *, trace: bool = False
) -> Evaluation:
    """Return what a policy says, with all that it asks for answered."""
    from engine.evaluate import Inputs, PolicySet, evaluate
    from engine.evaluate.asking import conclude, until_answered

    policies, now = PolicySet((compiled,)), call.cluster.clock.now()

    def ask(answers: Mapping[Lookup, Answer]) -> Evaluation:
        return evaluate(policies, review, Inputs(now=now, answers=answers), trace=trace)

    return conclude(until_answered(ask, {}), lambda lookups: answers_of(call, lookups))


def _ruled(
    call: Call, compiled: CompiledPolicy, review: Review, binding: Object, result: RuleResult
) -> ApiError | None:
    """Return the denial that a result comes to, if it does; a warning is added to the answer."""
    from engine.model import Status

    policy = compiled.policy
    fails_closed = policy.failure_policy == "Fail"
    if result.status not in (Status.FAIL, Status.ERROR):
        return None
    if result.status is Status.ERROR and not fails_closed:
        return None
    text = _worded(result.message)
    actions = (binding.get("spec") or {}).get("validationActions") or ()
    if "Warn" in actions:
        named = f"'{policy.name}' with binding '{binding['metadata']['name']}'"
        call.warnings.append(f"Validation failed for ValidatingAdmissionPolicy {named}: {text}")
    if "Deny" not in actions and result.status is Status.FAIL:
        return None
    reason = _reason(call, compiled, review)
    return _denied(call, policy.raw, binding, text, review.name, reason)


def _worded(message: str) -> str:
    text = message.removeprefix(_DURING)
    return f"failed to configure binding: {text}" if text.startswith(_NO_PARAMS) else text


def _reason(call: Call, compiled: CompiledPolicy, review: Review) -> tuple[int, str]:
    """Return code and reason of a denial: those of the validation that is not met, as an explanation names it."""
    traces = _evaluated(call, compiled, review, trace=True).traces
    steps = (step for trace in traces for step in trace.steps if step.kind == "expression")
    missed = next((step for step in steps if step.holds is False), None)
    if missed is None or missed.value is not None:
        return _INVALID
    for validation in compiled.policy.raw["spec"].get("validations") or ():
        if str(validation.get("expression", "")).strip() == missed.text:
            reason = str(validation.get("reason") or "Invalid")
            return _CODES.get(reason, 422), reason
    return _INVALID


def _denied(
    call: Call, policy: Object, binding: Object, text: str, name: str, reason: tuple[int, str]
) -> ApiError:
    names = policy["metadata"]["name"], binding["metadata"]["name"]
    message = f"{policy['kind']} '{names[0]}' with binding '{names[1]}' denied request: {text}"
    resource = call.resource
    error = forbidden(resource.plural, resource.group, call.name or name or "Unknown", message)
    error.code, error.reason = reason
    error.details = {**error.details, "causes": [{"message": message}]}
    return error
