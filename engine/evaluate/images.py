"""Rules that verify image signatures (section 1.9): the images of the object, and what the registry says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.images import ImageData, ImageRule, ImageVerdict, compile_image_rule, find_images
from engine.lang.jmes import Env
from engine.lang.variables import Scope, compile_document
from engine.manifests import Circumstances
from engine.model import Outcome, Status
from engine.mutate.handler import apply_json6902
from engine.record import record

from .answers import Answers, RuleAnswer, answered
from .conditions import compile_conditions
from .context import registry_access
from .lookups import SignatureLookup

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.images import FoundImage
    from engine.model import Block, Json, Object, Rule

    from .state import State

_NONE_FOUND = "skip run verification as image in resource not found in imageRefs"


def compile_verify_images(rule: Rule) -> Callable[[State], Answers]:
    """Compile the handler of a verifyImages rule; it answers once for each image that an entry selects."""
    documents = [compile_document(_without_attestations(entry)) for entry in rule.verify_images]
    are_constant = all(document.is_constant for document in documents)
    ready = [_compiled(dict(entry)) for entry in rule.verify_images] if are_constant else []

    def handle(state: State) -> Answers:
        entries = ready or [
            _compiled({**entry, **document.render(state.scope)})
            for entry, document in zip(rule.verify_images, documents, strict=True)
        ]
        images = find_images(state.resource, rule.image_extractors or None)
        verdicts = [
            _verdict(entry, image, state)
            for entry in entries
            for image in images
            if entry.rule.selects(image.image)
        ]
        if not verdicts:
            return answered(Status.SKIP, _NONE_FOUND)
        return tuple(_answer(verdict, state.resource) for verdict in verdicts)

    return handle


def _without_attestations(entry: Block) -> Block:
    """Return an entry without what has its variables replaced later, once its predicates are there."""
    return {key: value for key, value in entry.items() if key != "attestations"}


@record
class _Entry:
    """One compiled entry of `verifyImages`, and how its registry is asked."""

    rule: ImageRule
    secrets: tuple[str, ...]
    is_insecure: bool
    repository: str


def _compiled(entry: Block) -> _Entry:
    secrets, is_insecure = registry_access(entry.get("imageRegistryCredentials") or {})
    repository = str(entry.get("repository") or "")
    return _Entry(compile_image_rule(entry), secrets, is_insecure, repository)


def _verdict(entry: _Entry, found: FoundImage, state: State) -> ImageVerdict:
    """Verify one image against what the registry holds for it."""
    secrets = (*entry.secrets, *pull_secrets(state.resource))
    lookup = SignatureLookup(found.image.reference, secrets, entry.is_insecure, entry.repository)
    answer = state.inputs.ask(lookup)
    data = answer.value
    if not isinstance(data, ImageData):
        data = ImageData(problem=answer.error or "there is no registry to ask")
    given = Circumstances(state.inputs.now, state.inputs.trust)
    return entry.rule.verify(
        found, data, given, lambda conditions, predicate: _holds(conditions, predicate, state)
    )


def pull_secrets(obj: Object) -> tuple[str, ...]:
    """Return the pull secrets of a Pod, or of what makes Pods, as `namespace/name` (row A-90b)."""
    spec: Json = obj.get("spec")
    for below in ("jobTemplate", "template"):
        nested = spec.get(below) if isinstance(spec, dict) else None
        if isinstance(nested, dict):
            spec = nested.get("spec")
    listed = spec.get("imagePullSecrets") if isinstance(spec, dict) else None
    namespace = (obj.get("metadata") or {}).get("namespace") or "default"
    named = [one.get("name") for one in listed or () if isinstance(one, dict)]
    return tuple(f"{namespace}/{name}" for name in named if isinstance(name, str) and name)


def _holds(conditions: Json, predicate: Json, state: State) -> tuple[bool, str]:
    """Evaluate an attestation's conditions, whose variables start from its predicate (row A-90)."""
    data = predicate if isinstance(predicate, dict) else {}
    scope = Scope(
        {**state.scope.data, **data}, Env(now=state.inputs.now), rereads=state.scope.rereads
    )
    verdict = compile_conditions(conditions)(scope, state.trace)
    return verdict.holds, verdict.message


def _answer(verdict: ImageVerdict, obj: Object) -> RuleAnswer:
    outcome = Outcome(verdict.status, verdict.message)
    if verdict.patch is None:
        return RuleAnswer(outcome)
    try:
        return RuleAnswer(outcome, patched=apply_json6902([verdict.patch], obj))
    except EngineError as error:
        return RuleAnswer(Outcome(Status.ERROR, error.message))
