"""Kyverno's functions that look outside: cluster, other services, the global context, registries; and `generator`.

Every one of them is a question to `CelEnv.ask` (row L-10). Names have both letter cases, since both are in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.lang.cel import lookups
from engine.lang.cel.ast import Call, Ident, Literal, walk
from engine.lang.cel.errors import no_overload
from engine.lang.cel.values import Message

from .registry import KINDS, Library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.lang.cel.ast import Node
    from engine.lang.cel.env import CelEnv

LIBRARY: Final = Library(cost=60)
_F = TypeVar("_F", bound="Callable[..., Any]")


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


def _declare(*signatures: str) -> Callable[[_F], _F]:
    return LIBRARY.add(*both_cases(*signatures), env=True)


def _pairs(given: dict[Any, Any], name: str) -> tuple[tuple[str, str], ...]:
    if not all(isinstance(key, str) and isinstance(text, str) for key, text in given.items()):
        raise no_overload(name)
    return tuple(given.items())


@_declare("resource.Get(string, string, string, string) -> dyn")
def _get(env: CelEnv, api_version: str, resource: str, namespace: str, name: str) -> Any:
    return env.ask(lookups.GetResource(api_version, resource, namespace, name))


@_declare("resource.Get(string, string, string) -> dyn")
def _get_here(env: CelEnv, api_version: str, resource: str, name: str) -> Any:
    return env.ask(lookups.GetResource(api_version, resource, None, name))


@_declare("resource.Get(map, string, string) -> dyn")
def _get_by_kind(env: CelEnv, kind: dict[Any, Any], namespace: str, name: str) -> Any:
    return env.ask(lookups.GetResource(*_place_of(kind), namespace, name))


@_declare("resource.List(map, string) -> dyn")
def _list_by_kind(env: CelEnv, kind: dict[Any, Any], namespace: str) -> Any:
    return env.ask(lookups.ListResources(*_place_of(kind), namespace))


def _place_of(kind: dict[Any, Any]) -> tuple[str, str]:
    """Return version and resource of what `resource.ToGVR` gave; raises CelError for any other map."""
    parts = [kind.get(name) for name in ("group", "version", "resource")]
    if not all(isinstance(one, str) for one in parts):
        raise no_overload("resource.Get")
    group, version, resource = map(str, parts)
    return f"{group}/{version}" if group else version, resource


@_declare("resource.List(string, string) -> dyn")
def _list_here(env: CelEnv, api_version: str, resource: str) -> Any:
    return env.ask(lookups.ListResources(api_version, resource, None))


@_declare("resource.List(string, string, map) -> dyn")
def _list_here_labelled(
    env: CelEnv, api_version: str, resource: str, labels: dict[Any, Any]
) -> Any:
    pairs = _pairs(labels, "resource.List")
    return env.ask(lookups.ListResources(api_version, resource, None, pairs))


@_declare("resource.List(string, string, string) -> dyn")
def _list(env: CelEnv, api_version: str, resource: str, namespace: str) -> Any:
    return env.ask(lookups.ListResources(api_version, resource, namespace))


@_declare("resource.List(string, string, string, map) -> dyn")
def _list_labelled(
    env: CelEnv, api_version: str, resource: str, namespace: str, labels: dict[Any, Any]
) -> Any:
    pairs = _pairs(labels, "resource.List")
    return env.ask(lookups.ListResources(api_version, resource, namespace, pairs))


@_declare("resource.Post(string, string, string, map) -> dyn")
def _post(env: CelEnv, api_version: str, resource: str, namespace: str, body: Any) -> Any:
    return env.ask(lookups.PostResource(api_version, resource, namespace, body))


@_declare("resource.Post(string, string, map) -> dyn")
def _post_wide(env: CelEnv, api_version: str, resource: str, body: Any) -> Any:
    return env.ask(lookups.PostResource(api_version, resource, None, body))


@_declare("resource.ToGVR(string, string) -> dyn")
def _to_gvr(env: CelEnv, api_version: str, kind: str) -> Any:
    return env.ask(lookups.MapKind(api_version, kind))


@_declare("http.Get(string) -> dyn")
def _http_get(env: CelEnv, url: str) -> Any:
    return env.ask(lookups.HttpCall("GET", url))


@_declare("http.Get(string, map) -> dyn")
def _http_get_with(env: CelEnv, url: str, headers: dict[Any, Any]) -> Any:
    return env.ask(lookups.HttpCall("GET", url, _pairs(headers, "http.Get")))


@_declare("http.Post(string, dyn) -> dyn")
def _http_post(env: CelEnv, url: str, body: Any) -> Any:
    return env.ask(lookups.HttpCall("POST", url, body=body))


@_declare("http.Post(string, dyn, map) -> dyn")
def _http_post_with(env: CelEnv, url: str, body: Any, headers: dict[Any, Any]) -> Any:
    return env.ask(lookups.HttpCall("POST", url, _pairs(headers, "http.Post"), body))


@LIBRARY.add(*both_cases("http.Client(string) -> HttpClient"))
def _client(ca_bundle: str) -> HttpClient:
    return HttpClient(ca_bundle)


@_declare("HttpClient.Get(string) -> dyn")
def _client_get(env: CelEnv, client: HttpClient, url: str) -> Any:
    return env.ask(lookups.HttpCall("GET", url, ca_bundle=client.ca_bundle))


@_declare("HttpClient.Get(string, map) -> dyn")
def _client_get_with(env: CelEnv, client: HttpClient, url: str, headers: dict[Any, Any]) -> Any:
    pairs = _pairs(headers, "http.Get")
    return env.ask(lookups.HttpCall("GET", url, pairs, ca_bundle=client.ca_bundle))


@_declare("HttpClient.Post(string, dyn) -> dyn")
def _client_post(env: CelEnv, client: HttpClient, url: str, body: Any) -> Any:
    return env.ask(lookups.HttpCall("POST", url, body=body, ca_bundle=client.ca_bundle))


@_declare("HttpClient.Post(string, dyn, map) -> dyn")
def _client_post_with(
    env: CelEnv, client: HttpClient, url: str, body: Any, headers: dict[Any, Any]
) -> Any:
    pairs = _pairs(headers, "http.Post")
    return env.ask(lookups.HttpCall("POST", url, pairs, body, client.ca_bundle))


@_declare("globalContext.Get(string) -> dyn")
def _global(env: CelEnv, name: str) -> Any:
    return env.ask(lookups.GlobalContext(name))


@_declare("globalContext.Get(string, string) -> dyn")
def _global_projection(env: CelEnv, name: str, projection: str) -> Any:
    return env.ask(lookups.GlobalContext(name, projection))


@_declare("image.GetMetadata(string) -> dyn")
def _metadata(env: CelEnv, reference: str) -> Any:
    return env.ask(lookups.ImageMetadata(reference))


@LIBRARY.add("verifyImageSignatures(dyn, list) -> int", env=True)
def _verify(env: CelEnv, reference: Any, attestors: list[Any]) -> Any:
    return env.ask(lookups.ImageVerification("verifyImageSignatures", reference, tuple(attestors)))


@LIBRARY.add("verifyAttestationSignatures(dyn, dyn, list) -> int", env=True)
def _verify_attestation(env: CelEnv, reference: Any, attestation: Any, attestors: list[Any]) -> Any:
    arguments = (attestation, *attestors)
    return env.ask(lookups.ImageVerification("verifyAttestationSignatures", reference, arguments))


@LIBRARY.add("extractPayload(dyn, dyn) -> dyn", env=True)
def _payload(env: CelEnv, reference: Any, attestation: Any) -> Any:
    return env.ask(lookups.ImageVerification("extractPayload", reference, (attestation,)))


@LIBRARY.add("getImageData(string) -> dyn", env=True)
def _image_data(env: CelEnv, reference: str) -> Any:
    return env.ask(lookups.ImageVerification("getImageData", reference))


@_declare("generator.Apply(string, list) -> bool")
def _apply(env: CelEnv, namespace: str, objects: list[Any]) -> Any:
    return env.ask(lookups.GenerateObjects(namespace, tuple(objects)))


@_declare("generator.Apply(list) -> bool")
def _apply_here(env: CelEnv, objects: list[Any]) -> Any:
    return env.ask(lookups.GenerateObjects(None, tuple(objects)))
