"""Kyverno's functions on time and chance: `time.now()`, `time.truncate`, `time.toCron`, `random()`.

The instant and the stream of chance are given by the caller, so that an evaluation gives the same twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang import gotime
from engine.lang.cel.values import Duration, Timestamp

from .cluster import both_cases
from .registry import Library

if TYPE_CHECKING:
    from engine.lang.cel.env import CelEnv

LIBRARY: Final = Library(cost=60)
_DEFAULT_PATTERN: Final = "[0-9a-z]{8}"


@LIBRARY.add(*both_cases("time.Now() -> timestamp"), env=True)
def _now(env: CelEnv) -> Timestamp:
    return Timestamp(gotime.from_datetime(env.now).ns)


@LIBRARY.add(*both_cases("time.Truncate(timestamp, duration) -> timestamp"))
def _truncate(moment: Timestamp, span: Duration) -> Timestamp:
    return Timestamp(gotime.Instant(moment.ns).truncated(span.ns).ns)


@LIBRARY.add(*both_cases("time.ToCron(timestamp) -> string"))
def _to_cron(moment: Timestamp) -> str:
    at = gotime.Instant(moment.ns).clock
    return f"{at.minute} {at.hour} {at.day} {at.month} {at.weekday}"


@LIBRARY.add("random() -> string", "random(string) -> string", env=True)
def _random(env: CelEnv, pattern: str = _DEFAULT_PATTERN) -> str:
    from engine.lang.jmes import Env
    from engine.lang.jmes.samples import sample

    text = sample(pattern, Env(chance=env.chance))
    env.charge(len(text))
    return text
