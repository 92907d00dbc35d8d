"""What a requester may do: as the API server says of him, and writing only for whom reports are written by.

Answers are remembered for a few seconds, as the API server's own delegated authorization does. Where it does not answer, nobody may
do anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Client, Clock, Forbidden, KubeError
from controllers.kube.accounts import Job, account_user
from controllers.kube.kinds import SUBJECT_ACCESS_REVIEWS

if TYPE_CHECKING:
    from .requester import Requester
    from .served import Served

REMEMBERED_SECONDS: Final = 10.0
MOST_REMEMBERED: Final = 4096
READING: Final = frozenset({"get", "list", "watch"})
COLLECTORS: Final = frozenset(
    {
        "system:kube-controller-manager",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:namespace-controller",
    }
)
"""Who deletes reports beside those who write them: they go with their object and with their namespace."""


@dataclass(frozen=True, slots=True)
class Action:
    """What somebody wants to do."""

    verb: str
    served: Served
    namespace: str = ""
    name: str = ""


class Rights:
    """Answers to "may he"; `writers` are who writes reports."""

    def __init__(
        self, client: Client, clock: Clock, namespace: str, writers: frozenset[str] = frozenset()
    ) -> None:
        self._client, self._clock = client, clock
        self._writers = writers or frozenset({account_user(namespace, Job.REPORTS)})
        self._known: dict[tuple[Requester, Action], tuple[bool, float]] = {}

    async def check(self, requester: Requester, action: Action) -> None:
        """Return where it is allowed; raises Forbidden, and KubeError where nobody says."""
        if not await self._is_allowed_at_all(requester, action):
            raise _refused(requester, action)
        # INVARIANT: whatever roles say, reports are written by the controllers alone, so that what they tell can be believed.
        user, verb = requester.user, action.verb
        may_write = user in self._writers or (verb == "delete" and user in COLLECTORS)
        if verb not in READING and not may_write:
            raise _refused(requester, action, "reports are written by the reports controller only")

    async def _is_allowed_at_all(self, requester: Requester, action: Action) -> bool:
        """Ask about whoever writes reports for the kind first and not for each report, because sooner or later he reads them all."""
        if action.name and requester.user in self._writers:
            every = Action(action.verb, action.served, action.namespace)
            return await self._is_allowed(requester, every) or await self._is_allowed(requester, action)  # fmt: skip
        return await self._is_allowed(requester, action)

    async def _is_allowed(self, requester: Requester, action: Action) -> bool:
        now = self._clock.monotonic()
        known = self._known.get((requester, action))
        if known is not None and now < known[1]:
            return known[0]
        status = await self._client.review(SUBJECT_ACCESS_REVIEWS, _review(requester, action))
        is_allowed = status.get("allowed") is True and status.get("denied") is not True
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[requester, action] = (is_allowed, now + REMEMBERED_SECONDS)
        return is_allowed


def _review(requester: Requester, action: Action) -> dict[str, Any]:
    kind = action.served.kind
    asked = {
        "verb": action.verb,
        "group": kind.group,
        "version": kind.version,
        "resource": kind.plural,
        "namespace": action.namespace,
        "name": action.name,
    }
    return {
        "user": requester.user,
        "groups": list(requester.groups),
        "uid": requester.uid,
        "extra": {key: list(values) for key, values in requester.extra},
        "resourceAttributes": {key: value for key, value in asked.items() if value},
    }


def _refused(requester: Requester, action: Action, why: str = "") -> KubeError:
    kind = action.served.kind
    named = f' "{action.name}"' if action.name else ""
    place = (
        f' in the namespace "{action.namespace}"' if action.namespace else " at the cluster scope"
    )
    text = f'{kind}{named} is forbidden: User "{requester.user}" cannot {action.verb} resource "{kind.plural}" in API group "{kind.group}"{place}'
    return Forbidden(
        f"{text}: {why}" if why else text,
        details={"name": action.name, "group": kind.group, "kind": kind.plural},
    )
