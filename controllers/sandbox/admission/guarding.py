"""ValidatingAdmissionPolicies with their bindings: the API server's own checks, which need nobody beside it.

They are judged before validating webhooks are asked, as in kube-apiserver, whose texts these are. Policies with parameters are
passed over with a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controllers.sandbox.errors import ApiError

from . import conditions
from .rules import match
from .wire import review_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controllers.sandbox.call import Call

    from .rules import Match
    from .wire import Subject

Object = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
POLICIES = f"{GROUP}/validatingadmissionpolicies"
BINDINGS = f"{GROUP}/validatingadmissionpolicybindings"
_STATUS = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}


def guard(call: Call, subject: Subject) -> None:
    """Judge a request by every policy that is bound. ApiError for the first check that does not hold."""
    for policy, binding in _bound(call):
        if policy["spec"].get("paramKind"):
            call.warnings.append(f"policy {policy['metadata']['name']} needs parameters, which nobody reads here")  # fmt: skip
            continue
        found = _match(call, policy, binding, subject)
        if found is not None:
            _judge(call, policy, binding, review_of(call, found, subject)["request"])


def _bound(call: Call) -> Iterator[tuple[Object, Object]]:
    """Yield the policies that are to deny, each with its binding."""
    if call.resource.group == GROUP:
        return
    for binding in call.cluster.store.list(BINDINGS):
        spec = binding.get("spec") or {}
        policy = call.cluster.store.get(POLICIES, "", str(spec.get("policyName")))
        if policy is not None and "Deny" in (spec.get("validationActions") or ()):
            yield policy, binding


def _match(call: Call, policy: Object, binding: Object, subject: Subject) -> Match | None:
    """Return how a policy sees a request; None where policy or binding is not about it."""
    spec = policy["spec"]
    hook = _as_hook(policy, spec.get("matchConstraints") or {})
    found = match(call, hook, subject.operation, (subject.obj, subject.old))
    narrower = binding["spec"].get("matchResources")
    if found is None or not conditions.hold(call, found, subject):
        return None
    if narrower:
        bound = _as_hook(policy, {**spec["matchConstraints"], **narrower})
        return match(call, bound, subject.operation, (subject.obj, subject.old))
    return found


def _as_hook(policy: Object, where: Object) -> Object:
    return {
        "name": policy["metadata"]["name"],
        "rules": where.get("resourceRules") or [],
        "failurePolicy": policy["spec"].get("failurePolicy", "Fail"),
        "matchPolicy": where.get("matchPolicy", "Equivalent"),
        "matchConditions": policy["spec"].get("matchConditions"),
        "namespaceSelector": where.get("namespaceSelector"),
        "objectSelector": where.get("objectSelector"),
    }


def _judge(call: Call, policy: Object, binding: Object, request: Object) -> None:
    from engine.errors import EngineError
    from engine.lang.cel import compile as compiled

    bindings = {"request": request, "object": request["object"], "oldObject": request["oldObject"], "variables": {}}  # fmt: skip
    spec = policy["spec"]
    for check in spec.get("validations") or ():
        expression = check["expression"]
        try:
            for variable in spec.get("variables") or ():
                bindings["variables"][variable["name"]] = compiled(variable["expression"])(bindings)
            holds = compiled(expression)(bindings)
        except EngineError as error:
            if spec.get("failurePolicy") == "Ignore":
                continue
            raise _denied(call, policy, binding, {}, f"expression '{expression}' resulted in error: {error}") from error  # fmt: skip
        if holds is not True:
            text = check.get("message") or f"failed expression: {expression}"
            raise _denied(call, policy, binding, check, text)


def _denied(call: Call, policy: Object, binding: Object, check: Object, text: str) -> ApiError:
    reason = check.get("reason") or "Invalid"
    names = (policy["metadata"]["name"], binding["metadata"]["name"])
    resource = call.resource
    kind = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    word = "forbidden" if reason == "Forbidden" else "invalid"
    message = f"{kind} \"{call.name}\" is {word}: ValidatingAdmissionPolicy '{names[0]}' with binding '{names[1]}' denied request: {text}"
    return ApiError(_STATUS.get(reason, 422), reason, message)
