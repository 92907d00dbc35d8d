"""Native admission policies with their bindings: the API server's own checks, which need nobody beside it.

Mutating ones come before the mutating webhooks and validating ones before the validating webhooks, and a policy that nothing binds
does nothing. What they say is evaluated by the implementation of CEL that the sandbox was given; what becomes of it, and the texts,
are kube-apiserver's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.access.reviews import answer
from kpolicy_sandbox.errors import ApiError, forbidden
from kpolicy_sandbox.expressions import PolicyInput, Verdict, needed
from kpolicy_sandbox.objects.selectors import matches_selector
from kpolicy_sandbox.objects.versions import presented

from .rules import match
from .webhook_client import Subject, review_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpolicy_sandbox.call import Call
    from kpolicy_sandbox.kinds import Resource


Object = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
VALIDATING, MUTATING = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"
_PLURALS = {VALIDATING: "validatingadmissionpolicies", MUTATING: "mutatingadmissionpolicies"}
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
_INVALID = (422, "Invalid")
_DURING = "failed to evaluate: "
_NO_PARAMS = "no params found"


def judge(call: Call, subject: Subject) -> None:
    """Add the warnings of all policies to a request. ApiError for the first denial, once all have been asked."""
    denials = [
        denial
        for policy, binding in _bound(call, VALIDATING)
        if (denial := _asked(call, subject, policy, binding)) is not None
    ]
    if denials:
        raise denials[0]


def mutate(call: Call, subject: Subject) -> Object | None:
    """Return the object as the mutating policies leave it, in the order of their bindings. ApiError for one that fails."""
    for policy, binding in _bound(call, MUTATING):
        if subject.obj is not None:
            subject = replace(subject, obj=_mutated(call, subject, policy, binding))
    return subject.obj


def _mutated(call: Call, subject: Subject, policy: Object, binding: Object) -> Object:
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
            return answer(self.call.on(resource=resource), review)
        except ApiError as error:
            raise LookupError(error.message) from error

    def _resource(self, api_version: str, kind: str) -> Resource:
        found = self.call.cluster.registry.by_api_version(api_version, kind)
        if found is None:
            text = f'failed to find resource referenced by paramKind: no matches for kind "{kind}" in version "{api_version}"'
            raise LookupError(text)
        return found
