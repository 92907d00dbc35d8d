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

from .answers import Answers, RuleAnswer, answered
from .conditions import compile_conditions
from .lookups import SignatureLookup

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.images import FoundImage
    from engine.model import Block, Json, Object, Rule

    from .state import State

_NONE_FOUND = "skip run verification as image in resource not found in imageRefs"


def compile_verify_images(rule: Rule) -> Callable[[State], Answers]:
    """Compile the handler of a verifyImages rule; it answers once for each image that an entry selects."""
    documents = [compile_document(dict(entry)) for entry in rule.verify_images]
    ready = [_compiled(document.source) for document in documents if document.is_constant]

    def handle(state: State) -> Answers:
        entries = ready
        if len(ready) < len(documents):
            entries = [_compiled(document.render(state.scope)) for document in documents]
        images = find_images(state.resource, rule.image_extractors or None)
        verdicts = [
            _verdict(entry, image, state)
            for entry in entries
            for image in images
            if entry.selects(image.image)
        ]
        if not verdicts:
            return answered(Status.SKIP, _NONE_FOUND)
        return tuple(_answer(verdict, state.resource) for verdict in verdicts)

    return handle


def _compiled(entry: Block) -> ImageRule:
    return compile_image_rule(entry)


def _verdict(entry: ImageRule, found: FoundImage, state: State) -> ImageVerdict:
    """Verify one image against what the registry holds for it."""
    answer = state.inputs.ask(SignatureLookup(found.image.reference))
    data = answer.value
    if not isinstance(data, ImageData):
        data = ImageData(problem=answer.error or "there is no registry to ask")
    given = Circumstances(state.inputs.now, state.inputs.trust)
    return entry.verify(
        found, data, given, lambda conditions, predicate: _holds(conditions, predicate, state)
    )


def _holds(conditions: Json, predicate: Json, state: State) -> tuple[bool, str]:
    """Evaluate an attestation's conditions, whose variables start from its predicate (row A-90)."""
    data = predicate if isinstance(predicate, dict) else {}
    scope = Scope({**state.scope.data, **data}, Env(now=state.inputs.now))
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
