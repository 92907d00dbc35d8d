"""Who asks, and what they may do: the server's own answers (SelfSubjectReview, SelfSubjectAccessReview)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controllers.kube.errors import KubeError
from engine.record import record
from kubectl_kpolicy.cluster.cache import part, word
from kubectl_kpolicy.cluster.resources import ACCESS_REVIEWS, SELF_REVIEWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controllers.kube import Client
    from kubectl_kpolicy.actions.registry import Right


@record
class Identity:
    """The name and groups by which the server knows us; empty when it does not tell."""

    user: str = ""
    groups: tuple[str, ...] = ()


async def who_am_i(client: Client) -> Identity:
    """Ask the server who we are; servers before 1.28 do not know, and then it is left open."""
    try:
        status = await client.review(SELF_REVIEWS, {})
    except KubeError:
        return Identity()
    info = part(status, "userInfo")
    groups = info.get("groups")
    return Identity(word(info, "username"), tuple(map(str, groups)) if isinstance(groups, list) else ())  # fmt: skip


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
