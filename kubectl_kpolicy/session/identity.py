"""Who asks, and what they may do: the server's own answers (SelfSubjectReview, SelfSubjectAccessReview)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from controllers.kube.errors import Forbidden, KubeError, NotFound
from controllers.kube.kinds import Kind
from engine.errors import EngineError
from engine.fields import part, word
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from controllers.kube import Client
    from engine.model import Object


SELF_REVIEWS: Final = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)  # fmt: skip
ACCESS_REVIEWS: Final = Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False)  # fmt: skip


@record
class Right:
    """A right that the API server must give, as in a SelfSubjectAccessReview."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    kind: str = ""
    """Where it is set, only rows of objects of this kind need the right."""

    def __str__(self) -> str:
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {name}" + (f"/{self.subresource}" if self.subresource else "")


@record
class Identity:
    """The name and groups by which the server knows us; empty when it does not tell."""

    user: str = ""
    groups: tuple[str, ...] = ()


async def who_am_i(client: Client) -> Identity:
    """Return who we are to the server, left open where it gives no answer."""
    try:
        return await identity_of(client)
    except KubeError:
        return Identity()


async def identity_of(client: Client) -> Identity:
    """Ask the server who we are; servers before 1.28 do not know, and then it is left open. Raises KubeError for no answer."""
    try:
        status = await client.review(SELF_REVIEWS, {})
    except (NotFound, Forbidden):
        return Identity()
    info = part(status, "userInfo")
    groups = info.get("groups")
    return Identity(word(info, "username"), tuple(map(str, groups)) if isinstance(groups, list) else ())  # fmt: skip


async def somebody(client: Client) -> Identity:
    """Return who we are to the server; raises EngineError where it does not say, for a grant needs a name."""
    found = await identity_of(client)
    if not found.user:
        raise EngineError("the server does not say who you are", help="SelfSubjectReview needs Kubernetes 1.28 or later")  # fmt: skip
    return found


async def leave_event(client: Client, about: Object, prefix: str, reason: str, done: str) -> None:
    """Leave an Event about an object, which says under our name what we have `done`; raises KubeError."""
    from controllers.kube.kinds import EVENTS
    from engine.lang import rfc3339

    from .cluster import now

    user, at = (await who_am_i(client)).user or "somebody", rfc3339.write(now())
    event: Object = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": prefix, "namespace": about["namespace"]},
        "involvedObject": about,
        "reason": reason,
        "type": "Warning",
        "message": f"{user} {done}",
        "source": {"component": "kpolicy"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    await client.create(EVENTS, event)


async def rights_of(
    client: Client, rights: Iterable[Right], namespace: str = ""
) -> dict[Right, bool]:
    """Ask the server for each right; those that it does not answer for are left out."""
    wanted = list(dict.fromkeys(rights))
    answers = await asyncio.gather(*(_may(client, right, namespace) for right in wanted))
    return {
        right: answer for right, answer in zip(wanted, answers, strict=True) if answer is not None
    }


async def _may(client: Client, right: Right, namespace: str) -> bool | None:
    attributes = {"verb": right.verb, "group": right.group, "resource": right.resource}
    if right.subresource:
        attributes["subresource"] = right.subresource
    if namespace:
        attributes["namespace"] = namespace
    try:
        status = await client.review(ACCESS_REVIEWS, {"resourceAttributes": attributes})
    except KubeError:
        return None
    return bool(status.get("allowed"))


class KnownRights:
    """What somebody may do as far as the server said so: everywhere, and in those namespaces that were asked about.

    `ask` asks for one namespace; without it only what holds everywhere is known.
    """

    def __init__(self, everywhere: Mapping[Right, bool] | None = None) -> None:
        self.everywhere: dict[Right, bool] = dict(everywhere or {})
        self.ask: Callable[[str], Awaitable[Mapping[Right, bool]]] | None = None
        self._by_place: dict[str, Mapping[Right, bool]] = {}

    def at(self, place: str) -> Mapping[Right, bool]:
        """Return what may be done in a namespace: what may not be done everywhere may be allowed there."""
        if self.ask is None or not place:
            return self.everywhere
        given = {right: True for right, allowed in self.everywhere.items() if allowed}
        return {**self._by_place.get(place, {}), **given}

    async def learn(self, place: str) -> bool:
        """Ask about a namespace unless that was done before; tell whether something was learnt."""
        if self.ask is None or not place or place in self._by_place:
            return False
        self._by_place[place] = {}
        self._by_place[place] = await self.ask(place)
        return True
