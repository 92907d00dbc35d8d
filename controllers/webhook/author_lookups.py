"""What a policy looks up, as requests that its author must be allowed to make himself.

Pure: documents and the kinds a server has in, requests out. What only an evaluation will know is asked for widely.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EngineError
from engine.fields import part
from engine.generate.placeholders import sources_of
from engine.lang import cel
from engine.lang.cel.ast import Call, Ident, Literal, Node, walk
from engine.lang.pattern.anchors import parse_key
from engine.requestinfo import ANY, RequestInfo, request_info_of_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from controllers.kube import Discovery
    from engine.model import Json

EVERYTHING: Final = RequestInfo(ANY, ANY, ANY)
"""What only an administrator of the whole cluster may do."""

MOST_READ: Final = 10_000
"""Needs of one policy that are looked at: groups, resources and names of one rule multiply."""
_EXPRESSIONS: Final = frozenset({"expression", "messageExpression", "valueExpression"})
_CREDENTIALS: Final = frozenset({"imageRegistryCredentials", "credentials", "keys"})
_WIDE: Final = frozenset({"get", "list"})


@dataclass(frozen=True, slots=True)
class RoleName:
    """A role that is given away: all of its rules are as good as the right to bind it."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Need:
    """A request that an author must be allowed to make himself; `at` is where in the document it says so.

    `instead` are requests all of which do as well, `role` names one of whose rules that holds. `entry` is a global context
    entry: what is asked about is what it reads.
    """

    at: str
    request: RequestInfo
    instead: tuple[RequestInfo, ...] = ()
    role: RoleName | None = None
    entry: str = ""


def fixed(value: object) -> str:
    """Return a text that no request changes, empty otherwise."""
    text = value if isinstance(value, str) else ""
    return "" if any(mark in text for mark in ("{{", "*", "?")) else text


def lookups_in(raw: Json, at: str, within: str, discovery: Discovery) -> Iterator[Need]:
    """Yield what context entries and expressions anywhere in a rule or policy read; `within` is its namespace."""
    if isinstance(raw, list):
        for index, value in enumerate(raw):
            yield from lookups_in(value, f"{at}[{index}]", within, discovery)
        return
    if not isinstance(raw, dict):
        return
    for key, value in raw.items():
        place = f"{at}.{key}"
        if key == "context" and value is not None:
            yield from _of_context(value, place, within)
        elif key in _EXPRESSIONS and isinstance(value, str):
            yield from _of_expression(value, place, within)
        elif key == "template" and isinstance(value, dict):
            for source in sources_of(value):
                yield from _of_expression(source, place, within)
            yield from lookups_in(value, place, within, discovery)
        elif key == "paramKind" and isinstance(value, dict):
            yield from _of_params(value, raw.get("paramRef"), place, within, discovery)
        elif key in _CREDENTIALS and isinstance(value, dict):
            yield from _of_credentials(value, place, within)
        elif key != "data":
            yield from lookups_in(value, place, within, discovery)


# Whether a rule or policy looks into the objects that it matches, so that what it finds stands in messages, Events and reports, be
# it by one verdict after the other. Names, namespaces and labels are told of every object anyway.

_MATCHING: Final = frozenset({"match", "exclude", "matchConstraints"})
_LOOKING: Final = frozenset(
    {"assert", "context", "foreach", "imageExtractors", "manifests", "podSecurity"}
)
_TREES: Final = frozenset({"anyPattern", "pattern", "patchStrategicMerge"})
_SHOWN: Final = frozenset({"apiVersion", "kind", "metadata"})
_SHOWN_METADATA: Final = frozenset({"generateName", "labels", "name", "namespace"})
_OF_REQUEST: Final = r"request\.(?:operation|name|namespace|kind|userInfo)"
_OF_OBJECT: Final = r"(?:kind|apiVersion|\??metadata\.\??(?:generateName|labels|name|namespace))\b"
_SHOWN_VARIABLE: Final = re.compile(
    rf"""\{{\{{\s*(?:{_OF_REQUEST}|request\.(?:object|oldObject)\.{_OF_OBJECT})(?:\.(?:\w+|"[\w./-]+"))*\s*(?:\|\|\s*'[^'{{}}]*'\s*)?\}}\}}"""
)
_SHOWN_NAMES: Final = re.compile(
    rf"\b(?:(?:request\.)?(?:object|oldObject)\.{_OF_OBJECT}|{_OF_REQUEST}\b)"
)
_OBJECT: Final = re.compile(r"\b(?:object|oldObject|request)\b")


def looks_into(raw: Json) -> bool:
    """Tell whether a rule, or the spec of a policy written in CEL, asks more of what it matches than names, namespace and labels."""
    if isinstance(raw, list):
        return any(map(looks_into, raw))
    if isinstance(raw, str):
        return "{{" in _SHOWN_VARIABLE.sub("", raw)
    return isinstance(raw, dict) and any(
        key not in _MATCHING and (looks_into(key) or _looks_by(key, value))
        for key, value in raw.items()
    )


def _looks_by(key: str, value: Json) -> bool:
    if key in _EXPRESSIONS and isinstance(value, str):
        return bool(_OBJECT.search(_SHOWN_NAMES.sub("", value)))
    is_tree = key in _TREES and any(map(_is_deep, value if isinstance(value, list) else [value]))
    return (key in _LOOKING and bool(value)) or is_tree or looks_into(value)


def _is_deep(tree: Json) -> bool:
    """Tell whether a pattern is about more than what is told of every object anyway."""
    shown = _named(tree)
    metadata = [value for name, value in shown if name == "metadata"]
    return not _SHOWN.issuperset(name for name, _ in shown) or any(
        not _SHOWN_METADATA.issuperset(name for name, _ in _named(one)) for one in metadata
    )


def _named(tree: Json) -> list[tuple[str, Json]]:
    """Return the fields of a pattern without their anchors; one without a name stands for what is not known."""
    if not isinstance(tree, dict):
        return [("", tree)]
    return [(parse_key(key)[1], value) for key, value in tree.items()]


def _of_credentials(given: Mapping[str, Any], at: str, within: str) -> Iterator[Need]:
    """Yield the rights to read the Secret that a public key is taken from, and the pull secrets that registries are shown.

    Pull secrets of the engine's own namespace are there for policies. A variable in place of a key may name any Secret.
    """
    from engine.manifests.attestors import secret_of

    named = secret_of(given)
    if named or "{{" in str(given.get("publicKeys")):
        namespace, _, name = named.partition("/")
        yield Need(at, RequestInfo("get", "", "secrets", "", fixed(namespace), fixed(name)))
    names = given.get("secrets")
    for name in names if isinstance(names, list) else (names,) if names else ():
        place, _, secret = str(name).rpartition("/")
        if place or within or "{{" in str(name):
            namespace = fixed(place) or within
            yield Need(
                f"{at}.secrets", RequestInfo("get", "", "secrets", "", namespace, fixed(secret))
            )


def needs_of_entry(spec: Mapping[str, Any], at: str) -> Iterator[Need]:
    """Yield what a global context entry reads."""
    resource = spec.get("kubernetesResource")
    if isinstance(resource, dict):
        group, plural = str(resource.get("group") or ""), str(resource.get("resource") or "")
        request = RequestInfo("list", group, plural, namespace=str(resource.get("namespace") or ""))
        yield Need(f"{at}.kubernetesResource", request)
    call = spec.get("apiCall")
    if isinstance(call, dict) and call.get("urlPath"):
        yield from _of_call(call, f"{at}.apiCall.urlPath", "")


def needs_of_exception(spec: Mapping[str, Any], discovery: Discovery) -> Iterator[Need]:
    """Yield what the conditions of an exception ask the cluster; they are evaluated with the reach of the policies that it names.

    Its author is of one namespace, as that of a namespaced policy is, who calls no services at all.
    """
    yield from lookups_in(spec, "spec", "", discovery)
    for index, condition in enumerate(spec.get("matchConditions") or ()):
        if "http" in _libraries(str(condition.get("expression") or "")):
            yield Need(f"spec.matchConditions[{index}].expression", EVERYTHING)


def placed(request: RequestInfo, within: str) -> RequestInfo:
    """Return a request with what is open in it as an authorizer is asked for all: left out.

    INVARIANT: a policy of a namespace is kept to it wherever a variable leads, so no more need be asked about.
    """
    namespace = "" if request.namespace == ANY else request.namespace
    if within and (request.namespace == ANY or request.is_anything):
        namespace = within
    return replace(request, namespace=namespace, name="" if request.name == ANY else request.name)


def _of_context(entries: Json, at: str, within: str) -> Iterator[Need]:
    if not isinstance(entries, list):
        yield Need(at, EVERYTHING)
        return
    for index, entry in enumerate(entries):
        place = f"{at}[{index}]"
        if not isinstance(entry, dict):
            yield Need(place, EVERYTHING)
            continue
        yield from _of_config_map(entry.get("configMap"), f"{place}.configMap", within)
        yield from _of_reference(entry.get("globalReference"), f"{place}.globalReference")
        access = part(entry, "imageRegistry").get("imageRegistryCredentials")
        if isinstance(access, dict):
            yield from _of_credentials(access, f"{place}.imageRegistry", within)
        call = entry.get("apiCall")
        if isinstance(call, dict) and call.get("urlPath"):
            yield from _of_call(call, f"{place}.apiCall.urlPath", within)
        elif call is not None and not isinstance(call, dict):
            yield Need(place, EVERYTHING)


def _of_config_map(source: Json, at: str, within: str) -> Iterator[Need]:
    if source is None:
        return
    if not isinstance(source, dict):
        yield Need(at, EVERYTHING)
        return
    written = source.get("namespace") or "default"
    namespace = fixed(written) or within
    yield Need(at, RequestInfo("get", "", "configmaps", "", namespace, fixed(source.get("name"))))


def _of_reference(source: Json, at: str) -> Iterator[Need]:
    if source is None:
        return
    name = fixed(source.get("name")) if isinstance(source, dict) else ""
    yield Need(at, RequestInfo("list", ANY, ANY), entry=name.partition(".")[0])


def _of_call(call: Mapping[str, Any], at: str, within: str) -> Iterator[Need]:
    method, path = str(call.get("method") or "GET"), str(call["urlPath"])
    if "{{" in method:
        yield Need(at, EVERYTHING)
        return
    request = placed(request_info_of_template(method, path), within)
    verbs = _WIDE if request.is_anything and request.verb == "get" else {request.verb}
    for verb in sorted(verbs):
        yield Need(at, replace(request, verb=verb))


def _of_params(
    kind: Mapping[str, Any], reference: Json, at: str, within: str, discovery: Discovery
) -> Iterator[Need]:
    version, name = fixed(kind.get("apiVersion")), fixed(kind.get("kind"))
    found = discovery.find(version, name) if version and name else None
    group = found.group if found else (version.rpartition("/")[0] if version else ANY)
    where = part(reference)
    request = RequestInfo(
        "get" if fixed(where.get("name")) else "list",
        group,
        found.plural if found else ANY,
        namespace=fixed(where.get("namespace")) or within,
        name=fixed(where.get("name")),
    )
    yield Need(at, request)


def _of_expression(text: str, at: str, within: str) -> Iterator[Need]:
    """Yield what one expression asks the cluster."""
    for node in _calls(text):
        yield from _of_function(node, at, within)


def _libraries(text: str) -> set[str]:
    """Return the libraries whose functions an expression calls."""
    return {one.target.name for one in _calls(text) if isinstance(one.target, Ident)}


def _calls(text: str) -> list[Call]:
    """Return the calls in an expression; none in one that whoever compiles it refuses."""
    try:
        tree = cel.compile(text.strip()).tree
    except EngineError:
        return []
    return [node for node in walk(tree) if isinstance(node, Call)]


def _of_function(node: Call, at: str, within: str) -> Iterator[Need]:
    verb = node.name.lower()
    arguments = [_text(one) for one in node.arguments]
    library = node.target.name if isinstance(node.target, Ident) else ""
    if library == "globalContext" and arguments:
        name = arguments[0] or ""
        yield Need(at, RequestInfo("list", ANY, ANY), entry=name.partition(".")[0])
    elif library == "resource" and verb in ("get", "list", "post") and len(arguments) > 1:
        yield Need(at, _of_library(verb, arguments, within))


def _of_library(verb: str, arguments: list[str | None], within: str) -> RequestInfo:
    """Return the request of `resource.Get(apiVersion, resource, namespace, name)` and the like."""
    version, resource, *others = arguments
    # a call that names no namespace, as policies of namespaces make it, is about that of the policy
    names_place = bool(others) if verb == "list" else len(others) > 1
    namespace = others[0] if names_place else within
    name = others[-1] if verb == "get" and others else ""
    group = ANY if version is None else version.rpartition("/")[0]
    asked = {"get": "get", "list": "list", "post": "create"}[verb]
    if group == ANY or resource is None:
        resource = ANY
    return placed(
        RequestInfo(asked, group, resource, "", ANY if namespace is None else namespace, ANY if name is None else name),
        within,
    )  # fmt: skip


def _text(node: Node) -> str | None:
    """Return the text that an argument is, None for one that only an evaluation knows."""
    return node.value if isinstance(node, Literal) and isinstance(node.value, str) else None


def unique(needs: Iterable[Need]) -> list[Need]:
    """Return needs without those that ask the same again; of more than can be read, the right to everything."""
    found: dict[Need, Need] = {}
    for number, need in enumerate(needs):
        if number >= MOST_READ:
            return [Need(need.at, EVERYTHING)]
        found.setdefault(replace(need, at=""), need)
    return list(found.values())
