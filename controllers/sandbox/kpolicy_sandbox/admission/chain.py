"""The chain of admission: mutating policies and webhooks in series, once more where asked, then validating ones side by side.

All validating webhooks finish even when one denies, and the first denial is the answer; a refused call is a denial or is passed over as
`failurePolicy` says. The server's own admission policies come before the webhooks, and one that nothing binds does nothing. What they
say is evaluated by the implementation of CEL that the sandbox was given; what becomes of it, and the texts, are kube-apiserver's.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from kpolicy_sandbox.access import reviews
from kpolicy_sandbox.errors import ApiError, bad_request, forbidden, internal
from kpolicy_sandbox.expressions import Expressions, PolicyInput, Verdict, needed
from kpolicy_sandbox.kinds import presented
from kpolicy_sandbox.objects.patches import json_patch
from kpolicy_sandbox.objects.selectors import matches_selector

from .rules import match
from .webhook_client import Caller, CallFailed, Subject, all_of, review_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpolicy_sandbox.call import Call
    from kpolicy_sandbox.kinds import Resource

    from .rules import Match

Object = dict[str, Any]
MUTATING = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
VALIDATING = "admissionregistration.k8s.io/validatingwebhookconfigurations"


@dataclass(slots=True)
class Chain:
    """Asks the webhooks that the store holds."""

    caller: Caller = field(default_factory=Caller)

    async def mutate(self, call: Call, subject: Subject) -> Any:
        """Return the object as the server's own policies and then the mutating webhooks leave it. ApiError for a denial or a failed call."""
        subject = replace(subject, obj=mutated_by_policies(call, subject))
        asked: list[tuple[Object, Object | None]] = []
        for hook in _hooks(call, MUTATING):
            subject = replace(subject, obj=await self._mutated(call, hook, subject))
            asked.append((hook, subject.obj))
        for hook, seen in asked:
            if hook.get("reinvocationPolicy") == "IfNeeded" and seen != subject.obj:
                subject = replace(subject, obj=await self._mutated(call, hook, subject))
        return subject.obj

    async def _mutated(self, call: Call, hook: Object, subject: Subject) -> Any:
        found = self._match(call, hook, subject)
        if found is None:
            return subject.obj
        response = await self._ask(call, found, subject)
        if response is None:
            return subject.obj
        _judge(call, hook, response)
        if not response.get("patch") or subject.obj is None:
            return subject.obj
        if response.get("patchType") != "JSONPatch":
            raise internal(f'admission webhook "{hook["name"]}" has an unknown patchType')
        return _patched(call, found, subject.obj, response["patch"])

    async def validate(self, call: Call, subject: Subject) -> None:
        """Judge by the server's own policies, then ask the validating webhooks. ApiError for the first denial or failed call."""
        judge_by_policies(call, subject)
        found = [
            one
            for hook in _hooks(call, VALIDATING)
            if (one := self._match(call, hook, subject)) is not None
        ]
        answers = await all_of([self._ask(call, one, subject) for one in found])
        first: BaseException | None = None
        for one, answer in zip(found, answers, strict=True):
            try:
                if isinstance(answer, BaseException):
                    raise answer
                if answer is not None:
                    _judge(call, one.hook, answer)
            except ApiError as error:
                first = first or error
        if first is not None:
            raise first

    def _match(self, call: Call, hook: Object, subject: Subject) -> Match | None:
        found = match(call, hook, subject.operation, (subject.obj, subject.old))
        if found is None or not hold(call, found, subject):
            return None
        return found

    async def _ask(self, call: Call, found: Match, subject: Subject) -> Object | None:
        """Return the answer; None when the call failed and that is to be passed over."""
        hook = found.hook
        if call.dry_run and hook.get("sideEffects") not in {"None", "NoneOnDryRun"}:
            raise bad_request(f'admission webhook "{hook["name"]}" does not support dry run')
        try:
            return await self.caller.ask(call, found, subject)
        except CallFailed as error:
            if hook.get("failurePolicy") == "Ignore":
                return None
            raise internal(
                f'failed calling webhook "{hook["name"]}": failed to call webhook: {error}'
            ) from error

    async def close(self) -> None:
        """Close open connections."""
        await self.caller.close()


def _hooks(call: Call, storage: str) -> list[Object]:
    return [
        hook
        for configuration in call.cluster.store.list(storage)
        for hook in configuration.get("webhooks") or ()
    ]


def _judge(call: Call, hook: Object, response: Object) -> None:
    """Pass on warnings; raise ApiError when the webhook denies, in kube-apiserver's words."""
    call.warnings += [str(text) for text in response.get("warnings") or ()]
    if response.get("allowed"):
        return
    status = response.get("status") or {}
    name, message, reason = hook["name"], status.get("message", ""), status.get("reason", "")
    prefix = f'admission webhook "{name}" denied the request'
    if message:
        text = f"{prefix}: {message}"
    elif reason:
        text = f"{prefix}: {reason}"
    else:
        text = f"{prefix} without explanation"
    code = status.get("code") or 400
    raise ApiError(max(code, 400), reason, text, status.get("details"))


def _patched(call: Call, found: Match, obj: Object, patch: str) -> Object:
    """Return the object with a webhook's patch, which is written against the version that the webhook saw."""
    from kpolicy_sandbox.kinds import presented

    try:
        operations = orjson.loads(base64.b64decode(patch))
    except ValueError as error:
        raise internal(f'the patch of webhook "{found.hook["name"]}" cannot be read') from error
    try:
        made = json_patch(presented(found.resource, obj), operations)
    except ApiError as error:
        raise internal(error.message) from error
    return presented(call.resource, made)


# matchConditions of webhooks: CEL expressions that all must hold before a webhook is asked.
#
# A condition that is false wins over one that fails; a failure counts as the webhook's own, so `failurePolicy` decides.


def hold(call: Call, found: Match, subject: Subject) -> bool:
    """Tell whether the conditions of a matching webhook hold. ApiError when one fails and that is not to be passed over."""
    conditions = found.hook.get("matchConditions")
    if not conditions:
        return True
    request = review_of(call, found, subject)["request"]
    bindings = {"request": request, "object": request["object"], "oldObject": request["oldObject"]}
    expressions, failure = needed(call.cluster.expressions), ""
    for condition in conditions:
        verdict = _verdict(expressions, condition["expression"], bindings)
        if verdict is False:
            return False
        if verdict is not True:
            failure = f"{condition.get('name', '')}: {verdict}"
    if not failure:
        return True
    if found.hook.get("failurePolicy") == "Ignore":
        return False
    raise internal(f'failed calling webhook "{found.hook["name"]}": matchCondition {failure}')


def _verdict(expressions: Expressions, text: str, bindings: dict[str, Any]) -> bool | str:
    try:
        found = expressions.compile(text)(bindings)
    except ValueError as error:
        return str(error)
    return found if isinstance(found, bool) else "the expression is not boolean"


GROUP = "admissionregistration.k8s.io"
VALIDATING_POLICY, MUTATING_POLICY = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"
_PLURALS = {
    VALIDATING_POLICY: "validatingadmissionpolicies",
    MUTATING_POLICY: "mutatingadmissionpolicies",
}
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
_INVALID = (422, "Invalid")
_DURING = "failed to evaluate: "
_NO_PARAMS = "no params found"


def judge_by_policies(call: Call, subject: Subject) -> None:
    """Add the warnings of all policies to a request. ApiError for the first denial, once all have been asked."""
    denials = [
        denial
        for policy, binding in _bound(call, VALIDATING_POLICY)
        if (denial := _asked(call, subject, policy, binding)) is not None
    ]
    if denials:
        raise denials[0]


def mutated_by_policies(call: Call, subject: Subject) -> Object | None:
    """Return the object as the mutating policies leave it, in the order of their bindings. ApiError for one that fails."""
    for policy, binding in _bound(call, MUTATING_POLICY):
        if subject.obj is not None:
            subject = replace(subject, obj=_mutated_by(call, subject, policy, binding))
    return subject.obj


def _mutated_by(call: Call, subject: Subject, policy: Object, binding: Object) -> Object:
    obj: Object = subject.obj or {}
    asked = _input(call, subject, policy)
    if asked is None:
        return obj
    expressions = needed(call.cluster.expressions)
    try:
        made, failure = expressions.mutated(policy, binding, asked, StoredFacts(call))
    except ValueError as error:
        made, failure = None, str(error)
    if failure and not _ignores_failures(policy):
        raise _denied(call, policy, binding, _worded(failure), asked, _INVALID)
    return obj if made is None else presented(call.resource, made)


def _asked(call: Call, subject: Subject, policy: Object, binding: Object) -> ApiError | None:
    asked = _input(call, subject, policy)
    if asked is None:
        return None
    expressions = needed(call.cluster.expressions)
    try:
        found = [*expressions.verdicts(policy, binding, asked, StoredFacts(call))]
    except ValueError as error:
        if _ignores_failures(policy):
            return None
        return _denied(call, policy, binding, str(error), asked, _INVALID)
    for verdict in found:
        if (denial := _ruled(call, policy, binding, asked, verdict)) is not None:
            return denial
    return None


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


def _input(call: Call, subject: Subject, policy: Object) -> PolicyInput | None:
    """Return a request in the version that a policy names; None where its constraints keep it out by themselves."""
    constraints = (policy.get("spec") or {}).get("matchConstraints") or {}
    hook = {
        "rules": constraints.get("resourceRules"),
        "matchPolicy": constraints.get("matchPolicy") or "Equivalent",
    }
    found = match(call, hook, subject.operation, (subject.obj, subject.old))
    if found is None:
        return None
    space = call.cluster.store.get("/namespaces", "", call.namespace) or {}
    return PolicyInput(
        request=review_of(call, found, subject)["request"],
        kind=found.resource.kind,
        namespace_labels=(space.get("metadata") or {}).get("labels") or {},
        now=call.cluster.clock.now(),
    )


def _ignores_failures(policy: Object) -> bool:
    return bool(policy["spec"].get("failurePolicy") == "Ignore")


def _ruled(
    call: Call, policy: Object, binding: Object, asked: PolicyInput, verdict: Verdict
) -> ApiError | None:
    """Return the denial that a verdict comes to, if it does; a warning is added to the answer."""
    if verdict.is_error and _ignores_failures(policy):
        return None
    text = _worded(verdict.message)
    actions = (binding.get("spec") or {}).get("validationActions") or ()
    if "Warn" in actions:
        named = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
        call.warnings.append(f"Validation failed for ValidatingAdmissionPolicy {named}: {text}")
    if "Deny" not in actions and not verdict.is_error:
        return None
    return _denied(call, policy, binding, text, asked, _reason(policy, verdict))


def _worded(message: str) -> str:
    text = message.removeprefix(_DURING)
    return f"failed to configure binding: {text}" if text.startswith(_NO_PARAMS) else text


def _reason(policy: Object, verdict: Verdict) -> tuple[int, str]:
    """Return code and reason of a denial: those of the validation that is not met."""
    for validation in policy["spec"].get("validations") or () if verdict.unmet else ():
        if str(validation.get("expression", "")).strip() == verdict.unmet:
            reason = str(validation.get("reason") or "Invalid")
            return _CODES.get(reason, 422), reason
    return _INVALID


def _denied(
    call: Call,
    policy: Object,
    binding: Object,
    text: str,
    asked: PolicyInput,
    reason: tuple[int, str],
) -> ApiError:
    names = policy["metadata"]["name"], binding["metadata"]["name"]
    message = f"{policy['kind']} '{names[0]}' with binding '{names[1]}' denied request: {text}"
    name = asked.request.get("name") or "Unknown"
    error = forbidden(call.resource.plural, call.resource.group, name, message)
    error.code, error.reason = reason
    error.details = {**error.details, "causes": [{"message": message}]}
    return error


# What expressions of admission policies ask for, answered from the sandbox's own store: objects, lists, rights.
#
# Apart from the policies themselves, because it is the store's side of `expressions.Facts`.


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """The facts for one call; each is what the store has at this moment."""

    call: Call

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, None when there is none. LookupError for a kind that is not served."""
        resource = self._resource(api_version, kind)
        found = self.call.cluster.store.get(resource.storage, namespace, name)
        return found and presented(resource, found)

    def list(self, api_version: str, kind: str, namespace: str, selector: Object) -> list[Object]:
        """Return the objects that a label selector selects in a namespace. LookupError for a kind that is not served."""
        resource = self._resource(api_version, kind)
        if resource.namespaced and not namespace:
            return []
        return [
            presented(resource, obj)
            for obj in self.call.cluster.store.list(resource.storage, namespace)
            if matches_selector(selector, obj["metadata"].get("labels") or {})
        ]

    def reviewed(self, review: Object) -> Object:
        """Return a SubjectAccessReview with its answer. LookupError for one without a question."""
        resource = self.call.cluster.resource("authorization.k8s.io", "subjectaccessreviews")
        try:
            return reviews.answer(self.call.on(resource=resource), review)
        except ApiError as error:
            raise LookupError(error.message) from error

    def _resource(self, api_version: str, kind: str) -> Resource:
        found = self.call.cluster.registry.by_api_version(api_version, kind)
        if found is None:
            text = f'failed to find resource referenced by paramKind: no matches for kind "{kind}" in version "{api_version}"'
            raise LookupError(text)
        return found
