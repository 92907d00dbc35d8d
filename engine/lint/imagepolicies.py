"""Checks of ImageValidatingPolicies: everything that is checked of policies in CEL, with what only these read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.fields import part
from engine.model.kinds import KUBERNETES, mode_of

from . import celpolicies
from .cel_expressions import check_expression, check_named, check_variables
from .cel_outputs import DYNAMIC
from .cel_scopes import Scope, scope_of
from .findings import Finding, error, gathered, warning

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from engine.model import Block, Policy

_OF_REQUESTS = frozenset({"object", "oldObject", "request", "namespaceObject", "variables"})
_OF_IMAGES = frozenset({"images", "attestors", "attestations"})
_EXTRACTED = ("list(string)", DYNAMIC, "list(dyn)")
_PARTS = ("key", "keyless", "certificate")
_UNREAD = {
    ("cosign", "key", "kms"): "keys of a KMS are not supported, so that this attestor vouches for nothing",
    ("cosign", "tuf", "root", "path"): "files are not read: give the root as `data`",
    ("cosign", "keyless", "additionalExtensions"): "is not looked at",
    ("cosign", "ctlog", "tsaCertChain"): "timestamps are not verified, so that it is not looked at",
    ("notary", "tsaCerts"): "timestamps are not verified: certificates have to be valid when they are",
}  # fmt: skip


@gathered
def lint_image_policy(policy: Policy) -> Iterator[Finding]:
    """Return everything that is wrong or doubtful about an ImageValidatingPolicy of either scope."""
    spec = policy.raw["spec"]
    plain = _OF_REQUESTS if mode_of(spec) == KUBERNETES else frozenset({"object"})
    names = plain | _OF_IMAGES
    scope = scope_of(policy.kind, spec)
    yield from celpolicies.check_constraints(spec, is_native=False)
    conditions = spec.get("matchConditions") or ()
    yield from check_named(conditions, "spec.matchConditions", plain, scope, wanted=("bool",))
    yield from check_variables(spec.get("variables") or (), "spec.variables", names, scope)
    images = spec.get("images") or ()
    yield from check_named(images, "spec.images", plain, scope, wanted=_EXTRACTED)
    for index, block in enumerate(spec.get("matchImageReferences") or ()):
        if block.get("expression"):
            path = f"spec.matchImageReferences[{index}].expression"
            yield from check_expression(block["expression"], path, ("ref",), wanted=("bool",))
    yield from _check_attestors(spec, plain, scope)
    if not spec.get("validations"):
        text = "Required value: validations must contain at least one item"
        yield error("spec.validations", text)
    yield from celpolicies.check_validations(spec, names, scope)
    yield from check_named(
        spec.get("auditAnnotations") or (), "spec.auditAnnotations", names, scope,
        key="key", expression="valueExpression", wanted=celpolicies.ANNOTATIONS,
    )  # fmt: skip
    yield from celpolicies.check_actions(spec)
    yield from celpolicies.check_calls_out(policy)


def _check_attestors(spec: Block, names: Collection[str], scope: Scope) -> Iterator[Finding]:
    for index, block in enumerate(spec.get("attestors") or ()):
        path = f"spec.attestors[{index}]"
        for where, text in _expressions(block, path):
            yield from check_expression(text, where, names, scope)
        for keys, text in _UNREAD.items():
            if part(block, *keys[:-1]).get(keys[-1]):
                yield warning(".".join((path, *keys)), text)
        yield from _check_parts(block.get("cosign"), f"{path}.cosign")
    for index, block in enumerate(spec.get("attestations") or ()):
        if sum(bool((block.get(key) or {}).get("type")) for key in ("intoto", "referrer")) != 1:
            text = "Required value: the type of either `intoto` or `referrer`"
            yield error(f"spec.attestations[{index}]", text)


def _check_parts(cosign: Any, path: str) -> Iterator[Finding]:
    """Find a cosign attestor that is nobody, or several at once, and one that names no identity."""
    if not isinstance(cosign, dict):
        return
    if sum(isinstance(cosign.get(name), dict) for name in _PARTS) != 1:
        yield error(path, f"Invalid value: exactly one of {', '.join(_PARTS)} is needed")
    keyless = cosign.get("keyless")
    if isinstance(keyless, dict) and not keyless.get("identities"):
        yield error(f"{path}.keyless.identities", "Required value: at least one identity")


def _expressions(block: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the expressions that stand in place of texts, with their places."""
    for key, value in block.items():
        place = f"{path}.{key}"
        if key == "expression" and value:
            yield place, str(value)
        elif isinstance(value, dict):
            yield from _expressions(value, place)
