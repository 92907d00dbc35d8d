"""Checks of what is written in CEL: policies and exceptions of policies.kyverno.io, native policies and their bindings.

For the webhook, which refuses on the first error, and for the command line, which prints all findings (rows L-01, X-20).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import vocabulary
from engine.cleanup import ttl
from engine.generate.placeholders import sources_of
from engine.lang import rfc3339
from engine.match import key_error
from engine.model.kinds import (
    BY_NAME,
    CEL_KINDS,
    KUBERNETES,
    NAMESPACED,
    is_enabled,
    mode_of,
    rules_of,
)

from . import cel_expressions
from .cel_outputs import CONFIGURATION, DYNAMIC, PATCHES, check_configuration
from .cel_scopes import Scope, scope_of
from .findings import Finding, error, gathered, invalid, warning
from .matching import check_requirements

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from engine.model import Block, Json, Policy
    from engine.model.policy import Binding, CelException

_SHORTEST_TIMEOUT, _LONGEST_TIMEOUT = 1, 30
_KINDS = tuple(one.kind for one in CEL_KINDS)
ANNOTATIONS = ("string", "null", DYNAMIC)
"""The types of audit annotations."""

_VERDICTS = ("kyverno.Verdict", "null", DYNAMIC)
"""The types of what judges requests."""

_MUTATING = ("MutatingPolicy", "NamespacedMutatingPolicy")
_MUTATIONS = {
    "ApplyConfiguration": ("applyConfiguration", CONFIGURATION),
    "JSONPatch": ("jsonPatch", PATCHES),
}
"""For each type of patch the field that says its expression, and what that comes to."""
_TEXTS = ("expression", "messageExpression", "valueExpression")
_CALLING = (
    "matchConditions", "variables", "conditions", "images", "matchImageReferences", "validations",
    "mutations", "generate", "auditAnnotations",
)  # fmt: skip


@gathered
def lint_cel_policy(policy: Policy) -> Iterator[Finding]:
    """Return everything that is wrong or doubtful about a policy written in CEL, of Kyverno or of Kubernetes."""
    spec = policy.raw["spec"]
    is_ours = policy.kind in _KINDS
    names = cel_expressions.OF_POLICIES if is_ours else cel_expressions.NAMES
    scope = scope_of(policy.kind, spec)
    if policy.kind in _MUTATING:
        yield from _check_modes(spec)
        yield from _check_native_conditions(spec)
        yield from _check_targets(spec, names, scope)
    else:
        yield from check_constraints(spec, is_native=not is_ours)
    yield from _check_work(policy, spec)
    conditions = spec.get("matchConditions") or ()
    wanted = ("bool",) if is_ours else ()
    yield from cel_expressions.check_named(
        conditions, "spec.matchConditions", names, scope, wanted=wanted
    )
    if not is_ours:
        yield from _check_names(conditions)
    yield from cel_expressions.check_variables(
        spec.get("variables") or (), "spec.variables", names, scope
    )
    yield from check_validations(spec, names, scope)
    yield from _check_mutations(spec, names, scope)
    yield from _check_generation(spec, names, scope)
    yield from cel_expressions.check_named(
        spec.get("auditAnnotations") or (), "spec.auditAnnotations", names, scope,
        key="key", expression="valueExpression", wanted=ANNOTATIONS,
    )  # fmt: skip
    if is_ours:
        yield from check_calls_out(policy)
        yield from check_actions(spec)


def _check_modes(spec: Block) -> Iterator[Finding]:
    """Refuse, in upstream's words, a MutatingPolicy that concerns nothing or is never asked."""
    yield from check_concern(spec)
    if not is_enabled(spec, "admission") and not is_enabled(spec, "mutateExisting"):
        text = (
            "Forbidden: disabling both admission and mutateExisting evaluation modes is not allowed"
        )
        yield error("spec.evaluation", text)


def _check_native_conditions(spec: Block) -> Iterator[Finding]:
    """Refuse conditions of a policy that is to be made native and read what a native policy has later only (row CP-34)."""
    native = (spec.get("autogen") or {}).get("mutatingAdmissionPolicy") or {}
    if native.get("enabled") is not True:
        return
    for index, block in enumerate(spec.get("matchConditions") or ()):
        if cel_expressions.reads(block.get("expression"), "variables"):
            yield error(
                f"spec.matchConditions[{index}].expression",
                "Forbidden: variables cannot be referenced in matchConditions when"
                " spec.autogen.mutatingAdmissionPolicy.enabled is true",
            )


def _check_targets(spec: Block, names: Collection[str], scope: Scope) -> Iterator[Finding]:
    conditions = spec.get("targetMatchConditions") or ()
    at = "spec.targetMatchConditions"
    yield from cel_expressions.check_named(conditions, at, names, scope, wanted=("bool",))
    if expression := (spec.get("targetMatchConstraints") or {}).get("expression"):
        at, wanted = "spec.targetMatchConstraints.expression", ("map", DYNAMIC)
        fault = "output type must be a map"
        yield from cel_expressions.check_expression(
            expression, at, names, scope, wanted=wanted, fault=fault
        )


def _check_names(conditions: Sequence[Block]) -> Iterator[Finding]:
    for index, block in enumerate(conditions):
        name = str(block.get("name") or "")
        if name and (why := key_error(name)):
            yield invalid(f"spec.matchConditions[{index}].name", name, why)


def check_concern(spec: Block) -> Iterator[Finding]:
    """Refuse, in upstream's words, a policy that names no resources (row CP-31), or selects by what no webhook can have."""
    constraints = spec.get("matchConstraints") or {}
    if not constraints.get("resourceRules"):
        text = "Required value: a matchConstraints with at least one resource rule is required"
        yield error("spec.matchConstraints", text)
    for name in ("namespaceSelector", "objectSelector"):
        yield from check_requirements(constraints.get(name) or {}, f"spec.matchConstraints.{name}")


def check_constraints(spec: Block, *, is_native: bool) -> Iterator[Finding]:
    """Refuse a policy about requests that concerns nothing; of its parts, the API server demands those of a native one."""
    if mode_of(spec) == KUBERNETES:
        yield from check_concern(spec)
    for index, rule in enumerate(rules_of(spec)):
        for name in ("apiGroups", "apiVersions", "operations", "resources"):
            if not rule.get(name):
                path = f"spec.matchConstraints.resourceRules[{index}].{name}"
                means_none = name == "resources"
                text = "nothing is named, so nothing matches" if means_none else "unset means all"
                yield error(path, "Required value") if is_native else warning(path, text)


def _check_work(policy: Policy, spec: Block) -> Iterator[Finding]:
    if "MutatingAdmission" in policy.kind:
        if not spec.get("mutations"):
            yield error("spec.mutations", "Required value: a policy has at least one mutation")
    elif "Mutating" in policy.kind or "Generating" in policy.kind or "Deleting" in policy.kind:
        return
    elif not spec.get("validations") and not spec.get("auditAnnotations"):
        text = "Required value: validations or auditAnnotations must contain at least one item"
        yield error("spec.validations", text)


def check_validations(spec: Block, names: Collection[str], scope: Scope) -> Iterator[Finding]:
    """Yield what is wrong with validations, which may read `names` and `variables`."""
    wanted = _VERDICTS if mode_of(spec) in ("HTTP", "Envoy") else ("bool",)
    for index, block in enumerate(spec.get("validations") or ()):
        path = f"spec.validations[{index}]"
        at = f"{path}.expression"
        yield from cel_expressions.check_expression(
            block.get("expression"), at, names, scope, wanted=wanted
        )
        if told := block.get("messageExpression"):
            at = f"{path}.messageExpression"
            yield from cel_expressions.check_expression(
                told, at, names, scope, wanted=("string", DYNAMIC)
            )
        if "\n" in str(block.get("message") or "").strip():
            yield invalid(
                f"{path}.message", block["message"], "message must not contain line breaks"
            )


def _check_mutations(spec: Block, names: Collection[str], scope: Scope) -> Iterator[Finding]:
    for index, block in enumerate(spec.get("mutations") or ()):
        field, output = _MUTATIONS[str(block.get("patchType"))]
        path = f"spec.mutations[{index}].{field}.expression"
        text = (block.get(field) or {}).get("expression")
        yield from cel_expressions.check_expression(
            text, path, names, scope, wanted=(output, DYNAMIC)
        )
        if field == "applyConfiguration":
            yield from check_configuration(text, path)


def _check_generation(spec: Block, names: Collection[str], scope: Scope) -> Iterator[Finding]:
    if spec.get("generate") == []:
        text = "spec.generate in body should have at least 1 items"
        yield invalid("spec.generate", 0, text)
    for index, block in enumerate(spec.get("generate") or ()):
        path = f"spec.generate[{index}]"
        if bool(block.get("expression")) is ("template" in block):
            yield error(path, "Invalid value: exactly one of expression or template must be set")
            continue
        if text := block.get("expression"):
            at = f"{path}.expression"
            yield from cel_expressions.check_expression(text, at, names, scope, wanted=("bool",))
        for source in sources_of(block.get("template") or {}):
            yield from cel_expressions.check_expression(source, f"{path}.template", names, scope)


def check_calls_out(policy: Policy) -> Iterator[Finding]:
    """Refuse calls that a policy of this scope does not make.

    In a policy of a namespace that is HTTP, whose author would choose where the engine's account goes (row CP-36); functions
    about objects name a namespace in policies of the cluster alone (row CE-09).
    """
    spec = policy.raw["spec"]
    is_namespaced = policy.kind in NAMESPACED
    found = [one for part in _CALLING for one in _expressions(spec.get(part), f"spec.{part}")]
    if is_namespaced and any(cel_expressions.reads(text, "http") for _, text in found):
        yield error("spec", "Forbidden: http.* is not allowed in namespaced policies")
    for path, text in found:
        yield from cel_expressions.check_scope_of_calls(text, path, is_namespaced=is_namespaced)


def _expressions(value: Json, path: str) -> Iterator[tuple[str, str]]:
    """Yield the expressions in a part of a policy, those of templates among them, and where they stand."""
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from _expressions(one, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, one in value.items():
            place = f"{path}.{key}"
            if key in _TEXTS:
                yield place, str(one or "")
            elif key == "template" and isinstance(one, dict):
                yield from ((place, text) for text in sources_of(one))
            else:
                yield from _expressions(one, place)


def check_actions(spec: Block) -> Iterator[Finding]:
    """Yield what is wrong with validation actions and the webhook's time."""
    actions = spec.get("validationActions") or ()
    if len(set(actions)) < len(actions):
        yield error("spec.validationActions", f"Duplicate value: {', '.join(actions)}")
    seconds = (spec.get("webhookConfiguration") or {}).get("timeoutSeconds")
    if seconds is not None and not _SHORTEST_TIMEOUT <= seconds <= _LONGEST_TIMEOUT:
        text = (
            f"the timeout value must be between {_SHORTEST_TIMEOUT} and {_LONGEST_TIMEOUT} seconds"
        )
        yield invalid("spec.webhookConfiguration.timeoutSeconds", seconds, text)


@gathered
def lint_cel_exception(exc: CelException) -> Iterator[Finding]:
    """Return everything that is wrong or doubtful about an exception of policies.kyverno.io."""
    if not exc.references:
        yield error("spec.policyRefs", "Required value: must specify at least one policy ref")
    for index, (name, kind) in enumerate(exc.references):
        path = f"spec.policyRefs[{index}]"
        if not name:
            yield error(f"{path}.name", "Required value: must specify policy name")
        row = BY_NAME.get(kind)
        if not kind:
            yield error(f"{path}.kind", "Required value: must specify policy kind")
        elif row is None or not row.is_cel:
            known = ", ".join(f'"{one}"' for one in _KINDS)
            yield error(f"{path}.kind", f'Unsupported value: "{kind}": supported values: {known}')
        elif not row.is_evaluated:
            yield warning(f"{path}.kind", f"policies of kind {kind} are not enforced here")
    # it reads no variables; its expressions are compiled as those of the policies that it names
    is_of_generating = all("Generating" in kind for _, kind in exc.references)
    scope = Scope("Generating" if is_of_generating else "")
    yield from cel_expressions.check_named(
        exc.match_conditions, "spec.matchConditions", cel_expressions.NAMES, scope
    )
    yield from _check_end(exc)


def _check_end(exc: CelException) -> Iterator[Finding]:
    written = {
        "spec.expiresAt": exc.expires_at,
        f"metadata.annotations.{vocabulary.EXPIRES_AT}": exc.annotations.get(
            vocabulary.EXPIRES_AT, ""
        ),
    }
    for path, text in written.items():
        if text and rfc3339.read(text) is None:
            yield invalid(path, text, "must be an instant as in RFC 3339, with a time zone")
    if said := ttl.warning({"metadata": {"labels": dict(exc.labels)}}):
        yield warning(f"metadata.labels.{vocabulary.TTL_LABEL}", said)


@gathered
def lint_binding(binding: Binding) -> Iterator[Finding]:
    """Return everything that is wrong or doubtful about the binding of a native policy."""
    if not binding.policy_name:
        yield error("spec.policyName", "Required value: a binding names a policy")
    if binding.kind.startswith("Validating") and not binding.actions:
        yield error("spec.validationActions", "Required value: a binding says what a failure does")
    if {"Deny", "Warn"} <= set(binding.actions):
        text = "must not contain both Deny and Warn (repeating the same validation failure information)"
        yield invalid("spec.validationActions", ", ".join(binding.actions), text)
