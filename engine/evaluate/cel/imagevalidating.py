"""ImageValidatingPolicy and NamespacedImageValidatingPolicy (row L-04): one answer for a policy, and digests pinned.

Order of what is asked: match constraints, match conditions, exceptions, images and references, digests, what registries say
of the images, validations up to the first that is not met. What a policy asks to be verified by some policy of the request
is settled when all have answered.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.evaluate.state import NO_ANSWER, Answers, RuleAnswer, State, answered
from engine.lang import wildcard
from engine.lang.cel.functions.imagenames import parse
from engine.model import Block, Outcome, Policy, RuleType, Status
from engine.model.kinds import KUBERNETES, mode_of, rules_of
from engine.model.result import PINNING, ResourceEffect
from engine.record import record, replace

from .autogen import every_spec
from .bindings import NAMES
from .checks import Checks, checked, compile_checks
from .exceptions import CompiledCelException, naming
from .expressions import Named, compile_conditions, compile_variables, unmet
from .imageattestors import Attestation, ImageAttestor, compile_attestations, compile_attestors
from .imageevidence import Access, ImageBindings, access_of
from .imageselection import ImageSelection, compile_selection, pinned
from .policy_rule import cel_rule, constraints_of, variants_of, with_variants

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine.evaluate.rules import CompiledRule
    from engine.lang.cel import Program

    from .constraints import Constraints


_READ = frozenset({"images", "attestors", "attestations"})
_NAMES = (NAMES | _READ) - {"authorizer", "params"}
_OF_PAYLOADS = _READ | {"object"}
_PASSED = answered(Status.PASS, "success")


@record
class _Compiled:
    """One spec: the policy's own, or that of autogen."""

    name: str
    constraints: Constraints
    conditions: tuple[Named, ...]
    variables: Mapping[str, Program]
    selection: ImageSelection
    attestors: Mapping[str, ImageAttestor]
    attestations: Mapping[str, Attestation]
    checks: Checks
    access: Access
    ignores_errors: bool
    verifies_digest: bool
    is_required: bool


def compile_image_validating(
    policy: Policy, exceptions: Sequence[CompiledCelException]
) -> Iterable[CompiledRule]:
    """Compile a policy into its rule, and one that pins digests where requests are changed; raises PolicyError."""
    spec = policy.raw["spec"]
    own = naming(exceptions, policy)
    first, others, constraints = with_variants(spec, variants_of(spec), partial(_compiled, policy))

    def fitting(state: State) -> _Compiled:
        return others.get(state.review.resource, first) if others else first

    def handle(state: State) -> Answers:
        return _answer(fitting(state), own, state)

    enforce = policy.failure_action == "Enforce"
    yield cel_rule(policy, policy.name, constraints, handle, enforce=enforce)
    if mode_of(spec) == KUBERNETES and _asks(spec, "mutateDigest"):

        def pin(state: State) -> Answers:
            one = fitting(state)
            bindings = _bindings(one, state)
            try:
                exempt = _exempt(one, own, bindings)
                if exempt is None or exempt.is_whole:
                    return NO_ANSWER
                return pinned(one.selection, bindings, state.resource, exempt)
            except EvaluationError:
                # what is wrong with the object is said once, where it is validated
                return NO_ANSWER

        pinning = cel_rule(
            policy, PINNING, constraints, pin, type=RuleType.MUTATION, enforce=enforce
        )
        yield replace(pinning, is_for_requests=True)


def effects_of(policy: Policy) -> Iterator[ResourceEffect]:
    """Yield what a policy does to objects: where it writes digests, it changes what others create and update."""
    spec = policy.raw["spec"]
    if not _asks(spec, PINNING):
        return
    at = f"spec.validationConfigurations.{PINNING}"
    for one in every_spec(spec):
        for rule in rules_of(one):
            yield ResourceEffect(at, ("create", "update"), rule)


def _compiled(policy: Policy, name: str, spec: Block) -> _Compiled:
    names = _NAMES if mode_of(spec) == KUBERNETES else _OF_PAYLOADS
    plain = names - _READ
    return _Compiled(
        name=name,
        constraints=constraints_of(policy, spec),
        conditions=compile_conditions(spec, plain),
        variables=compile_variables(spec, names),
        selection=compile_selection(spec, plain),
        attestors=compile_attestors(spec.get("attestors"), plain),
        attestations=compile_attestations(spec.get("attestations")),
        checks=compile_checks(spec, names, passed=_PASSED),
        access=access_of(spec.get("credentials") or {}, policy.namespace),
        ignores_errors=spec.get("failurePolicy") == "Ignore",
        verifies_digest=_asks(spec, "verifyDigest"),
        is_required=_asks(spec, "required"),
    )


def _asks(spec: Block, name: str) -> bool:
    """Tell whether a validation configuration is on, as each is where nothing is said."""
    return (spec.get("validationConfigurations") or {}).get(name) is not False


def _bindings(one: _Compiled, state: State) -> ImageBindings:
    if one.name and state.trace is not None:
        state.trace.add("autogen", one.name)
    return ImageBindings(
        state.review,
        state.inputs,
        one.variables,
        attestors=one.attestors,
        attestations=one.attestations,
        access=one.access,
        trace=state.trace,
    )


@record
class _Exempt:
    """What exceptions take out of a policy: the object as a whole, or images by patterns; `keys` name the exceptions."""

    keys: tuple[str, ...] = ()
    is_whole: bool = False
    images: tuple[str, ...] = ()

    def __call__(self, image: str) -> bool:
        return any(wildcard.match(pattern, image) for pattern in self.images)


def _exempt(
    one: _Compiled, exceptions: Sequence[CompiledCelException], bindings: ImageBindings
) -> _Exempt | None:
    """Return what is exempt, None where the policy's conditions leave the object out; raises EvaluationError."""
    if one.conditions:
        try:
            if unmet(one.conditions, bindings, is_native=False) is not None:
                return None
        except EvaluationError:
            if one.ignores_errors:
                return None
            raise
    found = [item for item in exceptions if item.covers(bindings)]
    return _Exempt(
        tuple(item.key for item in found),
        any(not item.exception.images for item in found),
        tuple(image for item in found for image in item.exception.images),
    )


def _answer(one: _Compiled, exceptions: Sequence[CompiledCelException], state: State) -> Answers:
    bindings = _bindings(one, state)
    try:
        exempt = _exempt(one, exceptions, bindings)
    except EvaluationError as error:
        text = f"failed to execute matching: {error.message}"
        return answered(Status.ERROR, text, rule="match")
    if exempt is None:
        return NO_ANSWER
    if exempt.is_whole:
        return _excepted(exempt)
    try:
        return _judged(one, exempt, bindings)
    except EvaluationError as error:
        text = f"failed to evaluate policy: {error.message}"
        return answered(Status.ERROR, text, rule="evaluation")


def _judged(one: _Compiled, exempt: _Exempt, bindings: ImageBindings) -> Answers:
    """Judge the images that no exception takes out; raises EvaluationError for what cannot be evaluated."""
    found = one.selection.matching(bindings)
    kept = {
        name: [image for image in listed if not exempt(image)] for name, listed in found.items()
    }
    images = [image for listed in kept.values() for image in listed]
    if exempt.keys and not images and any(found.values()):
        return _excepted(exempt)
    if one.verifies_digest and (bare := _without_digest(images)):
        return answered(Status.FAIL, f"image {bare} does not have a digest")
    bindings["images"] = kept
    bindings.load(images)
    (answer,) = checked(
        one.checks, bindings, failed="failed to evaluate policy", failed_rule="evaluation"
    )
    return (replace(answer, images=bindings.findings(required=one.is_required)),)


def _without_digest(images: Sequence[str]) -> str:
    """Return the first image that names no digest; raises EvaluationError for one that is no reference."""
    for image in images:
        found = parse(image)
        if found is None:
            raise EvaluationError(f"could not parse reference: {image[:200]}")
        if not found.digest:
            return image
    return ""


def _excepted(exempt: _Exempt) -> Answers:
    message = f"rule is skipped due to policy exception: {', '.join(exempt.keys)}"
    return (RuleAnswer(Outcome(Status.SKIP, message), exceptions=exempt.keys, rule="exception"),)
