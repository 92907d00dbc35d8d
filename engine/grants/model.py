"""Grants and grant policies as the engine holds them, read from the objects of an API server or of a file.

The CustomResourceDefinitions describe the same fields; whatever is stored before they were installed is still read here
with one clear error for a field that cannot mean anything.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.errors import PolicyError
from engine.fields import part
from engine.lang import duration, rfc3339
from engine.record import field, record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.model import Block, Object

T = TypeVar("T")
HOUR = timedelta(hours=1)
QUARTER = timedelta(minutes=15)
DAY = timedelta(days=1)


@record
class Approvers:
    """One level of approval: how many of these people must agree."""

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    count: int = 1


@record
class GrantPolicy:
    """Who may ask for exceptions to which rules, for how long, and who must agree.

    `policies` and `namespaces` are names with wildcards. No `users` and no `groups` among the requesters means everybody.
    `issued_for` is how long a code that somebody issues or agrees to may be good, `max_for` where it is not said.
    `max_objects` is how many live objects a wide request may reach; 0 is any number. An emergency needs no approval, is shorter, and is shown as one for ever.
    """

    name: str
    policies: tuple[str, ...] = ("*",)
    rules: tuple[str, ...] = ("*",)
    namespaces: tuple[str, ...] = ("*",)
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    levels: tuple[Approvers, ...] = ()
    max_for: timedelta = 4 * HOUR
    approval_for: timedelta = DAY
    min_reason: int = 10
    ticket: str = ""
    wildcards: bool = False
    max_open: int = 5
    max_uses: int = 0
    max_objects: int = 50
    cool_down_for: timedelta = timedelta()
    emergency_for: timedelta | None = None
    codes: str = "off"
    code_for: timedelta = QUARTER
    issued_for: timedelta | None = None
    strict_codes: bool = False


@record
class Decision:
    """What one person decided about a grant: approve, deny, withdraw, drop or revoke."""

    by: str
    verdict: str
    comment: str = ""
    groups: frozenset[str] = frozenset()


@record
class Grant:
    """A request for an exception, and what was decided about it so far.

    `target_names` may hold wildcards; `for_` counts from the start, which is the instant of the last approval or later.
    """

    namespace: str
    name: str
    uid: str
    requester: str
    requester_groups: frozenset[str]
    policy: str
    rules: tuple[str, ...]
    kind: str
    target: str
    selector: Block | None
    for_: timedelta
    reason: str = ""
    ticket: str = ""
    start_at: datetime | None = None
    uses: int = 0
    idle_for: timedelta | None = None
    emergency: bool = False
    extends: str = ""
    created_at: datetime | None = None
    decisions: tuple[Decision, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)


def parse_grant_policy(obj: Object) -> GrantPolicy:
    """Read a GrantPolicy; raises PolicyError for values that cannot be meant."""
    name = str(part(obj, "metadata").get("name", ""))
    spec = part(obj, "spec")
    who, limits = part(spec, "requesters"), part(spec, "limits")
    what = _Reader(f"grantpolicy/{name}")
    emergency = spec.get("emergency")
    given: dict[str, Any] = {
        "policies": _texts(spec.get("policies")) or ("*",),
        "rules": _texts(spec.get("rules")) or ("*",),
        "namespaces": _texts(spec.get("namespaces")) or ("*",),
        "users": frozenset(_texts(who.get("users"))),
        "groups": frozenset(_texts(who.get("groups"))),
        "levels": tuple(_approvers(one, what) for one in spec.get("approvers") or ()),
        "max_for": what.length(spec, "maxDuration"),
        "approval_for": what.length(spec, "approvalTimeout"),
        "min_reason": what.count(part(spec, "reason"), "minLength"),
        "ticket": part(spec, "ticket").get("pattern"),
        "wildcards": spec.get("wildcards"),
        "max_open": what.count(limits, "openPerUser"),
        "max_uses": what.count(limits, "uses"),
        "max_objects": what.count(limits, "objects"),
        "cool_down_for": what.length(limits, "coolDown"),
        "emergency_for": what.length(emergency, "maxDuration") or HOUR if emergency else None,
        "codes": part(spec, "codes").get("mode"),
        "code_for": what.length(part(spec, "codes"), "duration"),
        "issued_for": what.length(part(spec, "codes"), "maxDuration"),
        "strict_codes": part(spec, "codes").get("strict") is True,
    }
    return GrantPolicy(name, **{key: value for key, value in given.items() if value is not None})


def parse_grant(obj: Object) -> Grant:
    """Read a Grant; raises PolicyError where a length, an instant or a count cannot be read."""
    metadata, spec = part(obj, "metadata"), part(obj, "spec")
    target = part(spec, "target")
    name = str(metadata.get("name", ""))
    what = _Reader(f"grant/{name}")
    wanted = what.length(spec, "duration")
    if wanted is None:
        raise PolicyError(f"{what.where}: spec.duration is missing", help="say how long, as `4h`")
    return Grant(
        namespace=str(metadata.get("namespace", "")),
        name=name,
        uid=str(metadata.get("uid", "")),
        requester=str(spec.get("requester", "")),
        requester_groups=frozenset(_texts(spec.get("requesterGroups"))),
        policy=str(spec.get("policy", "")),
        rules=_texts(spec.get("rules")),
        kind=str(target.get("kind", "")),
        target=str(target.get("name", "")),
        selector=target.get("selector"),
        for_=wanted,
        reason=str(spec.get("reason", "")),
        ticket=str(spec.get("ticket", "")),
        start_at=what.instant(spec, "startAt"),
        uses=what.count(spec, "uses") or 0,
        idle_for=what.length(spec, "idle"),
        emergency=spec.get("emergency") is True,
        extends=str(spec.get("extends", "")),
        created_at=what.instant(metadata, "creationTimestamp"),
        decisions=tuple(_decision(one) for one in spec.get("decisions") or ()),
        status=part(obj, "status"),
    )


class _Reader:
    """Reads fields that are written as text, and says whose they are where they cannot be read."""

    def __init__(self, where: str) -> None:
        self.where = where

    def length(self, block: Block, key: str) -> timedelta | None:
        return self._read(block, key, length_of, "a length of time such as `4h` or `2d`")

    def instant(self, block: Block, key: str) -> datetime | None:
        form = "an instant such as `2026-01-31T17:00:00Z`"
        return self._read(block, key, rfc3339.read, form)

    def count(self, block: Block, key: str) -> int | None:
        value = block.get(key)
        if value is None or (type(value) is int and value >= 0):
            return value
        raise PolicyError(
            f"{self.where}: {key} is `{value}`", help="a whole number from 0 is needed"
        )

    def _read(self, block: Block, key: str, read: Callable[[str], T | None], form: str) -> T | None:
        value = block.get(key)
        if value in (None, ""):
            return None
        found = read(value) if isinstance(value, str) else None
        if found is None:
            raise PolicyError(f"{self.where}: {key} is `{value}`", help=f"{form} is needed")
        return found


def _approvers(block: Block, what: _Reader) -> Approvers:
    return Approvers(
        users=frozenset(_texts(block.get("users"))),
        groups=frozenset(_texts(block.get("groups"))),
        count=what.count(block, "count") or 1,
    )


def _decision(block: Block) -> Decision:
    return Decision(
        by=str(block.get("by", "")),
        verdict=str(block.get("verdict", "")),
        comment=str(block.get("comment", "")),
        groups=frozenset(_texts(block.get("groups"))),
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


# Lengths of time in grants and grant policies.

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def length_of(text: str) -> timedelta | None:
    """Return the length that `90m`, `4h`, `1d12h`, `1w` name; None for anything else and for what is not longer than nothing."""
    return duration.length(text) or None


def length_text(length: timedelta) -> str:
    """Return a length in whole seconds with the largest units first, as `length_of` reads it: `1d12h`."""
    left = int(length.total_seconds())
    parts = []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
