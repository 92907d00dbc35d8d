"""Asking for a grant: the draft that a form fills in, what is required, how far it reaches, and where it is handed in.

`ReportDesk` answers from what was read anyway, so that a form works on a recording and on a cluster without kpolicy's
controllers; handing in is for whoever can (`submit`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from engine.errors import EngineError
from engine.grants.blocks import read_block_id
from engine.lang import wildcard
from engine.record import record, replace
from kubectl_kpolicy.cluster.cache import items, part, word
from kubectl_kpolicy.cluster.time_format import length_of, span
from kubectl_kpolicy.cluster.violations import all_rows, is_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from datetime import timedelta

    from engine.model import Object
    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.cluster.rows import Row

_USUAL_LONGEST = "4h"
_LIMITS = {"openPerUser": "open at a time", "uses": "uses at most", "coolDown": "between two"}
LEAST_REASON = 10
"""Characters of a reason where no GrantPolicy says otherwise: enough that `.` and `test` are refused."""


@record
class Draft:
    """What is asked for, as typed."""

    policy: str = ""
    rule: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    length: str = "1h"
    reason: str = ""
    ticket: str = ""
    start: str = ""
    uses: str = ""
    emergency: bool = False
    block: str = ""
    """The id of the denial that it began with; it counts while the rest is what was denied."""


@record
class Requirements:
    """What a request has to meet, as people read it before they ask."""

    source: str = ""
    longest: timedelta | None = None
    approvers: str = ""
    least_reason: int = LEAST_REASON
    ticket: str = ""
    limits: str = ""


@record
class Reach:
    """What a grant lets through: rows that turn, rows that stay red, and whether objects yet to come would fit."""

    flips: tuple[str, ...] = ()
    stays: int = 0
    later: str = ""


class GrantDesk(Protocol):
    """Where requests are prepared and handed in."""

    def requirements(self, draft: Draft) -> Requirements:
        """Return what this request has to meet."""

    def reach(self, draft: Draft) -> Reach:
        """Return what it would let through now and later."""

    async def try_out(self, draft: Draft) -> str:
        """Let the server judge the request without making it; return its verdict."""

    async def submit(self, draft: Draft) -> str:
        """Make the request and return what became of it; raises EngineError."""


def draft_of(row: Row | None) -> Draft:
    """Return a draft for what a row shows."""
    if row is None:
        return Draft()
    kind, _, name = row.text("resource").partition("/")
    return Draft(
        policy=row.text("policy"),
        rule=row.text("rule"),
        kind=row.text("kind") or kind,
        name=row.text("name") if "resource" not in row.cells else name,
        namespace=row.text("namespace"),
        block=row.text("block"),
    )


def _block_of(draft: Draft) -> str:
    """Return the id of the denial that a draft still is about, empty when something else is asked for by now."""
    found = read_block_id(draft.block) if draft.block else None
    said = found and (found.policy, found.rules, found.kind, found.name, found.namespace)
    asked = (draft.policy, (draft.rule,), draft.kind, draft.name, draft.namespace)
    return draft.block if said == asked else ""


def manifest(draft: Draft) -> Object:
    """Return the Grant that a draft stands for."""
    spec: Object = {
        "policy": draft.policy,
        "rules": [draft.rule or "*"],
        "target": {"kind": draft.kind, "name": draft.name},
        "duration": draft.length,
        "reason": draft.reason,
    }
    optional = {"ticket": draft.ticket, "startAt": draft.start, "block": _block_of(draft)}
    spec.update({key: value for key, value in optional.items() if value})
    if draft.uses.isdigit():
        spec["uses"] = int(draft.uses)
    if draft.emergency:
        spec["emergency"] = True
    slug = re.sub(r"[^a-z0-9]+", "-", f"{draft.name}-{draft.policy}".lower()).strip("-")[:50]
    return {
        "apiVersion": "kpolicy.io/v1alpha1",
        "kind": "Grant",
        "metadata": {"generateName": f"{slug}-", "namespace": draft.namespace or "default"},
        "spec": spec,
    }


def command(draft: Draft) -> str:
    """Return the command line that asks for the same."""
    import shlex

    subject = [f"{draft.policy}/{draft.rule or '*'}", f"{draft.kind}/{draft.name}"]
    if block := _block_of(draft):
        subject = ["--block", block]
    words = ["kubectl kpolicy grant request", *map(shlex.quote, subject)]
    flags = {"-n": draft.namespace, "--for": draft.length, "--reason": draft.reason, "--ticket": draft.ticket, "--start": draft.start, "--uses": draft.uses}  # fmt: skip
    words += [f"{flag} {shlex.quote(value)}" for flag, value in flags.items() if value]
    return " ".join([*words, *(["--emergency"] if draft.emergency else [])])


def refusals(draft: Draft, required: Requirements) -> list[str]:
    """Return why a draft would be refused, each naming rule, limit and next step; nothing when it would not."""
    return list(_refusals(draft, required))


def _refusals(draft: Draft, required: Requirements) -> Iterator[str]:
    if not draft.policy or not draft.kind or not draft.name:
        yield "name a policy and an object, such as `require-labels/check-team` and `Deployment/web`"
    length = length_of(draft.length)
    if length is None or not length:
        yield f"`{draft.length}` is no length of time; try `2h` or `30m`"
    elif required.longest is not None and length > required.longest:
        most = span(required.longest.total_seconds())
        yield f"duration {draft.length} exceeds maximum {most} of {required.source}; try {most}"
    if len(draft.reason.strip()) < required.least_reason:
        yield f"the reason has {len(draft.reason.strip())} of at least {required.least_reason} characters"
    if required.ticket and not _fits(required.ticket, draft.ticket):
        yield f"a ticket like `{required.ticket}` is required"


def _fits(pattern: str, text: str) -> bool:
    from engine.lang import regex

    try:
        return regex.compile(f"^(?:{pattern})$").search(text)
    except EngineError:
        return bool(text)


class ReportDesk:
    """See the module. `hand_in` makes the Grant (with `dry_run` only judges it) and returns the server's words."""

    def __init__(
        self, world: ClusterCache, hand_in: Callable[[Object, bool], Awaitable[str]] | None = None
    ) -> None:
        self._world = world
        self._hand_in = hand_in

    def __repr__(self) -> str:
        return f"<ReportDesk {'open' if self._hand_in else 'closed'} over {self._world!r}>"

    def requirements(self, draft: Draft) -> Requirements:
        """Return what the first GrantPolicy that covers the draft asks for; house rules where none does."""
        for policy in self._world.objects("grantpolicies"):
            if _covers(policy, draft):
                return _required(policy)
        return Requirements(approvers="as the cluster's GrantPolicy says")

    def reach(self, draft: Draft) -> Reach:
        """Return which failing rows the draft covers, by report."""
        flips, stays = [], 0
        for row in all_rows(self._world):
            if not is_failure(row) or row.text("policy") != draft.policy:
                continue
            place = f"{row.text('namespace')}/{row.text('resource')}"
            if _matches(draft, row):
                flips.append(f"{place}  {row.text('rule')}")
            else:
                stays += 1
        later = f"{draft.kind}/{draft.name}" if wildcard.has_wildcard(draft.name) else ""
        return Reach(tuple(flips), stays, later)

    async def try_out(self, draft: Draft) -> str:
        """Return the server's verdict, or why none can be had."""
        if self._hand_in is None:
            return "not tried: no cluster with kpolicy's controllers behind this"
        try:
            await self._hand_in(manifest(draft), True)
        except EngineError as error:
            return error.message if error.message.startswith("refused: ") else f"refused: {error.message}"  # fmt: skip
        return "accepted (dry run)"

    async def submit(self, draft: Draft) -> str:
        """Hand the request in; raises EngineError."""
        if self._hand_in is None:
            raise EngineError(
                "grants need kpolicy's controllers",
                help="kubectl kpolicy install --crds-only | kubectl apply -f -",
            )
        return await self._hand_in(manifest(draft), False)


def _covers(policy: Object, draft: Draft) -> bool:
    """Tell whether a GrantPolicy is for the policy, rule and namespace of a draft."""
    wanted = {"policies": draft.policy, "rules": draft.rule or "*", "namespaces": draft.namespace}
    spec = part(policy, "spec")
    return all(
        any(wildcard.match(str(pattern), value) for pattern in spec.get(name) or ["*"])
        for name, value in wanted.items()
    )


def _required(policy: Object) -> Requirements:
    spec = part(policy, "spec")
    least, limits = part(spec, "reason").get("minLength"), part(spec, "limits")
    made = Requirements(
        source=f"grantpolicy/{word(policy, 'metadata', 'name')}",
        longest=length_of(word(spec, "maxDuration") or _USUAL_LONGEST),
        approvers=" and ".join(map(_level, items(spec, "approvers"))) or "nobody: it is granted at once",
        ticket=word(spec, "ticket", "pattern"),
        limits=", ".join(f"{value} {_LIMITS[name]}" for name, value in limits.items() if name in _LIMITS),
    )  # fmt: skip
    return replace(made, least_reason=least) if isinstance(least, int) else made


def _level(approvers: Object) -> str:
    names = [*(approvers.get("users") or ()), *(f"group {one}" for one in approvers.get("groups") or ())]  # fmt: skip
    return f"{word(approvers, 'count') or '1'} of {', '.join(map(str, names)) or 'anybody else'}"


def _matches(draft: Draft, row: Row) -> bool:
    kind, _, name = row.text("resource").partition("/")
    return (
        (draft.rule in ("", "*") or wildcard.match(draft.rule, row.text("rule")))
        and row.text("namespace") == draft.namespace
        and draft.kind in (kind, "*")
        and wildcard.match(draft.name, name)
    )
