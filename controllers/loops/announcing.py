"""Events of decisions and of background work: which are written, and which must not be lost (rows E-01 to E-08).

Between the texts in `store.events` and the recorder that writes. Notes for which a policy waits are never dropped; none is
counted together with others, because tools and policies look at each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import Kind, KubeError
from controllers.kube.events import Note as Written
from controllers.kube.events import reference
from controllers.store.events import APPLIED, Note, cleaned_up
from engine.model import Object, review_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from controllers.runtime.cluster_cache import ClusterCache

    from .context import LoopContext


def announce(context: LoopContext, notes: Iterable[Note]) -> None:
    """Hand notes to the recorder, except those that the settings leave out (rows E-04, E-08)."""
    actions = context.cache.configuration.success_event_actions
    for note in notes:
        if note.reason in context.options.omitted_events:
            continue
        if note.reason == APPLIED and actions and note.action not in actions:
            continue
        context.recorder.record(_written(note))


def wanted_by(context: LoopContext) -> Callable[[str], bool]:
    """Return the test whether an Event with a reason need be made: not one that would be dropped, which is counted instead."""
    recorder, omitted = context.recorder, context.options.omitted_events
    if not recorder.is_full or context.snapshot.names_events:
        return lambda _: True

    def is_wanted(reason: str) -> bool:
        if reason not in omitted:
            recorder.drop(reason)
        return False

    return is_wanted


def announce_success(context: LoopContext, notes: Iterable[Note]) -> None:
    """Hand notes about what went well to the recorder, where the settings ask for such."""
    if context.cache.configuration.success_events:
        announce(context, notes)


async def delete(
    context: LoopContext,
    kind: Kind,
    obj: Object,
    about: Mapping[str, str],
    *,
    propagation: str = "",
    says_failure: bool = True,
) -> bool:
    """Delete an object with its UID as the condition and write an Event; return whether it was there (row E-07).

    Raises KubeError, about which an Event is written first when `says_failure`.
    """
    try:
        if not await context.drop(kind, obj, propagation):
            return False
    except KubeError as error:
        if says_failure:
            announce(context, [cleaned_up(about, kind.typed(obj), error.message)])
        raise
    announce(context, [cleaned_up(about, kind.typed(obj))])
    return True


def awaited_in(cache: ClusterCache) -> Callable[[Object], bool]:
    """Return the test whether some rule is written for an Event: such a one is part of a policy's work."""

    def is_awaited(event: Object) -> bool:
        snapshot = cache.policies.snapshot
        if not snapshot.names_events:
            return False
        review = review_of(event)
        return any(
            "Event" in (rule.matcher.kinds or ()) and rule.matcher.applies(review)
            for compiled in snapshot.compiled.values()
            for rule in compiled.rules
        )

    return is_awaited


def _written(note: Note) -> Written:
    return Written(
        about=reference(note.about),
        reason=note.reason,
        message=note.message,
        action=note.action,
        type=note.type,
        controller=note.source,
        annotations=note.annotations,
        latest=note.latest,
    )
