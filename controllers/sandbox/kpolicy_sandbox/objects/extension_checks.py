"""What makes an object invalid by which people extend the API server: a kind, a webhook, an admission policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox import errors
from kpolicy_sandbox.expressions import Expressions, needed

from .metadata_checks import SUBDOMAIN

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]
_CONDITION_NAMES = frozenset(("object", "oldObject", "request", "authorizer"))


def check_definition(obj: Object) -> Iterator[errors.Cause]:
    """Yield what is wrong with a CustomResourceDefinition."""
    spec = obj.get("spec") or {}
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    for field in ("plural", "kind"):
        if not names.get(field):
            yield errors.required_field(f"spec.names.{field}")
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if obj["metadata"].get("name") != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        yield errors.invalid_field("metadata.name", obj["metadata"].get("name", ""), why)
    if spec.get("scope") not in {"Namespaced", "Cluster"}:
        yield errors.unsupported_field(
            "spec.scope", spec.get("scope", ""), ["Cluster", "Namespaced"]
        )
    if sum(1 for one in versions if one.get("storage")) != 1:
        why = "must have exactly one version marked as storage version"
        yield errors.invalid_field("spec.versions", {}, why)
    for number, version in enumerate(versions):
        if not version.get("name"):
            yield errors.required_field(f"spec.versions[{number}].name")
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield errors.required_field(
                f"spec.versions[{number}].schema.openAPIV3Schema", "schemas are required"
            )


def check_webhooks(obj: Object, expressions: Expressions | None) -> Iterator[errors.Cause]:
    """Yield what is wrong with a webhook configuration; match conditions must compile."""
    for number, hook in enumerate(obj.get("webhooks") or ()):
        where = f"webhooks[{number}]"
        name = hook.get("name", "")
        if not SUBDOMAIN.fullmatch(name) or name.count(".") < 2:
            yield errors.invalid_field(
                f"{where}.name",
                name,
                "should be a domain with at least three segments separated by dots",
            )
        effects = ["None", "NoneOnDryRun"]
        if not hook.get("sideEffects"):
            yield errors.required_field(
                f"{where}.sideEffects", "must specify one of None, NoneOnDryRun"
            )
        elif hook["sideEffects"] not in effects:
            yield errors.unsupported_field(f"{where}.sideEffects", hook["sideEffects"], effects)
        if not hook.get("admissionReviewVersions"):
            yield errors.required_field(
                f"{where}.admissionReviewVersions", "must specify one of v1, v1beta1"
            )
        if not 1 <= hook.get("timeoutSeconds", 10) <= 30:
            why = "the timeout value must be between 1 and 30 seconds"
            yield errors.invalid_field(f"{where}.timeoutSeconds", hook["timeoutSeconds"], why)
        yield from _client(hook.get("clientConfig") or {}, f"{where}.clientConfig")
        for place, condition in enumerate(hook.get("matchConditions") or ()):
            yield from _condition(condition, f"{where}.matchConditions[{place}]", expressions)


def _condition(
    condition: Object, where: str, expressions: Expressions | None
) -> Iterator[errors.Cause]:
    text = condition.get("expression", "")
    if not text:
        yield errors.required_field(f"{where}.expression")
        return
    try:
        foreign = needed(expressions).compile(text).names - _CONDITION_NAMES
    except ValueError as error:
        yield errors.invalid_field(f"{where}.expression", text, f"compilation failed: {error}")
        return
    if foreign:
        why = f"compilation failed: undeclared reference to '{min(foreign)}'"
        yield errors.invalid_field(f"{where}.expression", text, why)


def _client(config: Object, where: str) -> Iterator[errors.Cause]:
    url, service = config.get("url"), config.get("service")
    if bool(url) == bool(service):
        yield errors.required_field(where, "exactly one of url or service is required")
    elif url and not str(url).startswith("https://"):
        yield errors.invalid_field(f"{where}.url", url, "'https' is the only allowed URL scheme")
    elif service and not (service.get("name") and service.get("namespace")):
        yield errors.required_field(
            f"{where}.service.name", "a service needs a name and a namespace"
        )


def check_native_policy(obj: Object, expressions: Expressions | None) -> Iterator[errors.Cause]:
    """Yield what is wrong with an admission policy or its binding; its expressions must compile."""
    for path, message in needed(expressions).faults(obj):
        yield errors.field_cause(message.partition(" value")[0], path, message)
