"""Annotations by which people hold back clean-ups: postponed, skipped, paused.

They stand on a cleanup policy or on an object that would be deleted. A value begins with what it says (an instant, or anything)
and goes on, after a blank or semicolon, with who said so and why. What cannot be read holds back, because deleting is
what cannot be undone. The one place that decides, for the controllers, the command line and the console.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from engine import vocabulary
from engine.fields import part
from engine.lang import rfc3339
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from engine.model import Object


_FIRST: Final = re.compile(r"[\s;,]")


class HoldState(StrEnum):
    """How a clean-up is held back; the values are the words that people read."""

    PAUSED = "paused"
    SKIPPED = "skip"
    POSTPONED = "postponed"


@record
class Hold:
    """What keeps a clean-up from happening; without `until` it lasts until somebody changes the annotation.

    `is_unreadable` says that it lasts because its instant cannot be read.
    """

    state: HoldState
    until: datetime | None = None
    is_unreadable: bool = False

    @property
    def reason(self) -> str:
        """Why an object stays, in words."""
        why = ": the instant of the annotation cannot be read" if self.is_unreadable else ""
        return (
            f"its clean-up is {'skipped' if self.state is HoldState.SKIPPED else self.state}{why}"
        )


def hold_on_object(obj: Object, now: datetime) -> Hold | None:
    """Return what keeps an object now, whatever would delete it: a policy or its own label."""
    annotations = _annotations(obj)
    if vocabulary.CLEANUP_PAUSE in annotations:
        return Hold(HoldState.PAUSED)
    if vocabulary.CLEANUP_SKIP in annotations:
        return Hold(HoldState.SKIPPED)
    return _postponement(annotations, now)


def hold_on_run(policy: Object, run_at: datetime | None, now: datetime) -> Hold | None:
    """Return what keeps a policy from its run that is due at `run_at`, None where nobody knows when, as seen `now`."""
    annotations = _annotations(policy)
    if vocabulary.CLEANUP_PAUSE in annotations:
        return Hold(HoldState.PAUSED)
    postponement = _postponement(annotations, now)
    if postponement is not None and postponement.until is None:
        return postponement
    if vocabulary.CLEANUP_SKIP in annotations:
        until = _instant(annotations[vocabulary.CLEANUP_SKIP])
        if until is None:
            return Hold(HoldState.SKIPPED, is_unreadable=True)
        if run_at is None or run_at <= until:
            return Hold(HoldState.SKIPPED, until)
    return postponement


def takes_place(held: Object, due_at: datetime) -> datetime:
    """Return when a clean-up that is due at an instant takes place, postponed or not."""
    after = _instant(_annotations(held).get(vocabulary.CLEANUP_AFTER, ""))
    return due_at if after is None else max(due_at, after)


def _postponement(annotations: Mapping[str, str], now: datetime) -> Hold | None:
    if vocabulary.CLEANUP_AFTER not in annotations:
        return None
    after = _instant(annotations[vocabulary.CLEANUP_AFTER])
    if after is None:
        return Hold(HoldState.POSTPONED, is_unreadable=True)
    return Hold(HoldState.POSTPONED, after) if now < after else None


def _instant(value: str) -> datetime | None:
    return rfc3339.read(_FIRST.split(value.strip(), maxsplit=1)[0])


def _annotations(obj: Object) -> Mapping[str, str]:
    return {str(k): str(v) for k, v in part(obj, "metadata", "annotations").items()}
