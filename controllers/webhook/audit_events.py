"""What in an admission request is worth a record in the audit trail: changes of who may do what, and of what keeps objects back.

The request in, the action out, which is noted and never refused: apart from what judges the same objects, so that it can be passed over
when it cannot be asked. A deletion must be possible while we are down; what is then not seen is told of by the leader without a name.
Requests for grants, decisions on them, codes and their uses are not here, because their own objects tell who did them.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import AlreadyExists, Client, Clock, Discovery, find
from controllers.kube.accounts import Job
from controllers.kube.kinds import AUDIT_NOTES, CODE_USES
from controllers.store import audit
from controllers.store.uses import SAME_ATTEMPT
from engine import vocabulary
from engine.cleanup.ttl import due_at
from engine.errors import EngineError, EvaluationError
from engine.fields import items, part
from engine.grants.subjects import identity_of, subject_text
from engine.lang import rfc3339
from engine.lang.gotext import compact_json
from engine.model.kinds import KINDS
from engine.reach import OWN_GROUP, POLICY_GROUPS

from . import envelope
from .caller import is_proven
from .code_bindings import user_of
from .live import Live

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from engine.model import Object

MARKS: Final = {
    vocabulary.CLEANUP_AFTER: ("postpone", "resume"),
    vocabulary.CLEANUP_SKIP: ("skip", "resume"),
    vocabulary.CLEANUP_PAUSE: ("pause", "resume"),
    vocabulary.CLEANUP_RUN: ("run", "resume"),
}
"""Annotations that hold back clean-ups or tell of one by hand: what setting one is called, and taking it away."""
_HOLDS: Final = frozenset({*MARKS, vocabulary.CLEANUP_REASON, vocabulary.CLEANUP_CHANGED_BY})
POLICIES: Final = frozenset(one.plural for one in KINDS if one.group in POLICY_GROUPS)
"""Policies of every kind, whose changes are told with the difference: who weakened what."""
SHOWN_CHANGES: Final = frozenset({"grantpolicies", "policyexceptions"}) | POLICIES
"""Kinds of which every creation and change is told."""
SHOWN_DELETIONS: Final = SHOWN_CHANGES | {"grants", "onetimecodes", "codeuses", "auditsegments"}
_MOST_DIFFERENCES, _LONGEST_DIFFERENCE = 12, 700
_LONGEST_VALUE, _LONGEST_PATH, _LONGEST_WORDS = 60, 200, 200
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_HIDDEN: Final = frozenset({"data", "stringData"})
"""Fields below which values are not repeated: a rule may hold a whole Secret."""
_OURS: Final = POLICY_GROUPS | {OWN_GROUP}


def audited_action(
    request: Mapping[str, Any], now: datetime, *, jobs: frozenset[Job] = frozenset()
) -> audit.AuditedAction | None:
    """Return what a request does that the trail must know, None for everything else.

    `jobs` are those of the controllers that the request is made for. What the account of grants does to grants, to their
    exceptions and to records is told by records of its own; what any other of ours does is told of like anybody's.
    """
    resource = request.get("resource") or {}
    plural = str(resource.get("resource") or "") if resource.get("group") in _OURS else ""
    new, old = request.get("object"), request.get("oldObject")
    if request.get("operation") == "DELETE":
        return _deletion(request, plural, old or {}, now, jobs)
    if not isinstance(new, dict):
        return None
    if plural in SHOWN_CHANGES:
        if Job.GRANTS in jobs and _is_granted(new):
            return None
        is_hold = plural in POLICIES and old is not None and _held(old) == _held(new)
        told = _mark(request, new, old or {}) if is_hold else None
        return told or _change(request, plural, new, old)
    return _mark(request, new, old or {})


def _deletion(
    request: Mapping[str, Any], plural: str, old: Object, now: datetime, jobs: frozenset[Job]
) -> audit.AuditedAction | None:
    if plural not in SHOWN_DELETIONS or (old.get("metadata") or {}).get("deletionTimestamp"):
        # Whoever asks again for what is being deleted already has not deleted it.
        return None
    is_exception = plural == "policyexceptions"
    if Job.GRANTS in jobs and not is_exception:
        return None
    if is_exception and _is_granted(old) and not jobs.isdisjoint({Job.GRANTS, Job.CLEANUP}):
        # The records of its grant tell when it is over, and no clean-up but that at its end reaches it.
        return None
    if Job.CLEANUP in jobs and is_exception and _is_over(old, now):
        return audit.AuditedAction("expired", _about(request, old), "", _policy(old))
    state = str((old.get("status") or {}).get("state") or "")
    reason = f"it was {state}" if state else ""
    return audit.AuditedAction("delete", _about(request, old), reason, _policy(old))


def _is_granted(obj: Object) -> bool:
    return vocabulary.GRANT in _annotations(obj)


def _is_over(obj: Object, now: datetime) -> bool:
    """Tell whether an exception has an end, by whichever way of saying so, that is past."""
    annotated = _annotations(obj).get(vocabulary.EXPIRES_AT) or (obj.get("spec") or {}).get(
        "expiresAt"
    )
    ends = [rfc3339.read(str(annotated or ""))]
    with suppress(EvaluationError):
        ends.append(due_at(obj))
    return any(end is not None and end <= now for end in ends)


def _change(
    request: Mapping[str, Any], plural: str, new: Object, old: Object | None
) -> audit.AuditedAction | None:
    if old is None:
        verb = "except" if plural == "policyexceptions" else "create"
        return audit.AuditedAction(verb, _about(request, new), _reason(new), _policy(new))
    if audit.content_of(old) == audit.content_of(new):
        return None
    reason = _reason(new)
    if plural in POLICIES or plural == "grantpolicies":
        reason = "; ".join(filter(None, (reason[:_LONGEST_WORDS], difference(old, new))))
    # what was asked for first may have been refused, and is not what was done then
    state = f"{_version(old)}/{audit.content_of(new)}"
    return audit.AuditedAction("change", _about(request, new), reason, _policy(new), state)


def difference(old: Object, new: Object) -> str:
    """Return what a change makes of what people decide, as `path: before → after`; rules are named, not numbered."""
    before, after = dict(_leaves(_decided(old))), dict(_leaves(_decided(new)))
    paths = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    told: list[str] = []
    for path in paths[:_MOST_DIFFERENCES]:
        one = _differs(path, before.get(path), after.get(path))
        if sum(map(len, told)) + len(one) > _LONGEST_DIFFERENCE:
            break
        told.append(one)
    rest = len(paths) - len(told)
    return "; ".join([*told, *([f"and {rest} more"] if rest else [])])


def _decided(obj: Object) -> Object:
    """Return what people decide about an object, without the copy of it that kubectl keeps."""
    annotations = {name: text for name, text in _annotations(obj).items() if name != _APPLIED}
    return {
        "spec": obj.get("spec"),
        "annotations": annotations,
        "labels": part(obj, "metadata", "labels"),
    }


def _held(obj: Object) -> Object:
    """Return what people decide about an object but for what holds back its clean-ups."""
    decided = _decided(obj)
    kept = {name: text for name, text in decided["annotations"].items() if name not in _HOLDS}
    return {**decided, "annotations": kept}


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield what an object holds by its path; entries of lists by name where they have one."""
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from _leaves(one, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value:
        for number, one in enumerate(value):
            named = one.get("name") if isinstance(one, dict) else None
            yield from _leaves(one, f"{path}[{named or number}]")
    elif value is not None:
        yield path, value


def _differs(path: str, before: object, after: object) -> str:
    is_hidden = not _HIDDEN.isdisjoint(path.replace("[", ".").split("."))
    path = _brief(path, _LONGEST_PATH)
    if is_hidden:
        return f"{path}: changed"
    if before is None or after is None:
        return f"{path}: {'added' if before is None else 'removed'} {_brief(after if before is None else before)}"
    return f"{path}: {_brief(before)} → {_brief(after)}"


def _brief(value: object, most: int = _LONGEST_VALUE) -> str:
    text = compact_json(value) if not isinstance(value, str) else value
    return "a text" if "\n" in text else text if len(text) <= most else f"{text[:most]}…"


def _mark(request: Mapping[str, Any], new: Object, old: Object) -> audit.AuditedAction | None:
    """Return the first of the annotations against clean-ups that a request sets, changes or takes away."""
    before, after = _annotations(old), _annotations(new)
    for name, (setting, taking) in MARKS.items():
        if after.get(name) != before.get(name):
            verb = setting if name in after else taking
            text = str(
                after.get(name) or after.get(vocabulary.CLEANUP_REASON) or before.get(name) or ""
            )
            return audit.AuditedAction(
                verb, _about(request, new), text, "", f"{_version(old)}/{text}"
            )
    return None


def _about(request: Mapping[str, Any], obj: Object) -> Object:
    metadata, kind = obj.get("metadata") or {}, request.get("kind") or {}
    return {
        "apiVersion": "/".join(filter(None, (kind.get("group"), kind.get("version")))),
        "kind": str(kind.get("kind") or ""),
        "namespace": str(request.get("namespace") or ""),
        "name": str(metadata.get("name") or request.get("name") or ""),
        "uid": str(metadata.get("uid") or ""),
    }


def _policy(obj: Object) -> str:
    """Return the policy and rules that an object of ours is about, as the trail writes them."""
    spec = obj.get("spec") or {}
    namespace = str((obj.get("metadata") or {}).get("namespace") or "")
    for one in items(spec, "exceptions"):
        return f"{one.get('policyName')}/{','.join(map(str, one.get('ruleNames') or ()))}"
    for one in items(spec, "policyRefs"):
        return identity_of(str(one.get("name")), str(one.get("kind")), namespace)
    if isinstance(spec.get("policy"), str):
        return subject_text(spec["policy"], map(str, spec.get("rules") or ()))
    return ""


def _reason(obj: Object) -> str:
    return str(_annotations(obj).get(vocabulary.REASON) or "")


def _version(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("resourceVersion") or "")


def _annotations(obj: Object) -> Mapping[str, Any]:
    return part(obj, "metadata", "annotations")


NOT_NOTED = "this could not be written down for the audit trail"
_log = logging.getLogger(__name__)


class AuditRecorder:
    """Writes notes; `review` answers the path. `jobs_of` tells for which of our jobs a user's requests are."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        namespace: str,
        key: bytes,
        jobs_of: Callable[[str], frozenset[Job]],
        discovery: Discovery | None = None,
    ) -> None:
        self._live = Live(client, discovery or Discovery(client))
        self._client, self._clock, self._namespace = client, clock, namespace
        self._key, self._jobs_of = audit.note_key(key), jobs_of

    async def review(self, _rest: str, body: bytes, budget: float) -> bytes:
        """Let a request through, once it is written down where it has to be."""
        request = envelope.read_request(body)
        uid = str(request["uid"])
        if request.get("dryRun") is True:
            return envelope.allowed(uid)
        try:
            async with asyncio.timeout(budget):
                await self._note(request)
        except (TimeoutError, EngineError) as error:
            _log.warning("%s: %s", NOT_NOTED, type(error).__name__)
            return envelope.allowed(uid, [NOT_NOTED])
        except Exception:
            _log.exception(NOT_NOTED)
            return envelope.allowed(uid, [NOT_NOTED])
        return envelope.allowed(uid)

    async def _seen(
        self, request: Mapping[str, Any]
    ) -> tuple[audit.Shown, Mapping[str, Any]] | None:
        """Return what is to be looked for after a request that nobody proved, and the request by what the cluster shows.

        None for a request that says of the cluster what it does not show. Raises KubeError where it cannot be asked.
        """
        operation, new = request.get("operation"), request.get("object")
        live = await self._live.of(request)
        if operation == "DELETE":
            return None if live is None else (audit.Shown("gone"), {**request, "oldObject": live})
        if not isinstance(new, dict):
            return None
        after = audit.content_of(new)
        if operation == "CREATE":
            return None if live is not None else (audit.Shown("made", after), request)
        if live is None or audit.content_of(live) != audit.content_of(
            request.get("oldObject") or {}
        ):
            return None
        return (audit.Shown("changed", after), {**request, "oldObject": live}) if audit.content_of(live) != after else None  # fmt: skip

    async def _note(self, request: Mapping[str, Any]) -> None:
        user, now = user_of(request), self._clock.now()
        action = audited_action(request, now, jobs=self._jobs_of(user))
        if action is None:
            return
        if not is_proven():
            seen = await self._seen(request)
            if seen is None:
                return
            shown, request = seen
            action = audited_action(request, now, jobs=self._jobs_of(user))
            if action is None:
                return
            action = replace(action, shown=shown)
        groups = tuple(map(str, (request.get("userInfo") or {}).get("groups") or ()))
        note = audit.note_of(
            action, user, now, namespace=self._namespace, key=self._key, groups=groups[:16]
        )
        try:
            await self._client.create(AUDIT_NOTES, note)
        except AlreadyExists:
            # Another replica, or the same request run again, has told of it.
            return


class ReuseRecorder:
    """Notes who brings a code again that was used already; each person once for a code, and not more than a few for it."""

    def __init__(self, client: Client, clock: Clock, namespace: str, key: bytes) -> None:
        self._client, self._clock, self._namespace = client, clock, namespace
        self._key = audit.note_key(key)

    async def note(self, user: str, target: Object, uses: Iterable[str]) -> None:
        """Note that somebody brought codes for an object, by the names of their uses if there were any; raises KubeError."""
        now = self._clock.now()
        for name in uses:
            use = await find(self._client, CODE_USES, name, self._namespace)
            if (
                use is None
                or _is_own(use, user, target, now)
                or audit.to_tell_next(use, user) is None
            ):
                continue
            note = audit.note_of(_reuse_of(use, target), user, now, namespace=self._namespace, key=self._key)  # fmt: skip
            try:
                await self._client.create(AUDIT_NOTES, note)
            except AlreadyExists:
                # The leader has not come to what was told of this person before.
                continue


def _is_own(use: Object, user: str, target: Object, now: datetime) -> bool:
    """Tell whether a code was used by this very request, which several webhooks are asked about and which may be run again."""
    spec = use["spec"]
    at = rfc3339.read(str(spec.get("usedAt") or ""))
    is_same = spec.get("user") == user and (spec.get("object") or {}).get("uid") == target.get("uid")  # fmt: skip
    return is_same and at is not None and now - at <= SAME_ATTEMPT


def _reuse_of(use: Object, target: Object) -> audit.AuditedAction:
    metadata, spec = use["metadata"], use["spec"]
    binding = spec.get("binding") or {}
    about = {"apiVersion": CODE_USES.api_version, "kind": CODE_USES.kind, **{key: metadata.get(key, "") for key in ("namespace", "name", "uid")}}  # fmt: skip
    used = f"already used by {spec.get('user')} at {spec.get('usedAt')}"
    policy = f"{binding.get('policy', '')}/{','.join(binding.get('rules') or ())}"
    named = "/".join(str(target[key]) for key in ("kind", "namespace", "name") if target.get(key))
    return audit.AuditedAction(audit.REUSE, about, f"{used}; brought again for {named}", policy)
