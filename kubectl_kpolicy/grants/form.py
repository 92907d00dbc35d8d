"""The form of a grant: what is typed becomes one request, judged by the engine's own rules before it is handed in.

Works on what was read anyway, so on a recording and on a cluster without kpolicy's controllers too; where no GrantPolicy can
be read the cluster judges alone. Handing in is for whoever can (`hand_in`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.grants import GrantPolicy, chosen_policy, length_of, length_text, parse_grant
from engine.grants.blocks import read_block_id
from engine.grants.circumstances import circumstances_of, readable_policies
from engine.grants.requests import longest_of
from engine.grants.subjects import subject_text
from engine.lang import rfc3339
from engine.model.kinds import is_of_cel
from engine.record import record, replace
from kubectl_kpolicy.cluster import celkinds
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session.identity import Identity
from kubectl_kpolicy.session.targets import Target

from .reach import Reach, reach_of
from .requests import Ask, manifest, who_may_approve

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from datetime import datetime, timedelta

    from engine.model import Object
    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.output.rows import Row


_UNKNOWN = GrantPolicy("")
"""What the engine holds a request to where a GrantPolicy says nothing else."""


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
    """What a request has to meet: the GrantPolicy that it falls under, and the longest that any one lets it be.

    `policy` is None where none is known to cover the request.
    """

    policy: GrantPolicy | None = None
    longest: timedelta | None = None

    @property
    def least_reason(self) -> int:
        """Return how many characters a reason needs."""
        return (self.policy or _UNKNOWN).min_reason

    @property
    def approvers(self) -> str:
        """Return who has to agree, as people read it."""
        if self.policy is None:
            return "as the cluster's GrantPolicy says"
        return " and ".join(who_may_approve(self.policy)) or "nobody: it is granted at once"

    @property
    def limits(self) -> str:
        """Return the limits beside length and reason, as people read them."""
        if self.policy is None:
            return ""
        found = [f"{self.policy.max_open} open at a time"] if self.policy.max_open else []
        found += [f"{self.policy.max_uses} uses at most"] if self.policy.max_uses else []
        wait = self.policy.cool_down_for
        return ", ".join([*found, *([f"{length_text(wait)} between two"] if wait else [])])


def draft_of(row: Row | None) -> Draft:
    """Return a draft for what a row shows."""
    if row is None:
        return Draft()
    kind, _, name = row.text("resource").partition("/")
    policy = celkinds.identity_of(row)
    return Draft(
        policy=policy,
        rule="" if is_of_cel(policy) else row.text("rule"),
        kind=row.text("kind") or kind,
        name=row.text("name") if "resource" not in row.cells else name,
        namespace=row.text("namespace"),
        block=row.text("block"),
    )


_COMMON = ("policy", "rule", "kind", "namespace")


def draft_of_all(rows: Sequence[Row | None]) -> Draft:
    """Return one draft for what several rows show, by the beginning that their names share.

    Raises Misuse where no grant can name them together: a name that fits everything is nobody's wish.
    """
    drafts = [draft_of(row) for row in rows]
    differing = [name for name in _COMMON if len({getattr(one, name) for one in drafts}) > 1]
    names = sorted({one.name for one in drafts})
    shared = names[0]
    while not all(name.startswith(shared) for name in names):
        shared = shared[:-1]
    if not shared and len(names) > 1:
        differing.append("name")
    if differing:
        raise Misuse(f"what is marked differs in {' and '.join(differing)}", help="a grant is for one rule and one kind in one namespace: ask for each by itself")  # fmt: skip
    if len(drafts) == 1:
        return drafts[0]
    return replace(drafts[0], name=names[0] if len(names) == 1 else f"{shared}*", block="")


def ask_of(draft: Draft) -> Ask:
    """Return the request that a draft stands for."""
    return Ask(
        policy=draft.policy,
        rules=_rules(draft),
        kind=draft.kind,
        name=draft.name,
        namespace=draft.namespace or "default",
        length=draft.length,
        reason=draft.reason,
        ticket=draft.ticket,
        start=draft.start,
        uses=int(draft.uses) if _is_count(draft.uses) else 0,
        emergency=draft.emergency,
        block=_block_of(draft),
    )


def _rules(draft: Draft) -> tuple[str, ...]:
    """Return the rules that are asked for; a policy written in CEL has none, and one that is typed is left to be refused."""
    if is_of_cel(draft.policy) and draft.rule in ("", "*"):
        return ()
    return (draft.rule or "*",)


def _block_of(draft: Draft) -> str:
    """Return the id of the denial that a draft still is about, empty when something else is asked for by now."""
    found = read_block_id(draft.block) if draft.block else None
    said = found and (found.policy, found.rules, found.kind, found.name, found.namespace)
    asked = (draft.policy, _rules(draft), draft.kind, draft.name, draft.namespace)
    return draft.block if said == asked else ""


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def command(draft: Draft) -> str:
    """Return the command line that asks for the same."""
    subject = [subject_text(draft.policy, _rules(draft)), f"{draft.kind}/{draft.name}"]
    if block := _block_of(draft):
        subject = ["--block", block]
    words = ["kubectl kpolicy grant request", *map(shlex.quote, subject)]
    flags = {"-n": draft.namespace, "--for": draft.length, "--reason": draft.reason, "--ticket": draft.ticket, "--start": draft.start, "--uses": draft.uses}  # fmt: skip
    words += [f"{flag} {shlex.quote(value)}" for flag, value in flags.items() if value]
    return " ".join([*words, *(["--emergency"] if draft.emergency else [])])


def _incomplete(draft: Draft) -> Iterator[str]:
    """Yield what keeps a draft from being a request at all."""
    if not draft.policy or not draft.kind or not draft.name:
        yield "name a policy and an object, such as `require-labels/check-team` and `Deployment/web`"
    if length_of(draft.length) is None:
        yield f"`{draft.length}` is no length of time; try `2h` or `30m`"
    if draft.start and rfc3339.read(draft.start) is None:
        yield f"`{draft.start}` is no instant; write 2026-01-31T17:00:00Z"
    if draft.uses and not _is_count(draft.uses):
        yield f"`{draft.uses}` is no number of uses"


class GrantForm:
    """See the module. `who` asks; `hand_in` makes the Grant (with `dry_run` only judges it) and returns the server's words."""

    def __init__(
        self,
        world: ClusterCache,
        now: Callable[[], datetime],
        who: Identity | None = None,
        hand_in: Callable[[Object, bool], Awaitable[str]] | None = None,
    ) -> None:
        self._world, self._now, self._hand_in = world, now, hand_in
        self._who = who or Identity()

    def manifest(self, draft: Draft) -> Object:
        """Return the Grant that a draft stands for."""
        return manifest(ask_of(draft), self._who)

    def requirements(self, draft: Draft) -> Requirements:
        """Return what this request has to meet, by the GrantPolicy that the engine would choose."""
        return self._judged(draft)[0]

    def refusals(self, draft: Draft) -> list[str]:
        """Return why a draft would be refused, each naming rule, limit and next step; nothing when it would not."""
        return self._judged(draft)[1]

    def _judged(self, draft: Draft) -> tuple[Requirements, list[str]]:
        missing = list(_incomplete(draft))
        known = {"start": "", "uses": ""} if missing else {}
        length = draft.length if length_of(draft.length) else "1s"
        policies = self._policies()
        if not policies:
            return Requirements(), [*missing, *_short(draft)]
        grant = parse_grant(self.manifest(replace(draft, length=length, **known)))
        others = self._world.objects("grants") if self._who.user else []
        circumstances = circumstances_of(grant, filter(_is_whole, others), self._now())
        policy, refusals = chosen_policy(grant, policies, circumstances)
        said = [f"{one.message}; {one.help}" if one.help else one.message for one in refusals]
        return Requirements(policy, longest_of(grant, policies)), [*missing, *said]

    def _policies(self) -> list[GrantPolicy]:
        """Return the grant policies that can be read; whoever is not known may be among those who may ask."""
        made = self._world.derived("readable grant policies", ("grantpolicies",), lambda: readable_policies(self._world.objects("grantpolicies"))[0])  # fmt: skip
        if self._who.user:
            return made
        return [replace(one, users=frozenset(), groups=frozenset()) for one in made]

    def reach(self, draft: Draft) -> Reach:
        """Return which failing rows the draft covers, by report."""
        ask = ask_of(draft)
        target = Target(ask.kind, ask.name, ask.namespace)
        return reach_of(self._world, ask.policy, ask.rules, [target])

    async def try_out(self, draft: Draft) -> str:
        """Return the server's verdict, or why none can be had."""
        if self._hand_in is None:
            return "not tried: no cluster with kpolicy's controllers behind this"
        try:
            await self._hand_in(self.manifest(draft), True)
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
        return await self._hand_in(self.manifest(draft), False)


def _is_whole(obj: Object) -> bool:
    return isinstance(obj.get("spec"), dict) and isinstance(obj.get("metadata"), dict)


def _short(draft: Draft) -> Iterator[str]:
    """Yield what the reason lacks by the engine's default: `.` and `test` are none anywhere."""
    given = len(draft.reason.strip())
    if given < _UNKNOWN.min_reason:
        yield f"the reason has {given} of at least {_UNKNOWN.min_reason} characters"
