"""What the cluster itself shows of the object that a review is about, for effects of reviews that nobody proved.

A review says what was there and what is to be there. Before it is answered the object must be as the review says it was, or not be
there yet: then whatever is seen to be there afterwards came about since, and was not there for a forger to point at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controllers.kube import Client, Discovery, find
from controllers.store.namespaces import uid_of
from controllers.store.uses import ABSENT, content_of, state_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object, Review


class Live:
    """Reads objects as they are now."""

    def __init__(self, client: Client, discovery: Discovery) -> None:
        self._client, self._discovery = client, discovery

    async def before(self, review: Review, request: Mapping[str, Any]) -> str:
        """Return the state (`uses.state_of`) that a request is to change, nothing where the cluster does not show it so.

        What is there already, however it came there, is no proof of a request. Raises KubeError.
        """
        live = await self.of(request)
        if review.operation == "CREATE":
            return ABSENT if live is None else ""
        if live is None or content_of(live) == content_of(review.object or {}):
            return ""
        return state_of(live)

    async def of(self, request: Mapping[str, Any]) -> Object | None:
        """Return the object that a request is about with the UID that it names, None where there is none; raises KubeError."""
        named = request.get("kind") or {}
        shown = request.get("object") or request.get("oldObject") or {}
        metadata = shown.get("metadata") or {}
        name = str(metadata.get("name") or request.get("name") or "")
        version = "/".join(filter(None, (named.get("group"), named.get("version"))))
        # by what the server serves, and never by a path that a request spells out
        kind = self._discovery.find(version, str(named.get("kind") or ""))
        uid = metadata.get("uid")
        if kind is None or not name or not uid:
            return None
        place = str(request.get("namespace") or "") if kind.namespaced else ""
        found = await find(self._client, kind, name, place)
        return found if found is not None and uid_of(found) == uid else None
