"""One-time codes between those who ask, the API server's repetitions, replicas that die, and the clock.

Everybody knows every code that was ever offered. A request goes through review, the record of its use and the answer as steps
of their own; the API server may send it again at any time, lose it, or store it late. Whether a text is a code, what its use is
called and whether a use is of the same attempt is what the product says.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from controllers.store import uses as stored_uses
from controllers.store.uses import SAME_ATTEMPT, CodeUseRecord
from engine.codes import Binding, Key, body_digest, minting, slot_of, spelling, violation_of

if TYPE_CHECKING:
    from collections.abc import Iterator

NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
SLOT: Final = timedelta(minutes=10)
POLICY: Final = "no-host"
_KEYS: Final = (Key(1, b"first" * 8), Key(2, b"second" * 8))


class Wanted(NamedTuple):
    """What a code is offered for: who, with which body, under which text of the policy."""

    user: str
    body: str
    policy: int


class Use(NamedTuple):
    """A use as it is recorded."""

    name: str
    user: str
    uid: int
    body: str
    at: int


class Request(NamedTuple):
    """A request under way; `found` is its code as a replica last took it for good, at an instant, under a policy."""

    user: str
    uid: int
    body: str
    code: str
    phase: str = "sent"
    found: str = ""
    judged_at: int = 0
    policy: int = 0


class World(NamedTuple):
    """Everything that there is: time in steps of the setting, codes ever offered, uses, requests and what is stored.

    `transitions` are the codes by which something wrong was stored, and `broken` the promise that this broke.
    """

    now: int = 0
    keys: tuple[int, ...] = (0,)
    policy: int = 0
    codes: tuple[tuple[str, Wanted, int], ...] = ()
    uses: tuple[Use, ...] = ()
    requests: tuple[Request, ...] = ()
    next_uid: int = 0
    stored: str = ""
    transitions: tuple[str, ...] = ()
    broken: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """Who asks for what, how time goes, and how replicas take codes."""

    name: str
    users: tuple[str, ...] = ("ada",)
    bodies: tuple[str, ...] = ("x",)
    operation: str = "CREATE"
    tick: timedelta = SLOT
    last_tick: int = 0
    most_codes: int = 1
    most_requests: int = 2
    most_sent: int = 3
    spelling: bool = False
    rotates: bool = False
    edits_policy: bool = False
    looks_first: bool = False
    gives_back: bool = False


@dataclass(slots=True)
class Redeeming:
    """See `search.Model`."""

    setting: Setting
    name: str = field(init=False)
    _verified: dict[Any, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = self.setting.name

    def start(self) -> World:
        """Return the world in which nobody has a code; what is updated is there and fine."""
        return World(stored="fine" if self._updates else "", next_uid=1 if self._updates else 0)

    def steps(self, world: World) -> Iterator[tuple[str, World]]:
        """Yield what anybody may do next."""
        yield from self._of_people(world)
        yield from self._of_time(world)
        for place, one in enumerate(world.requests):
            rest = world.requests[:place] + world.requests[place + 1 :]
            for label, change in self._of_request(world, one, rest):
                yield f"request {one.user}/{one.uid}/{one.body}: {label}", change

    # Who acts.

    def _of_people(self, world: World) -> Iterator[tuple[str, World]]:
        if len(world.codes) < self.setting.most_codes:
            for user in self.setting.users:
                for body in self.setting.bodies:
                    code = self._offered(world, Wanted(user, body, world.policy))
                    if code not in {one for one, _, _ in world.codes}:
                        told = (code, Wanted(user, body, world.policy), world.now)
                        yield f"{user} is offered a code for {body}", world._replace(codes=(*world.codes, told))  # fmt: skip
        if len(world.requests) < self.setting.most_requests and world.next_uid < self.setting.most_sent:  # fmt: skip
            yield from self._sent(world)
        if world.stored not in ("", "fine"):
            gone = "fine" if self._updates else ""
            yield "the object is set right" if gone else "the object is deleted", world._replace(stored=gone)  # fmt: skip

    def _sent(self, world: World) -> Iterator[tuple[str, World]]:
        uid = 0 if self._updates else world.next_uid
        for user in self.setting.users:
            for body in self.setting.bodies:
                for number, (code, _, _) in enumerate(world.codes):
                    for written in (spelling.shown(code), code.lower()) if self.setting.spelling else (code,):  # fmt: skip
                        made = Request(user, uid, body, written)
                        if made not in world.requests:
                            label = f"{user} sends {body} with code {number} as {written[:5]}…"
                            yield label, world._replace(requests=(*world.requests, made), next_uid=world.next_uid + 1)  # fmt: skip

    def _of_time(self, world: World) -> Iterator[tuple[str, World]]:
        if world.now < self.setting.last_tick:
            yield "time passes", world._replace(now=world.now + 1)
        if self.setting.rotates and world.keys != (1,):
            yield "a key is rotated", world._replace(keys=(1, 0) if world.keys == (0,) else (1,))
        if self.setting.edits_policy and not world.policy:
            yield "the policy is edited", world._replace(policy=1)
        if self.setting.gives_back:
            for use in world.uses:
                if world.stored != use.body:
                    kept = tuple(one for one in world.uses if one != use)
                    yield "a use without an object is given back", world._replace(uses=kept)

    def _of_request(
        self, world: World, one: Request, rest: tuple[Request, ...]
    ) -> Iterator[tuple[str, World]]:
        if one.phase == "sent":
            code = self._good(world, one)
            if code is None:
                yield "is refused", world._replace(requests=rest)
            elif self.setting.looks_first:
                yield from self._looked(world, self._judged(world, one, code), rest)
            else:
                yield "its code is good", world._replace(requests=(*rest, self._judged(world, one, code)))  # fmt: skip
        elif one.phase in ("judged", "free"):
            yield from self._take(world, one, rest)
        else:
            if not world.stored or (self._updates and world.stored != one.body):
                yield "is stored", self._stored(world, one, rest)
            yield (
                "is sent again by the API server",
                world._replace(requests=(*rest, one._replace(phase="sent"))),
            )
            yield "is refused by another webhook", world._replace(requests=rest)

    def _take(
        self, world: World, one: Request, rest: tuple[Request, ...]
    ) -> Iterator[tuple[str, World]]:
        """Create the record of a use where there is none; the replica may die before it answers."""
        attempt = self._attempt(world, one)
        before = next((use for use in world.uses if use.name == attempt.name), None)
        made = world
        if before is None or one.phase == "free":
            use = Use(attempt.name, one.user, one.uid, one.body, world.now)
            made = world._replace(uses=(*world.uses, use))
        elif not stored_uses.is_same(attempt, self._spec(before)):
            yield "finds its code used", world._replace(requests=rest)
            return
        yield "has its code", made._replace(requests=(*rest, one._replace(phase="allowed")))
        yield "has its code and is not answered", made._replace(requests=rest)
        yield "has its code, and is sent again for want of an answer", made._replace(requests=(*rest, one._replace(phase="sent")))  # fmt: skip

    def _looked(
        self, world: World, one: Request, rest: tuple[Request, ...]
    ) -> Iterator[tuple[str, World]]:
        """Look whether a code is free and take that for granted: what must not be done."""
        if all(use.name != minting.use_name(one.found) for use in world.uses):
            yield "its code is good and free", world._replace(requests=(*rest, one._replace(phase="free")))  # fmt: skip
        else:
            yield "finds its code used", world._replace(requests=rest)

    def _judged(self, world: World, one: Request, code: str) -> Request:
        return one._replace(phase="judged", found=code, judged_at=world.now, policy=world.policy)

    def _stored(self, world: World, one: Request, rest: tuple[Request, ...]) -> World:
        code = minting.canonical(one.code) or ""
        seen = tuple(sorted((*world.transitions, code)))
        broken = self._broken_by(world, one, code)
        return world._replace(requests=rest, stored=one.body, transitions=seen, broken=broken)

    # What the product is asked.

    @property
    def _updates(self) -> bool:
        return self.setting.operation == "UPDATE"

    def _at(self, tick: int) -> datetime:
        return NOON + tick * self.setting.tick

    def _offered(self, world: World, wanted: Wanted) -> str:
        """Return the first code of this slot that was not used."""
        used, slot = {use.name for use in world.uses}, slot_of(self._at(world.now), SLOT)
        codes = (minting.mint(_KEYS[world.keys[0]], self._binding(wanted), slot, number) for number in range(minting.MAX_NUMBER))  # fmt: skip
        return next(code for code in codes if minting.use_name(code) not in used)

    def _good(self, world: World, one: Request) -> str | None:
        wanted = Wanted(one.user, one.body, world.policy)
        asked = (world.keys, wanted, one.code, world.now)
        if asked not in self._verified:
            keys, slot = [_KEYS[key] for key in world.keys], slot_of(self._at(world.now), SLOT)
            self._verified[asked] = minting.verify(keys, self._binding(wanted), one.code, slot)
        return self._verified[asked]

    def _binding(self, wanted: Wanted) -> Binding:
        said = {
            "rules": ("host-pid",),
            "violation": violation_of(_object(wanted.body), [("host-pid", "/spec/hostPID")]),
            "policy_hash": str(wanted.policy),
            "operation": self.setting.operation,
            "object_name": "web",
            "username": wanted.user,
        }
        return Binding(**{"object_uid": "", **{one.name: "" for one in fields(Binding)}, **said})

    def _attempt(self, world: World, one: Request) -> CodeUseRecord:
        return CodeUseRecord(
            name=minting.use_name(one.found),
            user=one.user,
            policy=POLICY,
            rules=("host-pid",),
            operation=self.setting.operation,
            target={"uid": f"object-{one.uid}"},
            fingerprint=body_digest(_object(one.body)),
            source="minted",
            at=self._at(world.now),
        )

    def _spec(self, use: Use) -> dict[str, Any]:
        attempt = self._attempt(World(), Request(use.user, use.uid, use.body, ""))
        document = stored_uses.use_document(attempt, "kyverno", b"key")
        return {**document["spec"], "usedAt": self._at(use.at).strftime("%Y-%m-%dT%H:%M:%SZ")}

    # What must hold.

    def broken(self, step: str, before: World, after: World) -> str:
        """See `search.Model`."""
        return after.broken

    def _broken_by(self, world: World, one: Request, code: str) -> str:
        """Return the promise that is broken when a request is stored."""
        offered = next((told for told in world.codes if told[0] == code), None)
        if offered is None or offered[1][:2] != (one.user, one.body):
            return "a code lets nothing pass but what it was offered for"
        if offered[1].policy != one.policy:
            return "a code is void once its policy was edited"
        if self._at(one.judged_at) >= _end_of(self._at(offered[2])):
            return "a code ends with the slot after its own"
        uses = [use for use in world.uses if (use.user, use.uid, use.body) == (one.user, one.uid, one.body)]  # fmt: skip
        if not uses:
            return "nothing passes unrecorded: there is no use of what is stored"
        used_at = self._at(min(use.at for use in uses))
        is_repeated = self._updates and self._at(one.judged_at) - used_at <= SAME_ATTEMPT
        return "a code is used at most once" if code in world.transitions and not is_repeated else ""  # fmt: skip


def _end_of(at: datetime) -> datetime:
    """Return when a code that was offered at an instant ends: after its slot and another one, counted from the epoch."""
    seconds = SLOT.total_seconds()
    return datetime.fromtimestamp((at.timestamp() // seconds + 2) * seconds, UTC)


def _object(body: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"hostPID": True, "image": body}}  # fmt: skip
