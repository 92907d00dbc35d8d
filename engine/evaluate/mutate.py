"""Mutate rules: render the patch for the object, apply it, loop where the rule loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError, EvaluationError
from engine.lang.gotext import compact_json
from engine.lang.variables import Document, compile_document, has_variables
from engine.model import Block, Json, Object, Outcome, Rule, Status, Target
from engine.mutate.handler import (
    NOTHING_APPLIED,
    apply_json6902,
    apply_strategic,
    is_descending,
    mutated_message,
)
from engine.mutate.ready import ready_json6902, ready_strategic
from engine.reach import GUARDED_GROUPS, Effect, out_of_reach, target_of
from engine.record import record, replace

from .conditions import Conditions, compile_conditions
from .context import Entry, compile_context, load_context
from .lookups import ListLookup
from .loops import each, elements_of
from .patch_texts import PatchText
from .quick import AtOnce, Passing
from .state import LOST, NO_ANSWER, Answers, RuleAnswer, State, answered, errored, joined

if TYPE_CHECKING:
    from collections.abc import Callable

    Patch = Callable[[State, Object], Object]
    Handler = Callable[[State], Answers]


_IDLE = RuleAnswer(Outcome(Status.SKIP, NOTHING_APPLIED))


class _MutationError(EvaluationError):
    """A mutation that failed, with the wording of the step that failed."""


@record
class _Loop:
    """One compiled `foreach` entry of a mutate rule."""

    list: str
    descending: bool
    context: tuple[Entry, ...]
    preconditions: Conditions
    patch: Patch | None
    inner: tuple[_Loop, ...]


def compile_mutate(rule: Rule) -> tuple[Handler, Passing | AtOnce]:
    """Compile the handler of a mutate rule; with `targets` it answers for each target instead of the object.

    Beside it stands the work of a patch that is the same for all objects.
    """
    block = rule.mutate or {}
    loops = _compile_loops(block.get("foreach") or ())
    patch = None if loops else _compile_patch(block, "/mutate")
    if block.get("targets"):
        return _compile_targets(block, loops, patch), Passing()

    def handle(state: State) -> Answers:
        review = state.review
        if review.group not in GUARDED_GROUPS:
            return (_mutate(state, state.resource, loops, patch),)
        states = [one for one in (review.old_object, review.object) if one is not None]
        return (_within_reach(Effect.MUTATE, states, state, loops, patch),)

    if not isinstance(patch, _Constant):
        return handle, Passing()
    apply = patch.apply

    def work(resource: Object) -> Answers | None:
        patched = apply(resource)
        return None if patched is resource else (_patched(resource, patched),)

    return handle, AtOnce(work, (_IDLE,))


def _within_reach(
    effect: Effect,
    states: list[Object],
    state: State,
    loops: tuple[_Loop, ...],
    patch: Patch | None,
) -> RuleAnswer:
    """Return the answer of an object known in some states, skipped where it is, or would come to be, out of reach."""
    within = state.policy.namespace
    reason = out_of_reach(effect, target_of(*states), within)
    if reason is None:
        answer = _mutate(state, state.resource, loops, patch)
        if answer.patched is None or answer.patched is LOST or answer.patched is state.resource:
            return answer
        reason = out_of_reach(effect, target_of(*states, answer.patched), within)
        if reason is None:
            return answer
    return RuleAnswer(Outcome(Status.SKIP, f"rule is skipped: {reason}"))


def _mutate(
    state: State, resource: Object, loops: tuple[_Loop, ...], patch: Patch | None
) -> RuleAnswer:
    """Return the answer of one object: what was patched, or why nothing was."""
    try:
        if loops:
            patched, count = _run_loops(loops, state, resource)
        elif patch is not None:
            return _patched(resource, patch(state, resource))
        else:
            return RuleAnswer(Outcome(Status.ERROR, "empty mutate rule"))
    except EngineError as error:
        return RuleAnswer(Outcome(Status.ERROR, error.message), LOST)
    if not count:
        return RuleAnswer(Outcome(Status.SKIP, "0 elements processed"), patched=resource)
    return RuleAnswer(Outcome(Status.PASS, mutated_message(patched)), patched=patched)


def _patched(resource: Object, patched: Object) -> RuleAnswer:
    if patched is resource:
        return _IDLE
    return RuleAnswer(Outcome(Status.PASS, mutated_message(patched)), patched)


def _compile_patch(block: Block, path: str) -> Patch | None:
    strategic = block.get("patchStrategicMerge")
    if strategic is not None:
        document = compile_document(strategic)
        if document.is_constant:
            return _Constant(ready_strategic(strategic))
        return _patcher(document, f"{path}/patchStrategicMerge", apply_strategic)
    text = block.get("patchesJson6902")
    if text:
        if isinstance(text, str) and has_variables(text):
            return _patcher(PatchText(text), f"{path}/patchesJson6902", apply_json6902)
        document = compile_document(text)
        if document.is_constant:
            return _Constant(ready_json6902(text))
        return _patcher(document, f"{path}/patchesJson6902", apply_json6902)
    return None


class _Constant:
    """A patch that is the same for all objects."""

    __slots__ = ("apply",)

    def __init__(self, apply: Callable[[Object], Object]) -> None:
        self.apply = apply

    def __call__(self, _state: State, resource: Object) -> Object:
        return self.apply(resource)


def _patcher(
    document: Document | PatchText, path: str, apply: Callable[[Json, Object], Object]
) -> Patch:
    def patch(state: State, resource: Object) -> Object:
        try:
            rendered = document.render(state.scope, path)
        except EvaluationError as error:
            raise _MutationError(f"variable substitution failed: {error.message}") from error
        return apply(rendered, resource)

    return patch


def _compile_loops(blocks: Json) -> tuple[_Loop, ...]:
    return tuple(_compile_loop(block) for block in blocks)


def _compile_loop(block: Block) -> _Loop:
    return _Loop(
        list=str(block.get("list", "")),
        descending=is_descending(block),
        context=compile_context(tuple(block.get("context") or ())),
        preconditions=compile_conditions(block.get("preconditions")),
        patch=_compile_patch(block, ""),
        inner=_compile_loops(block.get("foreach") or ()),
    )


def _run_loops(loops: tuple[_Loop, ...], state: State, resource: Object) -> tuple[Object, int]:
    """Apply every loop in turn; returns the object and how many loops changed it."""
    count = 0
    for loop in loops:
        try:
            elements = elements_of(loop.list, state)
        except EvaluationError as error:
            raise _MutationError(
                f"failed to evaluate list {loop.list}: {error.message}: {error.message}"
            ) from error
        try:
            patched = _run_loop(loop, elements, state, resource)
        except EngineError as error:
            raise _MutationError(f"failed to mutate elements: {error.message}") from error
        if patched is not resource:
            resource, count = patched, count + 1
            _show(state, resource)
    return resource, count


def _run_loop(loop: _Loop, elements: list[Json], state: State, resource: Object) -> Object:
    for _, inner in each(elements, state, descending=loop.descending):
        _show(inner, resource)
        load_context(loop.context, inner.scope, state.inputs)
        try:
            if not loop.preconditions(inner.scope, state.trace).holds:
                continue
        except EvaluationError as error:
            index = inner.scope.data["elementIndex"]
            raise _MutationError(
                f"failed to evaluate mutate.foreach[{index}].preconditions: {error.message}"
            ) from error
        if loop.inner:
            resource, _ = _run_loops(loop.inner, inner, resource)
        elif loop.patch is not None:
            resource = loop.patch(inner, resource)
    return resource


def _show(state: State, resource: Object) -> None:
    """Let expressions see the object as patched so far."""
    scope = state.scope
    if "target" in scope.data:
        scope.set("target", resource)
    else:
        scope.set("request", {**scope.data["request"], "object": resource})


@record
class _TargetSpec:
    """One compiled entry of `mutate.targets`."""

    where: Document
    context: tuple[Entry, ...]
    preconditions: Conditions


def _compile_targets(block: Block, loops: tuple[_Loop, ...], patch: Patch | None) -> Handler:
    specs = [_compile_target(target) for target in block["targets"]]

    def handle(state: State) -> Answers:
        answers: Answers = NO_ANSWER
        for spec in specs:
            try:
                found = _find(spec, state)
            except EvaluationError as error:
                return answered(Status.ERROR, error.message)
            for target in found:
                answers += _mutate_target(spec, target, state, loops, patch)
        return answers

    return handle


def _compile_target(target: Block) -> _TargetSpec:
    fields = ("apiVersion", "kind", "namespace", "name", "uid", "selector")
    return _TargetSpec(
        where=compile_document({key: target[key] for key in fields if target.get(key)}),
        context=compile_context(tuple(target.get("context") or ())),
        preconditions=compile_conditions(target.get("preconditions")),
    )


def _find(spec: _TargetSpec, state: State) -> list[Object]:
    """Return the objects that a target means; a namespaced policy reaches only its own namespace (row A-25)."""
    where = spec.where.render(state.scope, "/mutate/targets")
    lookup = ListLookup(
        api_version=str(where.get("apiVersion", "")),
        kind=str(where.get("kind", "")),
        namespace=state.policy.namespace or str(where.get("namespace", "")),
        name=str(where.get("name", "")),
        selector=compact_json(where["selector"]) if where.get("selector") else "",
    )
    answer = state.inputs.ask(lookup)
    if answer.error:
        raise EvaluationError(f"failed to get target {lookup.kind}: {answer.error}")
    found = [] if answer.is_absent else list(answer.value or ())
    uid = where.get("uid")
    return [obj for obj in found if not uid or (obj.get("metadata") or {}).get("uid") == uid]


def _mutate_target(
    spec: _TargetSpec, target: Object, state: State, loops: tuple[_Loop, ...], patch: Patch | None
) -> Answers:
    scope = state.scope.child()
    scope.set("target", target)
    inner = state.looking_at(target, scope)
    load_context(spec.context, scope, state.inputs)
    try:
        verdict = spec.preconditions(scope, state.trace)
    except EvaluationError as error:
        return errored("failed to evaluate preconditions", error)
    if not verdict.holds:
        return answered(Status.SKIP, joined("preconditions not met", verdict.message))
    answer = _within_reach(Effect.MUTATE_EXISTING, [target], inner, loops, patch)
    after = target if answer.patched is None or answer.patched is LOST else answer.patched
    return (replace(answer, targets=(Target(target, after),)),)
