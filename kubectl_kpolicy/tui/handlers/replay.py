"""Moving through the time of a recording: change by change, by minutes, to an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from engine.errors import EngineError
from kubectl_kpolicy.cluster.recording import ReplaySource
from kubectl_kpolicy.output.time_format import absolute, instant, length_of, span

if TYPE_CHECKING:
    from kubectl_kpolicy.tui.app import Console

_FAR = timedelta(minutes=5)
_LIVE = (
    "time moves by itself here; a recording lets you move it: `kubectl kpolicy tui --replay FILE`"
)


def _past(app: Console) -> ReplaySource | None:
    """Return the recording that is looked at; say so where it is a live cluster."""
    if isinstance(app.source, ReplaySource):
        return app.source
    app.say(_LIVE, "yellow")
    return None


def _moved(app: Console, past: ReplaySource) -> None:
    """Draw what was there at the new instant; what depends on the time is made anew."""
    for view in app.views.values():
        view.state.outdate()
    app.say(_said(past))
    app.draw()


def _said(past: ReplaySource) -> str:
    made = past.recording
    since, length = past.now() - made.began_at, made.ended_at - made.began_at
    return (
        f"{absolute(past.now())}, {span(since.total_seconds())} of {span(length.total_seconds())}"
    )


def step(by: int, app: Console) -> None:
    """Go to the change before or after."""
    past = _past(app)
    if past is None:
        return
    if past.step(by):
        _moved(app, past)
    else:
        app.say("nothing was recorded after this" if by > 0 else "the recording begins here")


def move(sign: int, app: Console) -> None:
    """Go five minutes back or on."""
    past = _past(app)
    if past is not None:
        past.move(sign * _FAR)
        _moved(app, past)


def at(app: Console, word: str) -> None:
    """Look at an instant: `start`, `end`, `12:04`, RFC 3339, or a length from now such as `+5m`; raises EngineError."""
    past = _past(app)
    if past is not None:
        past.move_to(meant(word.strip(), past))
        _moved(app, past)


def meant(word: str, past: ReplaySource) -> datetime:
    """Return the instant that a word means in a recording; raises EngineError."""
    made = past.recording
    if word in ("start", "end"):
        return made.began_at if word == "start" else made.ended_at
    length = length_of(word[1:]) if word[:1] in ("+", "-") else None
    if length is not None:
        return past.now() + (length if word.startswith("+") else -length)
    found = instant(word) or _clock(word, past.now())
    if found is None:
        raise EngineError(f"cannot read `{word}` as an instant", help="write start, end, +5m, -30s, 12:04:31 or 2026-11-21T10:18:00Z")  # fmt: skip
    return found


def _clock(word: str, now: datetime) -> datetime | None:
    """Return a time of the day (UTC) on the day that is looked at."""
    parts = word.split(":")
    if len(parts) not in (2, 3) or not all(one.isascii() and one.isdigit() for one in parts):
        return None
    hour, minute, second = (*map(int, parts), 0)[:3]
    if hour > 23 or minute > 59 or second > 59:
        return None
    return now.astimezone(UTC).replace(hour=hour, minute=minute, second=second, microsecond=0)
