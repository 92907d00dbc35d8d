"""Annotations by which people hold back clean-ups: postponed, skipped, paused (design 8.15).

They stand on a cleanup policy or on an object that would be deleted. A value begins with what it says (an instant, or anything)
and goes on, after a blank or semicolon, with who said so and why. What cannot be read holds back, because deleting is
what cannot be undone. For pure decisions: objects and instants in, answers out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.cleanup.ttl import instant_of

if TYPE_CHECKING:
    from datetime import datetime

    from engine.model import Object

AFTER: Final = "kpolicy.io/cleanup-after"
"""Not before an instant."""

SKIP: Final = "kpolicy.io/cleanup-skip"
"""On a policy: not the runs until an instant. On an object: never."""

PAUSE: Final = "kpolicy.io/cleanup-pause"
"""Not while the annotation is there."""

_FIRST = re.compile(r"[\s;,]")


def is_held(obj: Object, now: datetime) -> bool:
    """Tell whether an object must stay for now, whatever would delete it."""
    annotations = _annotations(obj)
    if PAUSE in annotations or SKIP in annotations:
        return True
    return AFTER in annotations and ((after := _instant(annotations[AFTER])) is None or now < after)


def is_paused(policy: Object) -> bool:
    """Tell whether a cleanup policy rests until somebody changes it."""
    annotations = _annotations(policy)
    return PAUSE in annotations or any(
        name in annotations and _instant(annotations[name]) is None for name in (AFTER, SKIP)
    )


def postponed(policy: Object, run_at: datetime) -> datetime:
    """Return when a policy's run that is due at an instant takes place."""
    after = _instant(_annotations(policy).get(AFTER, ""))
    return run_at if after is None else max(run_at, after)


def is_skipped(policy: Object, run_at: datetime) -> bool:
    """Tell whether a policy's run that is due at an instant is left out."""
    until = _instant(_annotations(policy).get(SKIP, ""))
    return until is not None and run_at <= until


def _instant(value: str) -> datetime | None:
    return instant_of(_FIRST.split(value.strip(), maxsplit=1)[0])


def _annotations(obj: Object) -> dict[str, str]:
    found = (obj.get("metadata") or {}).get("annotations") or {}
    return {str(key): str(value) for key, value in found.items()}
