"""Whether the author of a policy may do himself what the policy would have us do.

For the admission of policies, clean-up policies and global context entries. The API server is asked about whoever sent the
request, by SubjectAccessReviews, so the answer is its own, whatever authorizers it has. Somebody who holds the verb `bypass` on
the policy, in the group kpolicy.io, is not asked about more.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Client, KubeError, find, kinds
from engine.errors import EngineError
from engine.reach import OWN_GROUP
from engine.requestinfo import ANY, RequestInfo

from .author_lookups import Need, RoleName, needs_of_entry, unique
from .author_powers import MOST_OF_A_ROLE, some_of_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


BYPASS: Final = "bypass"
MOST: Final = 256
"""Requests that are asked about for one policy; one that needs more needs somebody who may bypass this."""
_AT_ONCE: Final = 16
_SHOWN: Final = 3


class NotAllowed(EngineError):  # noqa: N818 - it names the verdict
    """The author may not do what the policy would do."""


@dataclass(frozen=True, slots=True)
class Written:
    """The policy that is written: where the API server keeps it."""

    plural: str
    namespace: str = ""
    name: str = ""


class AuthorRights:
    """Asks the API server about authors; `is_ours` tells the account that writes what rules generate."""

    def __init__(self, client: Client, is_ours: Callable[[str], bool]) -> None:
        self._client = client
        self._is_ours = is_ours

    async def check(self, author: Mapping[str, Any], written: Written, needs: Sequence[Need]) -> None:  # fmt: skip
        """Return where an author may do all of it; raises NotAllowed, and KubeError when the server does not say.

        What our own account writes is what a rule generates, whose author was asked about it already.
        """
        if not needs or self._is_ours(str(author.get("username") or "")):
            return
        questions = _Questions(self._client, author)
        bypass = RequestInfo(BYPASS, OWN_GROUP, written.plural, "", written.namespace, written.name)
        if await questions.may(bypass):
            return
        await questions.ask(await self._with_entries(needs), written)

    async def may(self, author: Mapping[str, Any], request: RequestInfo) -> bool:
        """Tell whether somebody may make a request; raises KubeError when the server does not say."""
        return await _Questions(self._client, author).may(request)

    async def _with_entries(self, needs: Iterable[Need]) -> list[Need]:
        """Return needs with what global context entries read in place of their names; of one that is not there, anything."""
        found: list[Need] = []
        for need in needs:
            read = kinds.GLOBAL_CONTEXT_ENTRIES
            entry = await find(self._client, read, need.entry) if need.entry else None
            if entry is None:
                found.append(need)
                continue
            spec = entry.get("spec") or {}
            found += (replace(one, at=need.at) for one in needs_of_entry(spec, need.at))
        return unique(found)


def subject_of(author: Mapping[str, Any]) -> dict[str, Any]:
    """Return who sent a request, as a SubjectAccessReview names people."""
    shown = {
        "user": str(author.get("username") or ""),
        "uid": author.get("uid"),
        "groups": list(author.get("groups") or ()),
        "extra": author.get("extra"),
    }
    return {key: value for key, value in shown.items() if value}


class _Questions:
    """What is asked about one author, each question once."""

    def __init__(self, client: Client, author: Mapping[str, Any]) -> None:
        self._client = client
        self._user = str(author.get("username") or "")
        self._subject = subject_of(author)
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._known: dict[RequestInfo, asyncio.Task[bool]] = {}

    async def ask(self, needs: Sequence[Need], written: Written) -> None:
        if len(needs) > MOST:
            raise NotAllowed(
                f"the policy would do {len(needs)} different things, more than can be asked about"
                f" ({MOST}); {_advice(written)}"
            )
        verdicts = await asyncio.gather(*(self._holds(need) for need in needs))
        missing = [need for need, holds in zip(needs, verdicts, strict=True) if not holds]
        if missing:
            raise NotAllowed(_refusal(self._user, missing, written))

    async def may(self, request: RequestInfo) -> bool:
        task = self._known.get(request)
        if task is None:
            task = self._known[request] = asyncio.ensure_future(self._asked(request))
        return await task

    async def _asked(self, request: RequestInfo) -> bool:
        async with self._room:
            try:
                status = await self._client.review(kinds.SUBJECT_ACCESS_REVIEWS, {**self._subject, **_attributes(request)})  # fmt: skip
            except KubeError as error:
                text = f"what `{self._user}` may do could not be asked for: {error.message}"
                raise error.reworded(text) from error
        return status.get("allowed") is True

    async def _holds(self, need: Need) -> bool:
        if await self.may(need.request):
            return True
        instead = need.instead or (await self._given_by(need.role) if need.role else ())
        if not instead or len(instead) > MOST_OF_A_ROLE:
            return False
        return all(await asyncio.gather(*(self.may(one) for one in instead)))

    async def _given_by(self, role: RoleName) -> Sequence[RequestInfo]:
        """Return what a role allows, nothing where that cannot be known."""
        kind = kinds.ROLES if role.kind == "Role" else kinds.CLUSTER_ROLES
        place = role.namespace if kind.namespaced else ""
        found = await find(self._client, kind, role.name, place) or {}
        return some_of_rules(found.get("rules") or (), role.namespace)


def _attributes(request: RequestInfo) -> dict[str, dict[str, str]]:
    if request.path:
        return {"nonResourceAttributes": {"path": request.path, "verb": request.verb}}
    asked = {
        "verb": request.verb,
        "group": request.group,
        "resource": request.resource,
        "subresource": request.subresource,
        "namespace": request.namespace,
        "name": request.name,
    }
    return {"resourceAttributes": {key: value for key, value in asked.items() if value}}


def _refusal(user: str, missing: Sequence[Need], written: Written) -> str:
    """Name each right that is missing, the first few of them, and what to do."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for need in missing:
        verbs.setdefault((need.at, _place(need.request)), []).append(need.request.verb)
    shown = [
        f"{at}: `{user}` may not {', '.join(dict.fromkeys(found))} {place}"
        for (at, place), found in [*verbs.items()][:_SHOWN]
    ]
    more = f"; and {len(verbs) - _SHOWN} more" if len(verbs) > _SHOWN else ""
    return (
        f"{'; '.join(shown)}{more}; a policy does only what its author may do: {_advice(written)}"
    )


def _advice(written: Written) -> str:
    return f"get these rights, or the verb `{BYPASS}` on {written.plural}.{OWN_GROUP}"


def _place(request: RequestInfo) -> str:
    if request.path:
        return f"the path `{request.path}`"
    below = f"/{request.subresource}" if request.subresource else ""
    if request.resource == ANY:
        of_group = "" if request.group == ANY else f" of {request.group or 'the core group'}"
        what = f"all resources{of_group}"
    else:
        what = f"{request.resource}{below}{f'.{request.group}' if request.group else ''}"
    named = f" `{request.name}`" if request.name else ""
    return f"{what}{named}{f' in namespace {request.namespace}' if request.namespace else ''}"
