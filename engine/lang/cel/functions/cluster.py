"""Kyverno's functions that look outside: cluster, other services, the global context, registries; and `generator`.

Every one of them is a question to `CelEnv.ask` (row L-10). Names have both letter cases, since both are in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from engine.lang.cel import lookups
from engine.lang.cel.ast import Call, Ident, Literal, Node, walk
from engine.lang.cel.errors import no_overload
from engine.lang.cel.values import Message

from .registry import KINDS, Library

LIBRARY: Final = Library(cost=60)


@dataclass(frozen=True, slots=True)
class HttpClient(Message):
    """What `http.Client(ca)` gives: calls that trust the given certificates."""

    ca_bundle: str
    TYPE = "http.Context"


KINDS["HttpClient"] = (HttpClient,)


_ARGUMENTS: Final = {
    ("generator", "apply"): ((2,), (1,)),
    ("resource", "get"): ((4,), (3,)),
    ("resource", "list"): ((3, 4), (2, 3)),
    ("resource", "post"): ((3, 4), (3,)),
}
"""How many arguments functions take in policies of the cluster, and in those of a namespace."""


def misplaced_calls(tree: Node, *, is_namespaced: bool) -> Iterator[Call]:
    """Yield the calls of an expression as only policies of the other scope make them: those of a namespace name none."""
    for node in walk(tree):
        if not (isinstance(node, Call) and isinstance(node.target, Ident)):
            continue
        counts = _ARGUMENTS.get((node.target.name, node.name.lower()))
        if counts is not None and not _given(node) & set(counts[is_namespaced]):
            yield node


def _given(call: Call) -> set[int]:
    """Return how many arguments a call may have: version and resource may come as one, which is no text."""
    count = len(call.arguments)
    first = call.arguments[0] if call.arguments else None
    is_about_objects = isinstance(call.target, Ident) and call.target.name == "resource"
    is_one = is_about_objects and not isinstance(first, Literal)
    return {count, count + 1} if is_one else {count}


def both_cases(*signatures: str) -> tuple[str, ...]:
    """Return signatures with the last name of each in its two cases: `resource.Get(…)` and `resource.get(…)`."""
    found = []
    for signature in signatures:
        name, rest = signature.split("(", 1)
        prefix, _, last = name.rpartition(".")
        found += [f"{prefix}.{last}({rest}", f"{prefix}.{last[0].lower()}{last[1:]}({rest}"]
    return tuple(found)


def _pairs(given: dict[Any, Any] | None, name: str) -> tuple[tuple[str, str], ...]:
    pairs = tuple((given or {}).items())
    if not all(isinstance(key, str) and isinstance(text, str) for key, text in pairs):
        raise no_overload(name)
    return pairs


def _place_of(kind: dict[Any, Any]) -> tuple[str, str]:
    """Return version and resource of what `resource.ToGVR` gave; raises CelError for any other map."""
    parts = [kind.get(name) for name in ("group", "version", "resource")]
    if not all(isinstance(one, str) for one in parts):
        raise no_overload("resource.Get")
    group, version, resource = map(str, parts)
    return f"{group}/{version}" if group else version, resource


def _labelled(
    api_version: str, resource: str, namespace: str | None, labels: dict[Any, Any]
) -> lookups.ListResources:
    pairs = _pairs(labels, "resource.List")
    return lookups.ListResources(api_version, resource, namespace, pairs)


def _http_get(url: str, headers: dict[Any, Any] | None = None, *, ca: str = "") -> lookups.HttpCall:
    return lookups.HttpCall("GET", url, _pairs(headers, "http.Get"), ca_bundle=ca)


def _http_post(
    url: str, body: Any, headers: dict[Any, Any] | None = None, *, ca: str = ""
) -> lookups.HttpCall:
    return lookups.HttpCall("POST", url, _pairs(headers, "http.Post"), body, ca)


def _ask(question: Callable[..., Any]) -> Callable[..., Any]:
    return lambda env, *arguments: env.ask(question(*arguments))


_QUESTIONS: Final[dict[str, Callable[..., Any]]] = {
    "resource.Get(string, string, string, string) -> dyn": lookups.GetResource,
    "resource.Get(string, string, string) -> dyn": (
        lambda version, resource, name: lookups.GetResource(version, resource, None, name)
    ),
    "resource.Get(map, string, string) -> dyn": (
        lambda kind, namespace, name: lookups.GetResource(*_place_of(kind), namespace, name)
    ),
    "resource.List(map, string) -> dyn": (
        lambda kind, namespace: lookups.ListResources(*_place_of(kind), namespace)
    ),
    "resource.List(string, string) -> dyn": (
        lambda version, resource: lookups.ListResources(version, resource, None)
    ),
    "resource.List(string, string, map) -> dyn": (
        lambda version, resource, labels: _labelled(version, resource, None, labels)
    ),
    "resource.List(string, string, string) -> dyn": lookups.ListResources,
    "resource.List(string, string, string, map) -> dyn": _labelled,
    "resource.Post(string, string, string, map) -> dyn": lookups.PostResource,
    "resource.Post(string, string, map) -> dyn": (
        lambda version, resource, body: lookups.PostResource(version, resource, None, body)
    ),
    "resource.ToGVR(string, string) -> dyn": lookups.MapKind,
    "http.Get(string) -> dyn": _http_get,
    "http.Get(string, map) -> dyn": _http_get,
    "http.Post(string, dyn) -> dyn": _http_post,
    "http.Post(string, dyn, map) -> dyn": _http_post,
    "HttpClient.Get(string) -> dyn": lambda client, url: _http_get(url, ca=client.ca_bundle),
    "HttpClient.Get(string, map) -> dyn": (
        lambda client, url, headers: _http_get(url, headers, ca=client.ca_bundle)
    ),
    "HttpClient.Post(string, dyn) -> dyn": (
        lambda client, url, body: _http_post(url, body, ca=client.ca_bundle)
    ),
    "HttpClient.Post(string, dyn, map) -> dyn": (
        lambda client, url, body, headers: _http_post(url, body, headers, ca=client.ca_bundle)
    ),
    "globalContext.Get(string) -> dyn": lookups.GlobalContext,
    "globalContext.Get(string, string) -> dyn": lookups.GlobalContext,
    "image.GetMetadata(string) -> dyn": lookups.ImageMetadata,
    "generator.Apply(string, list) -> bool": (
        lambda namespace, objects: lookups.GenerateObjects(namespace, tuple(objects))
    ),
    "generator.Apply(list) -> bool": (
        lambda objects: lookups.GenerateObjects(None, tuple(objects))
    ),
}
_VERIFICATIONS: Final[dict[str, Callable[..., Any]]] = {
    "verifyImageSignatures(dyn, list) -> int": (
        lambda name, image, attestors: lookups.ImageVerification(name, image, tuple(attestors))
    ),
    "verifyAttestationSignatures(dyn, dyn, list) -> int": (
        lambda name, image, statement, attestors: lookups.ImageVerification(
            name, image, (statement, *attestors)
        )
    ),
    "extractPayload(dyn, dyn) -> dyn": (
        lambda name, image, statement: lookups.ImageVerification(name, image, (statement,))
    ),
    "getImageData(string) -> dyn": lookups.ImageVerification,
}
"""Questions that say by which function they are asked."""

LIBRARY.add(*both_cases("http.Client(string) -> HttpClient"))(HttpClient)
for _signature, _question in _QUESTIONS.items():
    LIBRARY.add(*both_cases(_signature), env=True)(_ask(_question))
for _signature, _question in _VERIFICATIONS.items():
    _name = _signature.partition("(")[0]
    LIBRARY.add(_signature, env=True)(_ask(partial(_question, _name)))
