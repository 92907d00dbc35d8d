"""Exceptions that name a grant, when somebody makes one: only what the grant says and only while it is active.

GitOps tools bring back what they once saw. An exception whose end is past covers nothing, and its maker is told; one of a grant
that was revoked before its end would cover something, and is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controllers.kube import NotFound
from controllers.kube.accounts import Job
from controllers.kube.kinds import GRANTS
from engine.cleanup.ttl import instant_of
from engine.errors import EngineError
from engine.exceptions.cover import EXPIRES_AT
from engine.grants import exception_of, parse_grant
from engine.grants.cause import group_of, says_same
from engine.grants.circumstances import state_of
from engine.reach import GRANT_ANNOTATION, is_granted

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from controllers.kube import Client
    from engine.model import Object


class NotGranted(EngineError):  # noqa: N818 - it names the verdict
    """An exception that names a grant which does not stand behind it."""


def check_maker(obj: Object, old: Object | None, jobs: Collection[Job]) -> None:
    """Refuse that anybody but the account of grants makes an exception that carries a grant, or turns one into it.

    `jobs` are those of ours that the request is made for. The API server's own policies say the same, where it has them.
    """
    if is_granted(obj) and not (old is not None and is_granted(old)) and Job.GRANTS not in jobs:
        raise NotGranted("an exception by grant is made from its grant; ask for one")


async def check_granted(client: Client, obj: Object) -> None:
    """Refuse an exception that names a grant and is not the one that the grant causes now; raises KubeError, too."""
    named = str(_annotations(obj).get(GRANT_ANNOTATION) or "")
    if not named:
        return
    namespace, _, name = named.rpartition("/")
    try:
        grant = await client.get(GRANTS, name, namespace)
    except NotFound:
        raise NotGranted(f"there is no grant `{named}` for this exception") from None
    if grant["metadata"].get("deletionTimestamp"):
        raise NotGranted(f"grant {named} is being deleted; its exception is not made again")
    state = state_of(grant)
    if state != "active":
        raise NotGranted(f"grant {named} is {state}; its exception is not made again")
    ends = instant_of(str((grant.get("status") or {}).get("expiresAt") or ""))
    if ends is None or not _is_caused(obj, grant, ends):
        raise NotGranted(f"this is not the exception of grant {named}")


def ended(ends: datetime | None, now: datetime) -> list[str]:
    """Return a warning about an exception whose end is past, by whichever way of saying so; it covers nothing."""
    if ends is None or now < ends:
        return []
    return [f"this exception ended at {ends:%Y-%m-%dT%H:%M:%SZ} and covers nothing"]


def _is_caused(obj: Object, grant: Object, ends: datetime) -> bool:
    """Tell whether an exception says what the grant's own says; an end that is nearer is fine."""
    parsed = parse_grant(grant)
    wanted = exception_of(parsed, ends)
    metadata, expected = obj.get("metadata") or {}, wanted["metadata"]
    given = instant_of(str(_annotations(obj).get(EXPIRES_AT) or ""))
    shared = ("kpolicy.io/grant", "kpolicy.io/uses")
    return (
        str(obj.get("apiVersion") or "").startswith(f"{group_of(parsed)}/")
        and says_same(obj.get("spec") or {}, wanted["spec"])
        and (metadata.get("name"), metadata.get("namespace")) == (expected["name"], expected["namespace"])
        and all(_annotations(obj).get(key) == expected["annotations"].get(key) for key in shared)
        and given is not None
        and given <= ends
    )  # fmt: skip


def _annotations(obj: Object) -> dict[str, Any]:
    found = (obj.get("metadata") or {}).get("annotations")
    return found if isinstance(found, dict) else {}
