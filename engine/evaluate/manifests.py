"""Rules that ask for signed manifests (row A-77), with the trust material of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.lang.variables import compile_document
from engine.manifests import compile_manifests
from engine.model import Block, Status

from .answers import NO_ANSWER, Answers, RuleAnswer, answered

if TYPE_CHECKING:
    from collections.abc import Callable

    from .state import State


def compile_signed(block: Block) -> Callable[[State], Answers]:
    """Compile the handler of `validate.manifests`; it looks at the object as it was received."""
    document = compile_document(dict(block))
    compiled = compile_manifests(block) if document.is_constant else None

    def handle(state: State) -> Answers:
        review = state.review
        if review.operation == "DELETE":
            return NO_ANSWER
        try:
            verify = compiled or compile_manifests(
                document.render(state.scope, "/validate/manifests")
            )
            outcome = verify(review.target, state.inputs.trust, state.inputs.now, review.dry_run)
        except EngineError as error:
            return answered(Status.ERROR, error.message)
        return (RuleAnswer(outcome),)

    return handle
