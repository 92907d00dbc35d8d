"""What must hold of a history, whatever happened in it; each finding is one line.

The invariants are those of `docs/semantics.md` by their numbers, and what is promised of grants. What is wrong with an object
is judged in words of the tests' own (`people.is_wrong`), from the versions that were stored.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from controllers.loops.codes.confirming import FINAL as SETTLED
from controllers.store.audit import seal_key
from controllers.store.uses import SAME_ATTEMPT
from engine.audit import segment_of, verify
from engine.codes import body_digest, use_name
from engine.grants import FINAL
from engine.grants import FINAL as OVER

from .people import APPROVERS, is_wrong
from .record import STORED
from .register import Operation, is_linearizable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .record import History, Version

LATE = 75.0
"""Seconds that may lie between the judgement of a request and its storage, and that a replica may know an exception longer
than it is there: one that was stopped, and the API server's own ceiling."""
NOT_ACCEPTED = "the code is not accepted"


def broken(history: History, key: bytes) -> list[str]:
    """Return everything that does not hold; `key` is the one that replicas share."""
    return [
        *_unrecorded(history),
        *_uses(history),
        *_registers(history),
        *_approvals(history),
        *_grants(history),
        *_exceptions(history),
        *_trail(history, key),
    ]


# I2: nothing passes unrecorded.


def _unrecorded(history: History) -> Iterator[str]:
    for plural in ("pods", "configmaps"):
        for versions in _by_uid(history.versions.get(plural, ())).values():
            before: dict[str, Any] | None = None
            is_older = versions[0].uid in history.older
            for one in versions:
                if one.type == "DELETED":
                    break
                if is_wrong(one.object) and not _is_explained(history, before, one, is_older=is_older):  # fmt: skip
                    metadata = one.object["metadata"]
                    yield f"I2: at {one.at:.2f} {plural} {metadata['namespace']}/{metadata['name']} ({one.uid}) is stored with a violation that no use, grant or exception explains"
                    break
                before = one.object


def _is_explained(
    history: History, before: dict[str, Any] | None, one: Version, *, is_older: bool
) -> bool:
    found = body_digest(one.object)
    if before is None and is_older:
        return True
    if before is not None and is_wrong(before) and (is_older or body_digest(before) == found):
        return True
    if any(
        use["spec"]["object"].get("uid") == one.uid and use["spec"]["fingerprint"] == found
        for use in _all_uses(history)
    ):
        return True
    return any(_covers(exception, one) for exception in history.versions.get("policyexceptions", ()))  # fmt: skip


def _covers(exception: Version, one: Version) -> bool:
    """Tell whether an unlimited exception that was there, or was a moment ago, lets an object pass."""
    obj = exception.object
    annotations = obj["metadata"].get("annotations") or {}
    if exception.type == "DELETED" or "kpolicy.io/uses" in annotations or exception.at > one.at:
        return False
    [block] = [each["resources"] for each in obj["spec"]["match"]["any"]]
    named = one.object["metadata"]
    if one.object.get("kind") not in block["kinds"] or named["namespace"] not in block["namespaces"] or named["name"] not in block.get("names", ()):  # fmt: skip
        return False
    return one.at <= exception.until + LATE and _instant(annotations["kpolicy.io/expires-at"]) + timedelta(seconds=LATE) >= exception.clock + timedelta(seconds=one.at - exception.at)  # fmt: skip


# I1, I3, I4: uses.


def _uses(history: History) -> Iterator[str]:
    last = history.last("codeuses")
    names = [use["metadata"]["name"] for use in last.values()]
    if len(set(names)) != len(names):
        yield "I1: a code has two uses"
    dry = {one.uid for one in history.attempts if one.dry_run}
    there = {uid for plural in ("pods", "configmaps") for uid in _by_uid(history.versions.get(plural, ()))}  # fmt: skip
    for use in last.values():
        name, spec = use["metadata"]["name"], use["spec"]
        state = (use.get("status") or {}).get("state")
        if state not in SETTLED:
            yield f"I3: {name} is neither confirmed nor not persisted, but {state}"
        uid = spec["object"].get("uid")
        if state == "Confirmed" and uid not in there:
            yield f"I3: {name} is confirmed, and its object was never stored"
        if uid in dry and uid not in there:
            yield f"I4: {name} was written by a dry run"


def _registers(history: History) -> Iterator[str]:
    """Check each code as a register that is used once, by what people were told."""
    operations: dict[str, list[Operation]] = defaultdict(list)
    stored: dict[str, set[str]] = defaultdict(set)
    uses = {use["metadata"]["name"]: use for use in _all_uses(history)}
    for number, one in enumerate(history.attempts):
        if one.dry_run or (one.what not in ("create", "patch") and not one.what.startswith("as ")):
            continue
        if len(one.codes) != 1:
            continue
        [code] = one.codes
        use = uses.get(use_name(code))
        took: bool | None = None
        if one.outcome == STORED and use is not None and use["spec"]["object"].get("uid") == one.uid and use["spec"]["operation"] == _operation(one.what):  # fmt: skip
            took = True
            stored[code].add(one.uid)
        elif one.outcome != STORED and NOT_ACCEPTED in one.answer and use is not None and _is_theirs(one, use):  # fmt: skip
            took = False
        elif one.outcome == STORED:
            continue
        by = one.uid if took else f"attempt {number}"
        operations[code].append(Operation(one.began, one.ended, by, took))
    for code, found in operations.items():
        if len(stored[code]) > 1:
            yield f"I1: one code let {len(stored[code])} objects be stored"
        if not history.steps_clock and len(found) <= 14 and not is_linearizable(found):
            yield f"I1: what was told about one code is not that of something used once: {found}"
    yield from _transitions(history)


def _operation(what: str) -> str:
    return "UPDATE" if what == "patch" else "CREATE"


def _is_theirs(one: Any, use: dict[str, Any]) -> bool:
    """Tell whether somebody brought their own code for what it is for."""
    target = use["spec"]["object"]
    metadata = one.obj["metadata"]
    return one.user == use["spec"]["user"] and (one.obj.get("kind"), metadata.get("namespace"), metadata.get("name")) == (target["kind"], target["namespace"], target["name"]) and body_digest(one.obj) == use["spec"]["fingerprint"] and _operation(one.what) == use["spec"]["operation"]  # fmt: skip


def _transitions(history: History) -> Iterator[str]:
    """Count how often each use brought an object into its state: once, or again within the time of one attempt."""
    uses = defaultdict(list)
    for use in _all_uses(history):
        uses[use["spec"]["object"].get("uid")].append(use)
    for plural in ("pods", "configmaps"):
        for uid, versions in _by_uid(history.versions.get(plural, ())).items():
            entered: dict[str, list[Version]] = defaultdict(list)
            before = None
            for one in versions:
                if one.type == "DELETED":
                    break
                if is_wrong(one.object) and (before is None or body_digest(before) != body_digest(one.object)):  # fmt: skip
                    entered[body_digest(one.object)].append(one)
                before = one.object
            for found, times in entered.items():
                ways = [use for use in uses[uid] if use["spec"]["fingerprint"] == found]
                later = [one for one in times if all(one.clock > _instant(use["spec"]["usedAt"]) + SAME_ATTEMPT + timedelta(seconds=LATE - 40) for use in ways)]  # fmt: skip
                if ways and later and uid not in history.older:
                    yield f"I1: {uid} came into the state of a use long after it"


def _approvals(history: History) -> Iterator[str]:
    """Check that codes which somebody else must give were given by somebody else."""
    given = {one["metadata"]["name"]: one for one in _everything(history, "onetimecodes")}
    for use in _all_uses(history):
        source = str(use["spec"].get("code") or "")
        if source.startswith(("code-", "approval-")):
            by = (given.get(source) or {}).get("spec", {}).get("issuedBy")
            if by not in APPROVERS or by == use["spec"]["user"]:
                yield f"four eyes: {use['metadata']['name']} of {use['spec']['user']} was agreed to by {by or 'nobody'}"
        elif use["spec"]["object"].get("namespace", "").startswith("appr") and not use["spec"].get(
            "grant"
        ):
            yield f"four eyes: {use['metadata']['name']} has nobody's approval"


# Grants and their exceptions.


def _grants(history: History) -> Iterator[str]:
    for uid, versions in _by_uid(history.versions.get("grants", ())).items():
        end, over = "", ""
        for one in versions:
            if one.type == "DELETED":
                break
            status, spec = one.object.get("status") or {}, one.object["spec"]
            state, ends = status.get("state") or "draft", status.get("expiresAt") or end
            if over and state != over:
                yield f"grants: {uid} was {over} and is {state}"
            if end and ends > end:
                yield f"grants: the end of {uid} moved from {end} to {ends}"
            if state == "active" and not _is_agreed(spec):
                yield f"four eyes: {uid} of {spec['requester']} is active by {spec.get('decisions')}"
            end, over = min(filter(None, (end, ends)), default=""), state if state in OVER else ""
        state = (versions[-1].object.get("status") or {}).get("state")
        if versions[-1].type != "DELETED" and state not in FINAL and not history.steps_clock:
            yield f"grants: {uid} is {state} when everything is over"


def _is_agreed(spec: dict[str, Any]) -> bool:
    return any(one["verdict"] == "approve" and one["by"] in APPROVERS and one["by"] != spec["requester"] for one in spec.get("decisions") or ())  # fmt: skip


def _exceptions(history: History) -> Iterator[str]:
    ends = {}
    for one in history.versions.get("grants", ()):
        if found := (one.object.get("status") or {}).get("expiresAt"):
            ends[one.uid] = found
    for one in history.versions.get("policyexceptions", ()):
        [owner] = one.object["metadata"].get("ownerReferences") or [{"uid": ""}]
        end = one.object["metadata"]["annotations"]["kpolicy.io/expires-at"]
        if owner["uid"] not in ends or end > ends[owner["uid"]]:
            yield f"grants: an exception ends at {end}, its grant at {ends.get(owner['uid'], 'no time')}"
    for obj in history.last("policyexceptions").values():
        yield f"grants: {obj['metadata']['name']} is there when everything is over"


def _trail(history: History, key: bytes) -> Iterator[str]:
    segments = list(history.last("auditsegments").values())
    segments.sort(key=lambda one: one["spec"]["records"][0]["seq"] if one["spec"]["records"] else 0)
    for fault in verify([segment_of(one) for one in segments], (), seal_key(key)):
        yield f"trail: {fault}"
    told = {str(record["id"]) for one in segments for record in one["spec"]["records"]}
    for use in history.last("codeuses").values():
        if not any(use["metadata"]["uid"] in one or use["metadata"]["name"] in one for one in told):
            yield f"trail: it does not know {use['metadata']['name']}"


# How a history is read.


def _by_uid(versions: Any) -> dict[str, list[Version]]:
    found: dict[str, list[Version]] = defaultdict(list)
    for one in versions:
        found[one.uid].append(one)
    return found


def _everything(history: History, plural: str) -> list[dict[str, Any]]:
    """Return each object of a kind that ever was, as it was last."""
    return [versions[-1].object for versions in _by_uid(history.versions.get(plural, ())).values()]


def _all_uses(history: History) -> list[dict[str, Any]]:
    return _everything(history, "codeuses")


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
