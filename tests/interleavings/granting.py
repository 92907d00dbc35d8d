"""A grant between its requester, those who decide, two controllers, a webhook and the clock; every decision is the engine's.

Two controllers may both take themselves for the leader, and each acts on what it read a while ago: reading, the trail, the
status and the exception are steps of their own. The webhook acts on the exception that it saw last. Names in decisions are
pinned by the API server; whether a decision counts is what the engine says.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from controllers.webhook.grants import NotGranted, check_granted
from engine.exceptions import compile_exception, covers
from engine.grants import (
    Circumstances,
    Facts,
    chosen_policy,
    exception_of,
    next_status,
    parse_grant,
    parse_grant_policy,
)
from engine.grants.cause import granted_by
from engine.grants.lifecycle import status_of
from engine.model import review_of
from engine.parse import parse_exception

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.grants import Grant, GrantStatus
    from engine.grants.cause import Granted
    from engine.model import Object

NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
TICK: Final = timedelta(hours=1)
ROBOT: Final = "system:serviceaccount:shop:robot"
REQUESTER: Final = "ada"
RULE: Final = ("no-host", "host-pid")
_POD: Final = review_of({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}})  # fmt: skip


Spec = tuple[tuple[str, Any], ...]
"""Fields of a request beside the usual ones."""


class Waiver(NamedTuple):
    """The stored exception, by its two ends as they are written."""

    annotation: str
    label: str


class Controller(NamedTuple):
    """What a controller read, at which version, and how far it is with what follows from it."""

    phase: str = "idle"
    version: int = 0
    decisions: tuple[tuple[str, str], ...] = ()
    status: tuple[tuple[str, str], ...] = ()
    wanted: tuple[tuple[str, str], ...] = ()


class Passing(NamedTuple):
    """A request that a webhook has judged and not let pass yet: by which exception, with which use of it."""

    exception: Waiver
    number: int


class World(NamedTuple):
    """Everything that there is; `end` is the nearest one that a status ever named, `deleted` an exception that was once there."""

    now: int = 0
    version: int = 1
    has_policy: bool = True
    decisions: tuple[tuple[str, str], ...] = ()
    status: tuple[tuple[str, str], ...] = ()
    exception: Waiver | None = None
    seen: Waiver | None = None
    controllers: tuple[Controller, ...] = ()
    trail: frozenset[str] = frozenset()
    deleted: Waiver | None = None
    uses: frozenset[str] = frozenset()
    used_at: int = 0
    passing: tuple[Passing, ...] = ()
    passed: int = 0
    end: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is asked for under which policy, who acts, and how controllers write."""

    name: str
    spec: Spec = ()
    levels: tuple[tuple[tuple[str, ...], int], ...] = ((("bob",), 1),)
    votes: tuple[tuple[str, str], ...] = ()
    most_decisions: int = 3
    last_tick: int = 5
    controllers: int = 1
    ahead: int = 0
    requests: int = 1
    begins: tuple[str, ...] = ()
    edits: bool = False
    policy_goes: bool = False
    writes_blindly: bool = False
    takes_blindly: bool = False
    records_last: bool = False


@dataclass(slots=True)
class Granting:
    """See `search.Model`."""

    setting: Setting
    name: str = field(init=False)
    _policy: Any = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.setting.name
        spec = {
            "approvers": [
                {"users": list(users), "count": count} for users, count in self.setting.levels
            ],
            "maxDuration": "2h",
            "approvalTimeout": "3h",
            "emergency": {"maxDuration": "2h"}
            if dict(self.setting.spec).get("emergency")
            else None,
        }
        self._policy = parse_grant_policy({"metadata": {"name": "default"}, "spec": spec})

    def start(self) -> World:
        """Return the world just after a request was made, or after an approval and the steps that a setting begins with."""
        decisions = (("bob", "approve"),) if self.setting.begins else ()
        world = World(decisions=decisions, controllers=(Controller(),) * self.setting.controllers)
        for label in self.setting.begins:
            world = dict(self.steps(world))[label]
        return world

    def steps(self, world: World) -> Iterator[tuple[str, World]]:
        """Yield what anybody may do next."""
        yield from self._of_people(world)
        yield from self._of_time(world)
        for number, controller in enumerate(world.controllers):
            label, after = self._of_controller(world, number, controller)
            if after != world:
                yield f"controller {number} {label}", after
        yield from self._of_webhook(world)

    # Who acts.

    def _of_people(self, world: World) -> Iterator[tuple[str, World]]:
        if len(world.decisions) < self.setting.most_decisions:
            for by, verdict in self.setting.votes:
                made = (*world.decisions, (by, verdict))
                yield f"{by}: {verdict}", world._replace(decisions=made, version=world.version + 1)
        if self.setting.policy_goes and world.has_policy:
            yield "the grant policy is deleted", world._replace(has_policy=False)
        if self.setting.edits and world.exception is not None:
            sooner = _text(self._at(world.now))
            if sooner < world.exception.annotation:
                yield "somebody shortens the exception", world._replace(exception=world.exception._replace(annotation=sooner))  # fmt: skip
            yield "somebody deletes the exception", world._replace(exception=None, deleted=world.exception)  # fmt: skip
        if self.setting.edits and world.exception is None and world.deleted is not None:
            yield "somebody brings the exception back", self._made(world, world.deleted)

    def _of_time(self, world: World) -> Iterator[tuple[str, World]]:
        if world.now < self.setting.last_tick:
            yield f"it is {world.now + 1} h", world._replace(now=world.now + 1)

    def _of_controller(self, world: World, number: int, one: Controller) -> tuple[str, World]:
        """Take a controller's next step: read, record, write the status, match the exception."""
        if one.phase == "idle":
            return self._read(world, number)
        following = {"record": self._record, "write": self._write, "match": self._match}
        return following[one.phase](world, number, one)

    def _then(self, phase: str, one: Controller) -> Controller:
        """Return a controller that goes on after a phase."""
        order = ("write", "match", "record") if self.setting.records_last else ("record", "write", "match")  # fmt: skip
        place = order.index(phase) + 1
        return one._replace(phase=order[place]) if place < len(order) else Controller()

    def _read(self, world: World, number: int) -> tuple[str, World]:
        """Read the grant; what follows from it is worked out at once, as a look does."""
        grant = _grant(self.setting.spec, world.decisions, world.status)
        now = self._at(world.now + (self.setting.ahead if number else 0))
        policy, refusals = (self._policy, ()) if world.has_policy else (None, ())
        if not world.status:
            policy, refusals = chosen_policy(grant, [self._policy] if world.has_policy else [], Circumstances(now))  # fmt: skip
        used_at = self._at(world.used_at) if world.uses else None
        facts = Facts(now, len(world.uses), used_at, refusals)
        wanted = _fields(next_status(grant, policy, facts))
        changes = wanted != _fields(status_of(grant))
        first = "write" if self.setting.records_last else "record"
        read = Controller(
            first if changes else "match", world.version, world.decisions, world.status, wanted
        )
        return "reads", self._with(world, number, read)

    def _record(self, world: World, number: int, one: Controller) -> tuple[str, World]:
        said = dict(one.wanted)["state"]
        made = self._with(world, number, self._then("record", one))
        return f"records {said}", made._replace(trail=made.trail | {said})

    def _write(self, world: World, number: int, one: Controller) -> tuple[str, World]:
        """Write the status, only over what was read; else start again."""
        if world.version != one.version and not self.setting.writes_blindly:
            return "is refused by a conflict", self._with(world, number, Controller())
        end = dict(one.wanted).get("expiresAt", "")
        ends = [text for text in (world.end, end) if text]
        made = self._with(world, number, self._then("write", one))
        state = dict(one.wanted)["state"]
        return f"writes {state}", made._replace(status=one.wanted, version=world.version + 1, end=min(ends, default=""))  # fmt: skip

    def _match(self, world: World, number: int, one: Controller) -> tuple[str, World]:
        made = self._with(world, number, self._then("match", one))
        grant = _grant(self.setting.spec, one.decisions, one.wanted)
        status = status_of(grant)
        if status.state == "active" and status.expires_at is not None and world.exception is None:
            return "makes the exception", self._made(made, _exception(grant, status))
        if status.is_final and world.exception is not None:
            return "deletes the exception", made._replace(exception=None, deleted=world.exception)
        return "is done", made

    def _made(self, world: World, exception: Waiver) -> World:
        """Create the exception, where our own admission lets whoever does so."""
        granted = _grant_object(self.setting.spec, world.decisions, world.status)
        lets = _is_let(_object(self.setting.spec, exception).obj, granted)
        return world._replace(exception=exception) if lets else world

    def _of_webhook(self, world: World) -> Iterator[tuple[str, World]]:
        if world.seen != world.exception:
            yield "the webhook sees the exception as it is", world._replace(seen=world.exception)
        if len(world.passing) < self.setting.requests:
            seen = world.seen
            if seen is not None and self._covers(seen, world.now):
                judged = Passing(seen, self._free(world, seen))
                yield "a request is judged", world._replace(passing=(*world.passing, judged))
        for place, one in enumerate(world.passing):
            rest = world._replace(passing=world.passing[:place] + world.passing[place + 1 :])
            yield from self._of_request(world, rest, place, one)

    def _of_request(
        self, world: World, rest: World, place: int, one: Passing
    ) -> Iterator[tuple[str, World]]:
        """Let a request pass; with a limited grant only once it has a use of its own, which may be taken meanwhile."""
        granted = self._granted(one.exception)
        if not granted.is_limited:
            yield "the request passes", rest._replace(passed=world.passed + 1)
            return
        if not one.number:
            yield "the request finds no use left", rest
            return
        name = granted.place(one.number)
        if name in world.uses and not self.setting.takes_blindly:
            again = one._replace(number=self._free(world, one.exception))
            others = list(world.passing)
            others[place] = again
            yield f"use {one.number} is somebody else's", world._replace(passing=tuple(others))
            return
        taken = rest._replace(uses=world.uses | {name}, used_at=world.now)
        yield f"the request takes use {one.number} and passes", taken._replace(passed=world.passed + 1)  # fmt: skip
        yield f"the request takes use {one.number} and is lost", taken

    def _free(self, world: World, exception: Waiver) -> int:
        """Return the first use that nobody has, 0 where there is none or where uses are not limited."""
        granted = self._granted(exception)
        numbers = range(1, granted.most + 1)
        return next((one for one in numbers if granted.place(one) not in world.uses), 0)

    # What the engine is asked.

    def _covers(self, exception: Waiver, now: int) -> bool:
        return _is_covered(_object(self.setting.spec, exception), self._at(now))

    def _granted(self, exception: Waiver) -> Granted:
        granted = granted_by(_parsed(_object(self.setting.spec, exception)))
        assert granted is not None, "it is a grant's"
        return granted

    def _with(self, world: World, number: int, one: Controller) -> World:
        controllers = list(world.controllers)
        controllers[number] = one
        return world._replace(controllers=tuple(controllers))

    def _at(self, tick: int) -> datetime:
        return NOON + tick * TICK

    # What must hold.

    def broken(self, step: str, before: World, after: World) -> str:
        """See `search.Model`."""
        state = dict(before.status).get("state", "draft")
        if after.status != before.status and state in _OVER and dict(after.status)["state"] != state:  # fmt: skip
            return f"a grant that is {state} stays so"
        ends = dict(after.status).get("expiresAt", "")
        if ends and before.end and ends > before.end:
            return "the end only comes nearer: the status names a later one"
        if after.exception and after.end and after.exception.annotation > after.end:
            return "the end only comes nearer: the exception has a later one"
        if len(after.passing) > len(before.passing) and _text(self._at(before.now)) >= before.end:
            return "the end only comes nearer: a request is let pass after it"
        if after.exception and not before.exception and state != "active":
            return f"the end only comes nearer: an exception is made for a grant that is {state}"
        return self._broken_by_passing(before, after) if after.passed > before.passed else ""

    def _broken_by_passing(self, before: World, after: World) -> str:
        most = dict(self.setting.spec).get("uses", 0)
        if most and after.passed > most:
            return f"a grant of {most} uses is used no more often"
        if most and after.passed > len(after.uses):
            return "nothing passes unrecorded: there is no record of a use"
        if "active" not in after.trail:
            return "nothing passes unrecorded: the trail does not know that the grant runs"
        if not self._is_agreed(before):
            return "four eyes: nobody but the requester agreed"
        return ""

    def _is_agreed(self, world: World) -> bool:
        """Tell, by trying all placements, whether each level has its people among those who agreed."""
        if dict(self.setting.spec).get("emergency"):
            return True
        people = {by for by, verdict in world.decisions if verdict == "approve"}
        people -= {REQUESTER, ROBOT}
        seats = [users for users, count in self.setting.levels for _ in range(count)]
        return any(
            all(person in users for person, users in zip(order, seats, strict=True))
            for order in itertools.permutations(people, len(seats))
        )


_OVER: Final = frozenset({"expired", "revoked", "dropped", "idle-expired", "exhausted", "denied", "withdrawn", "timed-out"})  # fmt: skip


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _fields(status: GrantStatus) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(status.fields().items()))


@cache
def _grant(
    spec: Spec, decisions: tuple[tuple[str, str], ...], status: tuple[tuple[str, str], ...]
) -> Grant:
    return parse_grant(_grant_object(spec, decisions, status))


def _grant_object(
    spec: Spec, decisions: tuple[tuple[str, str], ...], status: tuple[tuple[str, str], ...]
) -> Any:
    metadata = {"name": "g", "namespace": "shop", "uid": "u-1", "creationTimestamp": _text(NOON)}
    said = {
        "requester": REQUESTER,
        "policy": RULE[0],
        "rules": [RULE[1]],
        "target": {"kind": "Pod", "name": "web"},
        "duration": "2h",
        "reason": "the image is rebuilt on Monday",
        **dict(spec),
        "decisions": [{"by": by, "verdict": verdict} for by, verdict in decisions],
    }
    return {"metadata": metadata, "spec": said, "status": dict(status)}


class _Server:
    """A client that knows one grant."""

    def __init__(self, grant: Object) -> None:
        self._grant = grant

    async def get(self, *_: object) -> Object:
        return self._grant


def _is_let(exception: Object, grant: Object) -> bool:
    """Tell whether our admission lets an exception of a grant be made; nothing is waited for."""
    asked = check_granted(_Server(grant), exception)  # type: ignore[arg-type] - one method is enough
    try:
        asked.send(None)
    except StopIteration:
        return True
    except NotGranted:
        return False
    raise AssertionError("the check waits")


def _exception(grant: Grant, status: GrantStatus) -> Waiver:
    assert status.expires_at is not None, "an active grant has an end"
    metadata = exception_of(grant, status.expires_at)["metadata"]
    return Waiver(metadata["annotations"]["kpolicy.io/expires-at"], metadata["labels"]["cleanup.kyverno.io/ttl"])  # fmt: skip


@cache
def _object(spec: Spec, exception: Waiver) -> Any:
    """Return the exception as it is stored."""
    made = exception_of(_grant(spec, (), ()), NOON)
    made["metadata"]["annotations"]["kpolicy.io/expires-at"] = exception.annotation
    made["metadata"]["labels"]["cleanup.kyverno.io/ttl"] = exception.label
    return _Stored(made)


class _Stored:
    """An object that can be a key: two are the same only where they are one."""

    def __init__(self, obj: Object) -> None:
        self.obj = obj


@cache
def _parsed(stored: _Stored) -> Any:
    return parse_exception(stored.obj)


def forget() -> None:
    """Forget what was worked out, because what works it out was changed."""
    for one in (_grant, _object, _parsed):
        one.cache_clear()


def _is_covered(stored: _Stored, now: datetime) -> bool:
    return covers(compile_exception(_parsed(stored)), *RULE, _POD, now, lambda _: True)
