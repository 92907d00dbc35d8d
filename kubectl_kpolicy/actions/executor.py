"""Carries out what changes the cluster, for the console and for commands alike.

Each change is one request with its precondition; whoever calls asks for consent before and shows the outcome after. Grants and
codes are done by whoever registers for their ids (`ActionExecutor.offer`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from controllers.kube.errors import KubeError
from controllers.kube.kinds import (
    CEL_EXCEPTIONS,
    CLEANUP_POLICIES,
    CLUSTER_CLEANUP_POLICIES,
    POLICY_EXCEPTIONS,
    Discovery,
    Kind,
)
from engine.cleanup.holds import AFTER, PAUSE, SKIP, HoldState
from engine.errors import EngineError
from engine.record import record
from kubectl_kpolicy.cluster.celkinds import is_cel
from kubectl_kpolicy.output.fields import word
from kubectl_kpolicy.output.time_format import absolute, length_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from controllers.kube import Client
    from engine.model import Object
    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.output.rows import Row

CHANGED_BY = "kpolicy.io/cleanup-changed-by"
CHANGED_FOR = "kpolicy.io/cleanup-reason"
RUN = "kpolicy.io/cleanup-run"


_HELD_BY: dict[str, str] = {
    HoldState.PAUSED: PAUSE,
    HoldState.SKIPPED: SKIP,
    HoldState.POSTPONED: AFTER,
}


@record
class Outcome:
    """What became of an action on one row; `error` is what was in the way."""

    row: str
    done: bool
    text: str
    error: EngineError | None = None


class ActionExecutor:
    """Does actions by id on rows; `form` holds what a dialog asked for (`reason`, `for`, `comment`).

    With a `world`, clean-ups are held back only where the engine that runs there honours it.
    """

    def __init__(
        self,
        client: Client | None,
        now: Callable[[], datetime],
        user: str = "",
        world: ClusterCache | None = None,
    ) -> None:
        self._client, self._world = client, world
        self._now = now
        self.user = user
        self._offers: dict[str, Callable[[Row, Mapping[str, str]], Awaitable[str]]] = {
            "exception-revoke": self._revoke_exception,
            "cleanup-postpone": self._postpone,
            "cleanup-skip": self._skip,
            "cleanup-pause": self._pause,
            "cleanup-run": self._note_run,
        }

    def __repr__(self) -> str:
        return f"<ActionExecutor of {len(self._offers)} actions for {self.user or '-'}>"

    def offer(self, name: str, work: Callable[[Row, Mapping[str, str]], Awaitable[str]]) -> None:
        """Let a function do an action: it gets the row and the form, returns what it did, and raises EngineError."""
        self._offers[name] = work

    def can(self, name: str) -> bool:
        """Tell whether an action can be done at all."""
        return name in self._offers and self._client is not None

    async def perform(
        self, name: str, rows: Sequence[Row], form: Mapping[str, str]
    ) -> list[Outcome]:
        """Do an action on each row and return what became of it; a failure on one row does not keep others from theirs."""
        found = []
        for row in rows:
            if not self.can(name):
                why = "a recording cannot be changed" if self._client is None else "this needs kpolicy's controllers"  # fmt: skip
                found.append(Outcome(row.key, done=False, text=why))
                continue
            try:
                found.append(Outcome(row.key, done=True, text=await self._offers[name](row, form)))
            except EngineError as error:
                found.append(Outcome(row.key, done=False, text=error.message, error=error))
        return found

    async def _revoke_exception(self, row: Row, form: Mapping[str, str]) -> str:
        """Delete just this exception: one of the same name made meanwhile is left alone."""
        name, namespace = row.text("name"), row.text("namespace")
        uid = word(row.object, "metadata", "uid")
        await self._api.delete(_exception_kind(row.object), name, namespace, uid=uid, dry_run=bool(form.get("dry-run")))  # fmt: skip
        return f"revoked {namespace}/{name}"

    async def _postpone(self, row: Row, form: Mapping[str, str]) -> str:
        self._check_engine("postpone", row)
        length = length_of(form.get("for", "")) or timedelta(hours=1)
        at = absolute(self._now() + length)
        await self._annotate(row, form, {AFTER: at})
        return f"not before {at}"

    async def _skip(self, row: Row, form: Mapping[str, str]) -> str:
        self._check_engine("skip", row)
        await self._annotate(row, form, {SKIP: absolute(row.moment("due")) or "next"})
        return "the next run passes it over"

    async def _pause(self, row: Row, form: Mapping[str, str]) -> str:
        """Pause a clean-up, or lift what holds it: a pause when asked again, whatever it is when asked to resume."""
        held_by = _HELD_BY.get(row.text("state")) if form.get("resume") else None
        if row.text("state") == HoldState.PAUSED:
            held_by = PAUSE
        self._check_engine("resume" if held_by else "pause", row)
        await self._annotate(row, form, {held_by: None} if held_by else {PAUSE: "true"})
        return "resumed" if held_by else "paused"

    def _check_engine(self, verb: str, row: Row) -> None:
        if self._world is not None:
            from kubectl_kpolicy.cluster.holding import check_engine

            check_engine(self._world, verb, [row])

    async def _note_run(self, row: Row, form: Mapping[str, str]) -> str:
        """Write down that somebody runs a policy by hand; deleting is done elsewhere."""
        await self._annotate(row, form, {RUN: absolute(self._now())})
        return "noted"

    async def _annotate(
        self, row: Row, form: Mapping[str, str], annotations: dict[str, str | None]
    ) -> None:
        """Change annotations; each says who did it and why after its value, which is what the audit trail takes down."""
        kind = await self._kind_of(row)
        reason = form.get("reason", "")
        told = {name: value and f"{value} {self.user}: {reason}" for name, value in annotations.items()}  # fmt: skip
        noted = {**told, CHANGED_FOR: reason, CHANGED_BY: self.user}
        metadata: dict[str, object] = {"annotations": noted}
        if uid := word(row.object, "metadata", "uid"):
            metadata["uid"] = uid
        await self._api.patch(kind, word(row.object, "metadata", "name"), row.text("namespace"), {"metadata": metadata}, dry_run=bool(form.get("dry-run")))  # fmt: skip

    async def _kind_of(self, row: Row) -> Kind:
        """Return the kind of the object behind a row; raises KubeError."""
        name = word(row.object, "kind")
        for kind in (CLEANUP_POLICIES, CLUSTER_CLEANUP_POLICIES):
            if kind.kind == name:
                return kind
        discovery = Discovery(self._api)
        await discovery.refresh()
        found = discovery.find(word(row.object, "apiVersion"), name)
        if found is None:
            raise KubeError(f"the server has no {name}")
        return found

    @property
    def _api(self) -> Client:
        if self._client is None:
            raise KubeError("there is no cluster behind this")
        return self._client


def _exception_kind(obj: Object) -> Kind:
    """Return the kind of an exception: classic ones and those from policies in CEL are called the same."""
    if not is_cel(obj):
        return POLICY_EXCEPTIONS
    version = word(obj, "apiVersion").rpartition("/")[2]
    return Kind(CEL_EXCEPTIONS.group, version, CEL_EXCEPTIONS.plural, CEL_EXCEPTIONS.kind)
