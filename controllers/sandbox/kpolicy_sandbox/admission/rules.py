"""Whether a webhook is asked about a request: rules, scope, equivalent versions, selectors of namespace and object.

Apart from the chain so that every matching rule of a real API server can be tested by values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.objects.selectors import matches_selector

if TYPE_CHECKING:
    from kpolicy_sandbox.call import Call
    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]
_EXEMPT = {
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
}


@dataclass(frozen=True, slots=True)
class Match:
    """A webhook that is asked, and the resource in whose version it wants the object."""

    hook: Object
    resource: Resource


def match(call: Call, hook: Object, operation: str, objects: tuple[Any, Any]) -> Match | None:
    """Return how a webhook is asked about a request; None when it is not."""
    if (call.resource.group, call.resource.plural) in _EXEMPT:
        return None
    resource = _resource(call, hook, operation)
    if resource is None or not _namespace_fits(call, hook, objects):
        return None
    selector = hook.get("objectSelector")
    if selector and not any(
        matches_selector(selector, _labels(obj)) for obj in objects if obj is not None
    ):
        return None
    return Match(hook, resource)


def _resource(call: Call, hook: Object, operation: str) -> Resource | None:
    rules = hook.get("rules") or ()
    if any(rule_fits(rule, call.resource, call.subresource, operation) for rule in rules):
        return call.resource
    if hook.get("matchPolicy", "Equivalent") != "Equivalent":
        return None
    for other in call.cluster.registry.versions_of(call.resource):
        if other is not call.resource and any(
            rule_fits(rule, other, call.subresource, operation) for rule in rules
        ):
            return other
    return None


def rule_fits(rule: Object, resource: Resource, subresource: str, operation: str) -> bool:
    """Tell whether a rule names an operation on a resource in exactly this group and version."""
    return (
        _named(rule.get("operations"), operation)
        and _named(rule.get("apiGroups"), resource.group)
        and _named(rule.get("apiVersions"), resource.version)
        and any(
            _resource_fits(word, resource.plural, subresource)
            for word in rule.get("resources") or ()
        )
        and _scope_fits(rule.get("scope", "*"), resource)
    )


def _named(words: Any, word: str) -> bool:
    return "*" in (words or ()) or word in (words or ())


def _resource_fits(word: str, plural: str, subresource: str) -> bool:
    if word == "*/*":
        return True
    main, _, sub = word.partition("/")
    return main in {"*", plural} and sub in {"*", subresource}


def _scope_fits(scope: str, resource: Resource) -> bool:
    if scope == "*":
        return True
    # a Namespace itself is cluster scoped here, whatever its requests look like
    return (scope == "Namespaced") == resource.namespaced


def _namespace_fits(call: Call, hook: Object, objects: tuple[Any, Any]) -> bool:
    selector = hook.get("namespaceSelector")
    if not selector:
        return True
    if call.resource.storage == "/namespaces":
        known = next((obj for obj in objects if obj is not None), None)
        return matches_selector(selector, _labels(known))
    if not call.resource.namespaced:
        return True
    return matches_selector(
        selector, _labels(call.cluster.store.get("/namespaces", "", call.namespace))
    )


def _labels(obj: Object | None) -> dict[str, str]:
    labels: dict[str, str] = ((obj or {}).get("metadata") or {}).get("labels") or {}
    return labels
