"""Carries out what changes the cluster, for the console and for commands alike.

Whoever calls asks for consent before and shows the outcome after; what an action does is declared with it (`Action.work`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from controllers.kube.errors import KubeError
from engine.errors import EngineError
from engine.record import record
from kubectl_kpolicy.session.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from controllers.kube import Client
    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.output.rows import Row

    from .registry import Action

    Work = Callable[["ActionExecutor", Row, Mapping[str, str]], Awaitable[str]]


@record
class Outcome:
    """What became of an action on one row; `error` is what was in the way."""

    done: bool
    text: str
    error: EngineError | None = None


class ActionExecutor:
    """Does actions on rows, as somebody; `form` holds what a dialog asked for (`reason`, `for`, `comment`).

    With a `world`, clean-ups are held back only where the engine that runs there honours it.
    """

    def __init__(
        self,
        client: Client | None,
        now: Callable[[], datetime],
        who: Identity | None = None,
        world: ClusterCache | None = None,
    ) -> None:
        self._client, self.now, self.world = client, now, world
        self.who = who or Identity()

    @property
    def user(self) -> str:
        """The name of who acts; empty where the server has not told."""
        return self.who.user

    @property
    def client(self) -> Client:
        """The way to the cluster; raises KubeError where there is none."""
        if self._client is None:
            raise KubeError("a recording cannot be changed")
        return self._client

    async def perform(
        self, action: Action, rows: Sequence[Row], form: Mapping[str, str]
    ) -> list[Outcome]:
        """Do an action on each row and return what became of it; a failure on one row does not keep others from theirs."""
        found = []
        for row in rows:
            try:
                text = await self._done(action, row, form)
                found.append(Outcome(done=True, text=text))
            except EngineError as error:
                found.append(Outcome(done=False, text=error.message, error=error))
        return found

    async def _done(self, action: Action, row: Row, form: Mapping[str, str]) -> str:
        if self._client is None:
            raise KubeError("a recording cannot be changed")
        if not action.work:
            raise EngineError(f"`{action.id}` changes nothing by itself")
        return await work_of(action.work)(self, row, form)


def work_of(work: str | Callable[..., Awaitable[str]]) -> Work:
    """Return what an action does; of `module.function` in this package, which is loaded when it is first wanted."""
    if not isinstance(work, str):
        return work
    module, _, name = work.partition(".")
    found: Work = getattr(import_module(f".{module}", __package__), name)
    return found
