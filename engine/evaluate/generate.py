"""Generate rules: the plan of objects that a trigger causes; carrying it out is the caller's part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.generate.labels import downstream_labels, source_labels
from engine.generate.objects import copy_of, from_data
from engine.lang.gotext import compact_json
from engine.lang.variables import compile_document
from engine.model import Block, Json, Object, Outcome, Rule, Status
from engine.record import record

from .conditions import Conditions, compile_conditions
from .context import Entry, compile_context, load_context
from .lookups import ListLookup, ObjectLookup
from .loops import each, elements_of
from .state import Answers, RuleAnswer, State, answered

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[State], Answers]
    Make = Callable[[State], tuple[Object, ...]]

_PLACE = ("apiVersion", "kind", "name", "namespace", "data", "clone", "cloneList")


@record
class _Loop:
    """One compiled `foreach` entry of a generate rule."""

    list: str
    context: tuple[Entry, ...]
    preconditions: Conditions
    make: Make


def compile_generate(rule: Rule) -> Handler:
    """Compile the handler of a generate rule; its answer holds the objects that should exist."""
    block = rule.generate or {}
    loops = tuple(_compile_loop(loop) for loop in block.get("foreach") or ())
    make = None if loops else _compile_make(block)

    def handle(state: State) -> Answers:
        try:
            made = make(state) if make is not None else _run_loops(loops, state)
        except EvaluationError as error:
            return answered(Status.ERROR, error.message)
        return (RuleAnswer(Outcome(Status.PASS), generated=made),)

    return handle


def _compile_make(block: Block) -> Make:
    document = compile_document({key: block[key] for key in _PLACE if block.get(key) is not None})

    def make(state: State) -> tuple[Object, ...]:
        try:
            where = document.render(state.scope, "/generate")
        except EvaluationError as error:
            raise EvaluationError(f"variable substitution failed: {error.message}") from error
        labels = downstream_labels(state.policy, state.rule.name, state.review)
        if where.get("clone"):
            return _clone(where, labels, state)
        if where.get("cloneList"):
            return _clone_list(where, labels, state)
        return (from_data(where.get("data"), where, labels),)

    return make


def _clone(where: Json, labels: dict[str, str], state: State) -> tuple[Object, ...]:
    """Copy one object; copying onto itself makes nothing (row U-05)."""
    source_place = where["clone"]
    lookup = ObjectLookup(
        str(where.get("apiVersion", "")),
        str(where.get("kind", "")),
        str(source_place.get("namespace") or ""),
        str(source_place.get("name") or ""),
    )
    if (lookup.namespace, lookup.name) == (where.get("namespace") or "", where.get("name")):
        return ()
    answer = state.inputs.ask(lookup)
    if answer.error or answer.is_absent or answer.value is None:
        place = "/".join(part for part in (lookup.namespace, lookup.name) if part)
        reason = answer.error or "not found"
        raise EvaluationError(f"source resource {lookup.kind} {place}: {reason}")
    return (copy_of(answer.value, where, {**labels, **source_labels(answer.value)}),)


def _clone_list(where: Json, labels: dict[str, str], state: State) -> tuple[Object, ...]:
    block = where["cloneList"]
    selector = compact_json(block["selector"]) if block.get("selector") else ""
    made: list[Object] = []
    for kind in block.get("kinds") or ():
        api_version, _, name = str(kind).rpartition("/")
        lookup = ListLookup(api_version, name, str(block.get("namespace") or ""), selector=selector)
        answer = state.inputs.ask(lookup)
        if answer.error:
            raise EvaluationError(f"failed to list {kind}: {answer.error}")
        place = {"namespace": where.get("namespace")}
        made += [
            copy_of(source, place, {**labels, **source_labels(source)})
            for source in answer.value or ()
            if (source.get("metadata") or {}).get("namespace") != where.get("namespace")
        ]
    return tuple(made)


def _compile_loop(block: Block) -> _Loop:
    return _Loop(
        list=str(block.get("list", "")),
        context=compile_context(tuple(block.get("context") or ())),
        preconditions=compile_conditions(block.get("preconditions")),
        make=_compile_make(block),
    )


def _run_loops(loops: tuple[_Loop, ...], state: State) -> tuple[Object, ...]:
    made: tuple[Object, ...] = ()
    for loop in loops:
        try:
            elements = elements_of(loop.list, state)
        except EvaluationError as error:
            raise EvaluationError(
                f"failed to evaluate list {loop.list}: {error.message}"
            ) from error
        for _, inner in each(elements, state):
            load_context(loop.context, inner.scope, state.inputs)
            if loop.preconditions(inner.scope, state.trace).holds:
                made += loop.make(inner)
    return made
