"""Context entries of rules, foreach entries and targets.

Entries are loaded when an expression first mentions them. What lies outside (ConfigMaps, calls, images, global entries)
is asked of `Inputs`; only the question is computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError, PolicyError
from engine.lang import jmes
from engine.lang.gotext import compact_json, plain
from engine.lang.variables import Document, ExpressionText, Scope, compile_document
from engine.record import record
from engine.requestinfo import RequestInfo, request_info, request_info_of_template

from .lookups import ApiCallLookup, ConfigMapLookup, GlobalLookup, ImageLookup, ServiceLookup

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Block, Json

    from .inputs import Inputs
    from .lookups import Answer, Lookup

    Load = Callable[[Scope, Inputs], Json]


@record
class Entry:
    """One compiled context entry; `load` gives its value, or ABSENT where there is nobody to ask.

    For an entry that `asks` the outside, a value given by hand stands in where even the question cannot be put.
    """

    name: str
    load: Load
    asks: bool


ABSENT: Json = object()
"""Marks an entry that has no source; see `Answer.absent`."""


def compile_context(blocks: tuple[Block, ...]) -> tuple[Entry, ...]:
    """Compile context entries; raises PolicyError for an entry without a name or a source."""
    return tuple(_compile_entry(block) for block in blocks)


def load_context(entries: tuple[Entry, ...], scope: Scope, inputs: Inputs) -> None:
    """Make `entries` available in `scope`; nothing is loaded before it is mentioned (row A-56)."""
    for entry in entries:
        scope.defer(entry.name, _loader(entry, inputs))


def _loader(entry: Entry, inputs: Inputs) -> Callable[[Scope], Json]:
    def load(scope: Scope) -> Json:
        try:
            value = entry.load(scope, inputs)
        except _RenderError:
            if entry.asks and entry.name in scope.data:
                return scope.data[entry.name]
            raise
        if value is not ABSENT:
            return value
        if entry.name in scope.data:
            return scope.data[entry.name]
        unknown = jmes.UnknownKeyError(entry.name)
        raise unknown.reworded(f"JMESPath query failed: {unknown.message}")

    return load


def _compile_entry(block: Block) -> Entry:
    name = str(block.get("name", ""))
    for field, compiler in _COMPILERS.items():
        source = block.get(field)
        if source is not None:
            return Entry(name, compiler(name, source), asks=field != "variable")
    raise PolicyError(
        f"context entry `{name}` has no source", help=f"give it one of {', '.join(_COMPILERS)}"
    )


def _compile_variable(name: str, source: Block) -> Load:
    value = compile_document(source["value"]) if source.get("value") is not None else None
    path = _expression(source, starts_path=value is not None)
    default = compile_document(source.get("default"))

    def load(scope: Scope, inputs: Inputs) -> Json:  # noqa: ARG001 - one signature for all kinds of entries
        expression = _written(name, path, scope)
        fallback = _rendered(name, default, scope)
        found = _variable_value(name, value, expression, fallback, scope)
        if found is None:
            found = fallback
        if found is None:
            raise EvaluationError(
                f"failed to add context entry for variable {name} since it evaluated to nil"
            )
        return found

    return load


def _variable_value(
    name: str, value: Document | None, expression: str, fallback: Json, scope: Scope
) -> Json:
    start = None
    try:
        if value is None:
            return scope.query(expression) if expression else None
        start = _rendered(name, value, scope)
        if not expression:
            return start
        return _applied(expression, start, scope)
    except _RenderError:
        raise
    except EvaluationError as error:
        if fallback is not None:
            return None
        raise EvaluationError(
            f"failed to apply jmespath {expression} to variable {plain(start)}: {error.message}"
        ) from error


class _RenderError(EvaluationError):
    """Variables inside the entry itself failed; a default does not help then."""


def _expression(source: Block, *, starts_path: bool) -> ExpressionText:
    """Compile `jmesPath`; `starts_path` where it is asked of the value of this very entry."""
    return ExpressionText(str(source.get("jmesPath") or "").strip(), starts_path=starts_path)


def _rendered(name: str, document: Document, scope: Scope) -> Json:
    try:
        return document.render(scope)
    except EvaluationError as error:
        raise _not_rendered(name, document.source, error) from error


def _written(name: str, expression: ExpressionText, scope: Scope) -> str:
    try:
        return expression.render(scope)
    except EvaluationError as error:
        raise _not_rendered(name, expression.text, error) from error


def _not_rendered(name: str, source: Json, error: EvaluationError) -> _RenderError:
    return _RenderError(
        f"failed to substitute variables in context entry {name} {plain(source)}: {error.message}"
    )


def _applied(expression: str, data: Json, scope: Scope) -> Json:
    try:
        return jmes.compile(expression)(data, scope.env)
    except jmes.ExpressionError as error:
        raise EvaluationError(f"invalid JMESPath query {expression}: {error.message}") from error


def _compile_config_map(name: str, source: Block) -> Load:
    namespace = compile_document(source.get("namespace") or "default")
    own_name = compile_document(source.get("name") or "")

    def load(scope: Scope, inputs: Inputs) -> Json:
        lookup = ConfigMapLookup(
            str(_rendered(name, namespace, scope)), str(_rendered(name, own_name, scope))
        )
        answer = inputs.ask(lookup)
        if answer.is_absent:
            return ABSENT
        if answer.error:
            raise EvaluationError(
                f"failed to retrieve config map for context entry {name}: failed to get configmap "
                f"{lookup.namespace}/{lookup.name} : {answer.error}"
            )
        return {"data": answer.value.get("data") or {}, "metadata": answer.value.get("metadata")}

    return load


def _compile_api_call(name: str, source: Block) -> Load:
    parts = {key: compile_document(value) for key, value in source.items() if key != "jmesPath"}
    path = _expression(source, starts_path=True)
    asked = _open_path(source)

    def load(scope: Scope, inputs: Inputs) -> Json:
        shown = {key: _rendered(name, part, scope) for key, part in parts.items()}
        fallback = shown.get("default")
        lookup = _call(shown)
        if asked is not None and isinstance(lookup, ApiCallLookup):
            _check_path(lookup, asked)
        answer = inputs.ask(lookup)
        if answer.is_absent:
            return ABSENT
        if answer.error:
            if fallback is not None:
                return fallback
            raise EvaluationError(f"failed to fetch data for APICall: {answer.error}")
        return _projected(name, path, answer, fallback, scope)

    return load


def _open_path(source: Block) -> RequestInfo | None:
    """Return what a path with variables can ask for, None for one that is fixed or open altogether."""
    text = str(source.get("urlPath") or "")
    if "{{" not in text:
        return None
    asked = request_info_of_template(str(source.get("method") or "GET"), text)
    return None if asked.is_anything else asked


def _check_path(lookup: ApiCallLookup, asked: RequestInfo) -> None:
    """Refuse a path of which a variable made another question than the policy's author was asked about."""
    info = request_info(lookup.method, lookup.url_path)
    if info is None or not asked.includes(info):
        raise EvaluationError(
            f"failed to fetch data for APICall: a variable made `{lookup.url_path}` of a path for something else"
        )


def _projected(
    name: str, path: ExpressionText, answer: Answer, fallback: Json, scope: Scope
) -> Json:
    expression = _written(name, path, scope)
    if not expression:
        return answer.value
    try:
        found = _applied(expression, answer.value, scope)
    except EvaluationError as error:
        if fallback is not None:
            return fallback
        raise EvaluationError(
            f"failed to apply JMESPath {expression} to context entry {name}: {error.message}"
        ) from error
    return fallback if found is None else found


def _call(shown: dict[str, Json]) -> Lookup:
    method = str(shown.get("method") or "GET")
    body = ""
    if data := shown.get("data"):
        body = compact_json({item.get("key", ""): item.get("value") for item in data})
    service = shown.get("service")
    if not service:
        return ApiCallLookup(method, str(shown.get("urlPath") or ""), body)
    headers = tuple((str(h.get("key")), str(h.get("value"))) for h in service.get("headers") or ())
    return ServiceLookup(
        method, str(service.get("url") or ""), headers, body, str(service.get("caBundle") or "")
    )


def _compile_image(name: str, source: Block) -> Load:
    access = source.get("imageRegistryCredentials") or {}
    secrets, is_insecure = registry_access(access)

    def lookup(reference: str) -> Lookup:
        return ImageLookup(reference, secrets, is_insecure)

    return _looked_up(name, source, "reference", lookup, "failed to fetch image data for")


def registry_access(block: Block) -> tuple[tuple[str, ...], bool]:
    """Return what `imageRegistryCredentials` names: pull secrets, and whether the certificate may be any (row A-90b)."""
    named = tuple(str(name) for name in block.get("secrets") or ())
    return named, block.get("allowInsecureRegistry") is True


def _compile_global(name: str, source: Block) -> Load:
    return _looked_up(name, source, "name", GlobalLookup, "failed to fetch global context entry")


def _looked_up(
    name: str, source: Block, field: str, lookup: Callable[[str], Lookup], failure: str
) -> Load:
    """Compile an entry that is one look-up by a name, and an expression on what comes back."""
    wanted = compile_document(source.get(field) or "")
    path = _expression(source, starts_path=True)

    def load(scope: Scope, inputs: Inputs) -> Json:
        shown = str(_rendered(name, wanted, scope))
        answer = inputs.ask(lookup(shown))
        if answer.is_absent:
            return ABSENT
        if answer.error:
            raise EvaluationError(f"{failure} {shown}: {answer.error}")
        return _projected(name, path, answer, None, scope)

    return load


_COMPILERS: dict[str, Callable[[str, Block], Load]] = {
    "variable": _compile_variable,
    "configMap": _compile_config_map,
    "apiCall": _compile_api_call,
    "imageRegistry": _compile_image,
    "globalReference": _compile_global,
}
