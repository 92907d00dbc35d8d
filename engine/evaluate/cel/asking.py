"""Questions that expressions ask, translated into the lookups of evaluations, and the answers translated back.

The language has its own words for what lies outside, so that it needs nothing of this layer; whoever answers lookups
need not know that an expression asked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import vocabulary
from engine.evaluate.lookups import ApiCallLookup, GlobalLookup, ImageLookup, Lookup, ServiceLookup
from engine.fields import members
from engine.lang.cel import CelError, lookups
from engine.lang.cel.functions import imagenames
from engine.model.resources import resource_of

if TYPE_CHECKING:
    from engine.evaluate.inputs import Inputs
    from engine.model import Review


def answered(question: Any, inputs: Inputs, review: Review) -> Any:
    """Answer an expression's question from the answers at hand; raises LookupNeeded for one that is not among them.

    An error or an absent answer is a CelError, so that the expression fails where it asked. A namespaced policy
    cannot call services at all, as upstream has it (row L-10).
    """
    match question:
        case lookups.MapKind(api_version=api_version, kind=kind):
            group, _, version = api_version.rpartition("/")
            return {"group": group, "version": version, "resource": resource_of(kind)}
        case lookups.HttpCall() if inputs.within:
            raise CelError("http calls are not allowed in namespaced policies")
        case lookups.AccessCheck():
            return _access(question, inputs, review)
        case lookups.GetResource(namespace=None) | lookups.ListResources(namespace=None) if (
            not inputs.within
        ):
            raise CelError("a policy of no namespace has to name one")
        case lookups.GetResource(namespace=None) | lookups.ListResources(namespace=None):
            question = replace(question, namespace=inputs.within)
        case lookups.PostResource(namespace=None):
            question = replace(question, namespace=inputs.within)
    lookup = _lookup(question)
    answer = inputs.ask(lookup)
    if answer.is_missing and isinstance(question, (lookups.GetResource, lookups.GlobalContext)):
        return None
    if answer.is_absent and isinstance(question, lookups.GlobalContext):
        return None
    if answer.error:
        raise CelError(answer.error)
    if answer.is_absent:
        raise CelError(f"{_named(lookup)} is not known here")
    return as_read(question, answer.value)


def as_read(question: Any, value: Any) -> Any:
    """Return an answer in the form that expressions read it: a response with its body, image data by CEL's names."""
    if isinstance(question, lookups.HttpCall):
        return {"body": value, "statusCode": 200}
    if isinstance(question, lookups.ListResources):
        return _with_kinds(value)
    if isinstance(question, lookups.ImageMetadata) and isinstance(value, dict):
        named = imagenames.parse(question.reference)
        return {
            **value,
            "tag": named.tag if named else "",
            "digest": str(value.get("resolvedImage") or "").partition("@")[2],
            "config": value.get("configData"),
            "imageIndex": value.get("manifestList"),
        }
    return value


def _with_kinds(value: Any) -> Any:
    """Return a list whose items say what they are; API servers say it once, of the whole list."""
    found = members(value)
    if found is None:
        return value
    return {**value, "items": [one for one in found if isinstance(one, dict)]}


def _lookup(question: Any) -> Lookup:
    match question:
        case lookups.GetResource():
            path = resource_path(question.api_version, question.resource, question.namespace or "")
            return ApiCallLookup("GET", f"{path}/{_segment(question.name)}")
        case lookups.ListResources():
            path = resource_path(question.api_version, question.resource, question.namespace or "")
            pairs = ",".join(f"{key}={value}" for key, value in question.labels)
            return ApiCallLookup("GET", f"{path}?labelSelector={pairs}" if pairs else path)
        case lookups.PostResource():
            path = resource_path(question.api_version, question.resource, question.namespace or "")
            return ApiCallLookup("POST", path, _body(question.body))
        case lookups.HttpCall():
            body = "" if question.body is None else _body(question.body)
            return ServiceLookup(
                question.method, question.url, question.headers, body, question.ca_bundle
            )
        case lookups.GlobalContext():
            return GlobalLookup(".".join(filter(None, (question.name, question.projection))))
        case lookups.ImageMetadata():
            return ImageLookup(question.reference)
    raise CelError(f"{type(question).__name__} cannot be answered here")


def _named(lookup: Lookup) -> str:
    match lookup:
        case ApiCallLookup():
            return f"`{lookup.method} {lookup.url_path}`"
        case ServiceLookup():
            return f"`{lookup.method} {lookup.url}`"
        case GlobalLookup():
            return f"global context entry `{lookup.name}`"
        case ImageLookup():
            return f"image `{lookup.reference}`"
    return type(lookup).__name__


def _body(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise CelError(f"the body cannot be written as JSON: {error}") from error


def resource_path(api_version: str, resource: str, namespace: str) -> str:
    """Return the API server's path of a collection; raises CelError for words that would lead elsewhere."""
    group, slash, version = api_version.rpartition("/")
    root = f"/apis/{_segment(group)}/{_segment(version)}" if slash else f"/api/{_segment(version)}"
    place = f"namespaces/{_segment(namespace)}/" if namespace else ""
    return f"{root}/{place}{_segment(resource)}"


def _segment(text: str) -> str:
    """Return a word of a path, one that stays one word; raises CelError."""
    if not text or text in (".", "..") or any(char in text for char in "/?#%&\\"):
        raise CelError(f"`{text}` is not a name")
    return text


def _access(question: lookups.AccessCheck, inputs: Inputs, review: Review) -> dict[str, Any]:
    """Ask the API server whether the requester, or a service account, may do something.

    An answer that cannot be had is no permission.
    """
    body = _body({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {**_requester(question, review), **_action(question)}})  # fmt: skip
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = inputs.ask(ApiCallLookup("POST", path, body))
    if answer.error or answer.is_absent:
        return {"allowed": False, "reason": "", "error": answer.error or "no authorizer is known"}
    value = answer.value if isinstance(answer.value, dict) else {}
    status = value.get("status") or {}
    return {
        "allowed": status.get("allowed") is True,
        "reason": status.get("reason", ""),
        "error": status.get("evaluationError", ""),
    }


def _requester(question: lookups.AccessCheck, review: Review) -> dict[str, Any]:
    if question.service_account:
        namespace, _, name = question.service_account.partition("/")
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        return {"user": f"{vocabulary.SERVICE_ACCOUNT}{namespace}:{name}", "groups": groups}
    user = review.user
    return {"user": user.username, "uid": user.uid, "groups": list(user.groups)}


def _action(question: lookups.AccessCheck) -> dict[str, Any]:
    if question.path:
        return {"nonResourceAttributes": {"path": question.path, "verb": question.verb}}
    attributes = {
        "verb": question.verb,
        "group": question.group,
        "resource": question.resource,
        "subresource": question.subresource,
        "namespace": question.namespace,
        "name": question.name,
    }
    selectors = {"fieldSelector": question.field_selector, "labelSelector": question.label_selector}
    raw = {key: {"rawSelector": text} for key, text in selectors.items() if text}
    return {
        "resourceAttributes": {**{key: text for key, text in attributes.items() if text}, **raw}
    }
