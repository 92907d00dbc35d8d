"""Context entries that can never be loaded, those of a rule and those for all rules (rows A-50 to A-58, C-01, O-05)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang import jmes
from engine.lang.lazy_regex import regex
from engine.reach import Effect, Target, out_of_reach
from engine.requestinfo import request_info_of_template

from .findings import Finding, error, gathered, warning
from .spelling import misspelt_in_jmespath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.model import Block

_PREDEFINED = (
    "images",
    "request",
    "serviceAccountName",
    "serviceAccountNamespace",
    "element",
    "elementIndex",
)
_NOTHING = regex(r"(0+(\.0*)?[a-zµ]*)+\Z")
_NEEDED = {"configMap": ("name", "namespace"), "imageRegistry": ("reference",)}
LOADERS = ("variable", "configMap", "apiCall", "imageRegistry", "globalReference")


def check_context(
    context: Iterable[Block], path: str, *, own_namespace: str = "", forbidden: tuple[str, ...] = ()
) -> Iterator[Finding]:
    """Yield what is wrong with context entries.

    `own_namespace` is that of a namespaced policy, which may read nothing else (row A-25); `forbidden` are loaders that
    the kind of policy does not have.
    """
    for index, entry in enumerate(context):
        at = f"{path}[{index}]"
        yield from _check_name(str(entry.get("name") or ""), at)
        loaders = [name for name in LOADERS if entry.get(name) is not None]
        if len(loaders) != 1:
            names = ", ".join(LOADERS)
            yield error(
                at, f"exactly one of {names} is required for context entry `{entry.get('name')}`"
            )
        for name in loaders:
            if name in forbidden:
                yield error(f"{at}.{name}", f"Forbidden: {name} is not supported here")
            yield from _check_loader(name, entry[name], at)
        if own_namespace:
            yield from _check_namespace(entry, at, own_namespace)


@gathered
def lint_entry(spec: Block) -> Iterator[Finding]:
    """Return what is wrong with the spec of a GlobalContextEntry (row A-58)."""
    resource, call = spec.get("kubernetesResource"), spec.get("apiCall")
    if (resource is None) == (call is None):
        text = "Forbidden: An External API Call entry should either have Kubernetes Resource or API Call"
        yield error("spec.kubernetesResource", text)
    if isinstance(resource, dict):
        yield from _check_resource(resource, "spec.kubernetesResource")
    if isinstance(call, dict):
        if bool(call.get("urlPath")) == bool(call.get("service")):
            text = "Forbidden: An External API Call entry should either have Service or URLPath"
            yield error("spec.apiCall.service", text)
        if call.get("data") and call.get("method") != "POST":
            text = "Forbidden: An External API Call with data should have method as POST"
            yield error("spec.apiCall.method", text)
        if _NOTHING.match(str(call.get("refreshInterval") or "10m")):
            text = "Required value: A Resource entry requires a refresh interval greater than 0 seconds"
            yield error("spec.apiCall.refreshInterval", text)
    for index, one in enumerate(spec.get("projections") or ()):
        try:
            jmes.compile(str(one.get("jmesPath") or ""))
        except jmes.ExpressionError as problem:
            yield error(f"spec.projections[{index}].jmesPath", problem.message)


def _check_resource(resource: Block, at: str) -> Iterator[Finding]:
    needed = ["version", "resource"]
    if resource.get("version") != "v1":
        needed.insert(0, "group")
    for name in needed:
        if not resource.get(name):
            yield error(f"{at}.{name}", f"Required value: A Resource entry requires a {name}")


def _check_name(name: str, at: str) -> Iterator[Finding]:
    """Refuse an entry that nothing can name, and one that would stand in the way of what is always there."""
    if not name:
        yield error(at, "a name is required for context entries")
    for taken in _PREDEFINED:
        if name == taken or name.startswith(f"{taken}."):
            yield error(
                at,
                f"entry name {name} is invalid as it conflicts with a pre-defined variable {taken}",
            )


def _check_loader(name: str, loader: Block, at: str) -> Iterator[Finding]:
    for field in _NEEDED.get(name, ()):
        if not loader.get(field):
            yield error(at, f"a {field} is required for {name} context entry")
    if name == "variable":
        yield from _check_variable(loader, at)
    if name == "apiCall":
        yield from _check_call(loader, at)
    path = loader.get("jmesPath")
    if path and "{{" not in path:
        try:
            jmes.compile(path)
        except jmes.ExpressionError as problem:
            yield error(at, f"failed to parse JMESPath {path}: {problem.message}")
            return
        if name == "variable" and loader.get("value") is None:
            for one in misspelt_in_jmespath(path):
                yield warning(f"{at}.variable.jmesPath", one.message, one.fix)


def _check_variable(variable: Block, at: str) -> Iterator[Finding]:
    if variable.get("value") is None and not variable.get("jmesPath"):
        yield error(at, "a variable must define a value or a jmesPath expression")
    if variable.get("default") is not None and not variable.get("jmesPath"):
        text = "a variable must define a default value only when a jmesPath expression is defined"
        yield error(at, text)


def _check_call(call: Block, at: str) -> Iterator[Finding]:
    if call.get("urlPath") and call.get("service"):
        yield error(at, "a URL cannot be used for service API calls")
    if not call.get("urlPath") and not call.get("service"):
        yield error(at, "a context entry must define a urlPath or a service")
    if call.get("data") and call.get("method") != "POST":
        yield error(at, "only POST may define a data")


def _check_namespace(entry: Block, at: str, namespace: str) -> Iterator[Finding]:
    config_map = (entry.get("configMap") or {}).get("namespace") or namespace
    if "{{" not in config_map and config_map != namespace:
        text = f"Forbidden: a namespaced policy may read ConfigMaps of its namespace `{namespace}` only"
        yield error(f"{at}.configMap.namespace", text)
    call = entry.get("apiCall") or {}
    if call.get("urlPath") and not _lies_in(call, namespace):
        text = f"Forbidden: the path of a namespaced policy must lie in `/namespaces/{namespace}/`"
        yield error(f"{at}.apiCall.urlPath", text)


def _lies_in(call: Block, namespace: str) -> bool:
    """Tell whether a call names the namespace where the API server reads it, and something that is in reach there."""
    info = request_info_of_template(str(call.get("method") or "GET"), str(call["urlPath"]))
    target = Target(info.group, "", True, info.namespace, info.name)
    return out_of_reach(Effect.LOOK_UP, target, namespace) is None
