"""Recordings: what a ClusterCache went through, one JSON line each, to be looked at again later, elsewhere, or by tests.

The first line says what was recorded; every other line is one change with its instant. Codes that still work never get into
a file: a journal is written with its unused codes masked, Secrets are not read at all.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TextIO

import orjson

from engine.errors import DocumentError, Location
from engine.fields import word
from engine.record import record
from kubectl_kpolicy.output.time_format import absolute, instant

from .cache import Change, ClusterCache, Problem, Trouble
from .codes import masked
from .resources import JOURNAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime, timedelta
    from pathlib import Path

    from engine.model import Object


VERSION: Final = 1
_UNUSED: Final = re.compile(r"^(\s*-\s*)([^\s-]+)\s*$", re.MULTILINE)


class Recorder:
    """Writes every change of a ClusterCache to a stream, until it is closed."""

    def __init__(
        self, world: ClusterCache, out: TextIO, now: Callable[[], datetime], name: str
    ) -> None:
        self._out = out
        self._now = now
        self._write({"kpolicy": "recording", "version": VERSION, "at": absolute(now()), "context": name})  # fmt: skip
        world.on_change(self.take)

    def take(self, change: Change) -> None:
        """Write one change."""
        line: dict[str, Any] = {"at": absolute(self._now()), "resource": change.resource}
        if change.problem is not None:
            line["problem"] = asdict(change.problem)
        elif change.is_synced:
            line["synced"] = True
        elif change.object is None:
            line["gone"] = change.key
        else:
            line["object"] = harmless(change.resource, change.object)
        self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        if not self._out.closed:
            self._out.write(orjson.dumps(line).decode() + "\n")
            self._out.flush()


def harmless(resource: str, obj: Object) -> Object:
    """Return an object as it may be written down: a journal without the codes that still work."""
    if resource != JOURNAL:
        return obj
    codes = _UNUSED.sub(lambda found: found[1] + masked(found[2]), word(obj, "data", "codes"))
    return {**obj, "data": {"codes": codes}}


@record
class Step:
    """One recorded change and its instant."""

    at: datetime
    change: dict[str, Any]


@record
class Recording:
    """A recording that was read: its name, beginning, end, and steps in order."""

    name: str
    began_at: datetime
    steps: tuple[Step, ...]

    @property
    def ended_at(self) -> datetime:
        """The instant of the last step."""
        return self.steps[-1].at if self.steps else self.began_at


def read_recording(path: Path) -> Recording:
    """Return a recording from its file; raises DocumentError with the line that is wrong, OSError."""
    lines = path.read_bytes().splitlines()
    head = _decoded(lines[0] if lines else b"", path, 1)
    began = instant(head.get("at"))
    if head.get("kpolicy") != "recording" or began is None:
        raise DocumentError("this is no recording", at=Location(str(path), 1), help="make one with `kubectl kpolicy tui --record FILE`")  # fmt: skip
    steps = [_step(line, path, number) for number, line in enumerate(lines[1:], 2) if line.strip()]
    return Recording(str(head.get("context") or ""), began, tuple(steps))


def _decoded(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DocumentError("not a line of JSON", at=Location(str(path), number)) from error
    if not isinstance(value, dict):
        raise DocumentError("not a JSON object", at=Location(str(path), number))
    return value


def _step(line: bytes, path: Path, number: int) -> Step:
    value = _decoded(line, path, number)
    at = instant(value.get("at"))
    if at is None or not isinstance(value.get("resource"), str):
        raise DocumentError(
            "a step has `at` and `resource`", at=Location(str(path), number), help="see the first lines of another recording"
        )  # fmt: skip
    return Step(at, value)


def apply_step(world: ClusterCache, step: Step) -> None:
    """Let a ClusterCache go through one step."""
    change, resource = step.change, str(step.change["resource"])
    if isinstance(problem := change.get("problem"), dict):
        trouble = str(problem.get("trouble"))
        known = Trouble(trouble) if trouble in set(Trouble) else Trouble.FAILED
        world.hindered(resource, Problem(known, word(problem, "message"), word(problem, "help")))
    elif change.get("synced"):
        world.synced(resource, step.at)
    elif isinstance(obj := change.get("object"), dict):
        world.put(resource, obj)
    elif isinstance(key := change.get("gone"), list) and len(key) == 3:
        world.remove(resource, (str(key[0]), str(key[1]), str(key[2])))


class ReplaySource:
    """A recording as a source. The clock stands at `at` (the end by default) and moves only when somebody moves it."""

    def __init__(self, recording: Recording, at: datetime | None = None) -> None:
        self.recording = recording
        self.world = ClusterCache()
        self.name = recording.name
        self._at = at or recording.ended_at

    def now(self) -> datetime:
        """Return the instant that is looked at."""
        return self._at

    async def start(self) -> None:
        """Fill the ClusterCache with what had happened until the instant."""
        self._fill(step for step in self.recording.steps if step.at <= self._at)

    async def refresh(self) -> None:
        """Do nothing: the past does not change."""

    async def close(self) -> None:
        """Do nothing: there is nothing to stop."""

    def move_to(self, at: datetime) -> None:
        """Look at another instant between beginning and end; going back begins the ClusterCache anew."""
        at = min(max(at, self.recording.began_at), self.recording.ended_at)
        before, self._at = self._at, at
        if at < before:
            self.world.clear()
            self._fill(step for step in self.recording.steps if step.at <= at)
        else:
            self._fill(step for step in self.recording.steps if before < step.at <= at)

    def move(self, length: timedelta) -> None:
        """Look at an instant later or (negative) earlier."""
        self.move_to(self._at + length)

    def step(self, by: int) -> bool:
        """Look at the next instant (1) at which something changed, or the one before (-1); tell whether there was one.

        Leases, which change every other second while nothing happens, are no reason to stop.
        """
        steps = self.recording.steps
        told = {step.at for step in steps if step.change["resource"] != "leases"}
        instants = sorted({self.recording.began_at, self.recording.ended_at, *told})
        later = [at for at in instants if at > self._at]
        earlier = [at for at in instants if at < self._at]
        if (by > 0 and not later) or (by < 0 and not earlier):
            return False
        self.move_to(later[0] if by > 0 else earlier[-1])
        return True

    def _fill(self, steps: Iterable[Step]) -> None:
        for step in steps:
            apply_step(self.world, step)
