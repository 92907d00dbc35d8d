"""Parameter resources of rules and bindings: which objects `params` is, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.evaluate.lookups import Answer, ListLookup, ObjectLookup
from engine.lang.gotext import compact_json

if TYPE_CHECKING:
    from engine.evaluate.inputs import Inputs
    from engine.model import Block, Json, Review


def params_of(kind: Block, reference: Block, review: Review, inputs: Inputs) -> tuple[Json, ...]:
    """Return the parameter objects that a reference means for a review.

    Without a namespace of its own it looks where the object is, and among cluster-wide objects. Raises EvaluationError
    where there are none and that is to be an error (`parameterNotFoundAction: Deny`), or where they cannot be read.
    """
    api_version, name = str(kind.get("apiVersion", "")), str(kind.get("kind", ""))
    own = str(reference.get("namespace") or "")
    places = (own,) if own or not review.namespace else (review.namespace, "")
    found: tuple[Json, ...] = ()
    for place in places:
        found = found or _at(api_version, name, place, reference, inputs)
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise EvaluationError(
            "no params found for policy binding with `Deny` parameterNotFoundAction"
        )
    return found


def _at(
    api_version: str, kind: str, namespace: str, reference: Block, inputs: Inputs
) -> tuple[Json, ...]:
    if reference.get("name"):
        answer = inputs.ask(ObjectLookup(api_version, kind, namespace, str(reference["name"])))
        return () if _value(answer) is None else (answer.value,)
    selector = compact_json(reference.get("selector") or {})
    answer = inputs.ask(ListLookup(api_version, kind, namespace, selector=selector))
    return tuple(_value(answer) or ())


def _value(answer: Answer) -> Json:
    if answer.error:
        raise EvaluationError(answer.error)
    return answer.value
