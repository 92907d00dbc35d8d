"""Whether sources of copies are labelled: noted on a policy that is written by somebody who may update them himself.

Labelling a source changes an object that the policy's author may only be allowed to read, and who that was is known while he writes
the policy and never after. So the answer is an annotation of the policy. Whoever writes the annotation himself is asked for the right
when the policy is validated, so it is never a claim of somebody who lacks it; here it is added and taken off for everybody else.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from controllers.kube.accounts import Job
from controllers.runtime.evaluating import PROCESS
from engine.errors import EngineError
from engine.fields import part
from engine.parse import parse_policy
from engine.vocabulary import LABELS_SOURCES

from . import envelope
from .author_needs import needs_of_author
from .author_rights import NotAllowed
from .policy_validation import ReviewContext

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from controllers.runtime.cluster_cache import ClusterCache
    from engine.model import Json, Object, Policy

    from .author_lookups import Need
    from .author_rights import AuthorRights

_POINTER: Final = f"/metadata/annotations/{LABELS_SOURCES.replace('/', '~1')}"
_log = logging.getLogger(__name__)


class CloneMarks:
    """Notes on policies whether their authors may update what their rules copy. `jobs_of` tells our own accounts."""

    def __init__(
        self, cache: ClusterCache, authors: AuthorRights, jobs_of: Callable[[str], Collection[Job]]
    ) -> None:
        self._cache, self._authors, self._jobs_of = cache, authors, jobs_of

    async def review(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Answer the review of a policy that is written: never with a refusal, at most with a change of the annotation."""
        request = envelope.read_request(body)
        uid, obj = str(request["uid"]), request.get("object")
        asked = ReviewContext(
            obj or {}, request.get("oldObject"), request.get("userInfo") or {}, request["resource"].get("resource") or ""
        )  # fmt: skip
        user = str(asked.user.get("username") or "")
        # what a rule generates was asked for when that rule was written, by somebody whom nobody knows here
        if obj is None or asked.is_as_it_was or Job.BACKGROUND in self._jobs_of(user):
            return envelope.allowed(uid)
        try:
            async with asyncio.timeout(budget):
                change = await self._change(asked, user)
        except (TimeoutError, EngineError) as error:
            _log.info("sources of copies stay without a label: %s", type(error).__name__)
            return envelope.allowed(uid)
        return envelope.patched(uid, change) if change else envelope.allowed(uid)

    async def _change(self, asked: ReviewContext, user: str) -> Sequence[Mapping[str, Json]]:
        """Return the JSON patch of a policy; raises EngineError for one that cannot be read, and KubeError."""
        namespace = asked.written.namespace or f"user {user}"
        needs = PROCESS.read(namespace, partial(self._needs_of_labelling, asked.obj))
        known = part(asked.obj, "metadata", "annotations")
        if not needs or known.get(LABELS_SOURCES) == "false":
            return ()
        try:
            await self._authors.check(asked.user, asked.written, needs)
        except NotAllowed:
            return ({"op": "remove", "path": _POINTER},) if LABELS_SOURCES in known else ()
        if known:
            return ({"op": "add", "path": _POINTER, "value": "true"},)
        return ({"op": "add", "path": "/metadata/annotations", "value": {LABELS_SOURCES: "true"}},)

    def _needs_of_labelling(self, obj: Object) -> list[Need]:
        """Return what an author needs for labels on sources, and for nothing else that the policy does."""
        with_labels, without = (
            needs_of_author(_read(obj, said), self._cache.discovery) for said in ("true", "false")
        )
        return [one for one in with_labels if one not in without]


def _read(obj: Object, said: str) -> Policy:
    metadata = obj.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), LABELS_SOURCES: said}
    return parse_policy({**obj, "metadata": {**metadata, "annotations": annotations}}, strict=False)
