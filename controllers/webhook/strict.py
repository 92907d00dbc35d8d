"""Codes in strict mode: brought by a CodeClaim beside the object and not by the object itself.

Who makes a CodeClaim, and in which groups they are, is pinned by an admission policy of the API server, so that a review which
somebody else posts to us, in whichever name, can use no code that its owner has not claimed. Therefore strict codes need no
proof of who calls us. A claim names codes by their uses, from which no code is got back: callers who proved nothing are told
of uses only. Only codes that denials offer can be claimed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from controllers.kube import NotFound
from controllers.kube.kinds import CODE_CLAIMS
from engine.grants.model import instant_of

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kube import Client

LONGEST: Final = timedelta(hours=1)
"""How long a claim is looked at after it was made."""
MOST_CLAIMS: Final = 20
MOST_CODES: Final = 8


class CodeClaims:
    """The claims in the cluster; those about objects without a namespace are in the engine's own."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def of(
        self, user: str, groups: tuple[str, ...], namespace: str, now: datetime
    ) -> frozenset[str]:
        """Return the names of uses that a user, with exactly these groups, claims for objects in a namespace; raises KubeError."""
        try:
            page = await self._client.list_all(CODE_CLAIMS, namespace or self._namespace)
        except NotFound:
            return frozenset()
        own = []
        for one in page.items:
            spec, metadata = one.get("spec") or {}, one["metadata"]
            created = instant_of(str(metadata.get("creationTimestamp") or ""))
            is_own = spec.get("user") == user and {*(spec.get("groups") or ())} == {*groups}
            if is_own and created is not None and now < created + LONGEST:
                own.append((created, spec.get("uses") or []))
        newest = sorted(own, key=lambda one: one[0], reverse=True)[:MOST_CLAIMS]
        return frozenset(str(name) for _, names in newest for name in names[:MOST_CODES])
