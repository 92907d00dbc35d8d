"""Rules that verify image signatures: the images of the object, and what the registry says of them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.images import (
    DOCKER_HUB,
    FoundImage,
    ImageData,
    ImageRule,
    ImageVerdict,
    compile_image_rule,
    find_images,
)
from engine.lang.jmes import Env
from engine.lang.variables import Scope, compile_document
from engine.manifests import Circumstances
from engine.model import Block, Json, Object, Outcome, Rule, Status
from engine.model.result import ImageFinding
from engine.mutate.handler import apply_json6902
from engine.record import record, replace

from .conditions import compile_conditions
from .context import registry_access
from .lookups import Answer, SignatureLookup
from .state import Answers, RuleAnswer, State, answered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def compile_verify_images(rule: Rule) -> Callable[[State], Answers]:
    """Compile the handler of a verifyImages rule; it answers once for each image that an entry selects."""
    # what attestations hold has its variables replaced later, once its predicates are there
    documents = [
        compile_document({key: value for key, value in entry.items() if key != "attestations"})
        for entry in rule.verify_images
    ]
    are_constant = all(document.is_constant for document in documents)
    ready = [_compiled(dict(entry)) for entry in rule.verify_images] if are_constant else []

    def handle(state: State) -> Answers:
        entries = ready or [
            _compiled({**entry, **document.render(state.scope)})
            for entry, document in zip(rule.verify_images, documents, strict=True)
        ]
        defaults = state.inputs.registry or DOCKER_HUB
        images = find_images(state.resource, rule.image_extractors or None, defaults)
        selected = [
            (entry, image)
            for entry in entries
            for image in images
            if entry.rule.selects(image.image)
        ]
        if not selected:
            text = "skip run verification as image in resource not found in imageRefs"
            return answered(Status.SKIP, text)
        return _answers(selected, state)

    return handle


def _answers(selected: Sequence[tuple[_Entry, FoundImage]], state: State) -> Answers:
    """Ask the registries about all images at once, and judge each by its entry."""
    secrets = pull_secrets(state.resource)
    questions = [entry.lookups(image, secrets) for entry, image in selected]
    flat = [lookup for asked in questions for lookup in asked.values()]
    known = dict(zip(flat, state.inputs.ask_all(flat), strict=True))
    answers, obj, is_request = [], state.resource, bool(state.review.request.get("uid"))
    for (entry, image), asked in zip(selected, questions, strict=True):
        verdict = _verdict(entry, image, {key: known[one] for key, one in asked.items()}, state)
        answer = _answer(entry, image, verdict, obj, is_request=is_request)
        # each digest is written beside those before it
        obj = answer.patched if answer.patched is not None else obj
        answers.append(answer)
    return tuple(answers)


@record
class _Entry:
    """One compiled entry of `verifyImages`, and how its registry is asked; `confirmation` as in SignatureLookup."""

    rule: ImageRule
    secrets: tuple[str, ...]
    is_insecure: bool
    repository: str
    confirmation: str

    def lookups(self, found: FoundImage, secrets: tuple[str, ...]) -> dict[str, SignatureLookup]:
        """Return the questions about an image, by the repository that an attestor names (empty: none)."""
        asked = SignatureLookup(
            found.image.reference,
            (*self.secrets, *secrets),
            self.is_insecure,
            self.repository,
            artifacts=self.rule.artifacts,
        )
        elsewhere = {one: replace(asked, repository=one) for one in self.rule.repositories}
        return {"": replace(asked, confirmation=self.confirmation), **elsewhere}


def _compiled(entry: Block) -> _Entry:
    secrets, is_insecure = registry_access(entry.get("imageRegistryCredentials") or {})
    repository = str(entry.get("repository") or "")
    return _Entry(compile_image_rule(entry), secrets, is_insecure, repository, _confirmation(entry))


def _confirmation(entry: Block) -> str:
    """Return what stands for an entry with its variables put in; empty where a pass must not be remembered.

    Conditions on attestations may read the object, so that what holds for one need not hold for the next.
    """
    attestations = entry.get("attestations") or ()
    if entry.get("useCache") is False or any(one.get("conditions") for one in attestations):
        return ""
    return fingerprint(entry)


def _verdict(
    entry: _Entry, found: FoundImage, answers: Mapping[str, Answer], state: State
) -> ImageVerdict:
    """Verify one image against what the registry holds for it."""
    data = {key: _data(answer) for key, answer in answers.items()}
    inputs = state.inputs
    given = Circumstances(inputs.now, inputs.trust, key_of=inputs.public_key)
    return entry.rule.verify(
        found,
        data[""],
        given,
        lambda conditions, predicate: _holds(conditions, predicate, state),
        data,
    )


def _data(answer: Answer) -> ImageData:
    if isinstance(answer.value, ImageData):
        return answer.value
    return ImageData(problem=answer.error or "there is no registry to ask")


def fingerprint(document: Json) -> str:
    """Return what stands for a document: equal for equal ones, different for all others."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


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
        {**state.scope.data, **data},
        Env(now=state.inputs.now, registry=state.inputs.registry),
        rereads=state.scope.rereads,
    )
    verdict = compile_conditions(conditions)(scope, state.trace)
    return verdict.holds, verdict.message


def _answer(
    entry: _Entry, found: FoundImage, verdict: ImageVerdict, obj: Object, *, is_request: bool
) -> RuleAnswer:
    outcome = Outcome(verdict.status, verdict.message)
    if is_request and verdict.status is Status.PASS and entry.rule.misses_digest(found.image):
        outcome = Outcome(Status.FAIL, f"missing digest for {verdict.image}")
    is_good = verdict.status is Status.PASS
    finding = ImageFinding(
        verdict.image,
        is_verified=is_good,
        is_tried=True,
        digest=verdict.digest,
        confirmation=entry.confirmation if is_good else "",
    )
    if verdict.patch is None:
        return RuleAnswer(outcome, images=(finding,))
    try:
        patched = apply_json6902([verdict.patch], obj)
    except EngineError as error:
        return RuleAnswer(Outcome(Status.ERROR, error.message))
    return RuleAnswer(outcome, patched=patched, images=(finding,))
