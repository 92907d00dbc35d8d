"""Notes for the audit trail: what a webhook saw somebody do, kept as an object until the leader has put it into the trail.

Only the leader writes the trail, but only the webhook that is asked learns who does something. A note is named by what it
tells, so that a request that is put before several replicas, or run again, leaves one; it is signed, so that nobody who may
create objects can put words into the trail.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from controllers.kube.kinds import AUDIT_NOTES
from engine.digest import word_of
from engine.lang import rfc3339
from engine.lang.gotext import compact_json

if TYPE_CHECKING:
    from datetime import datetime

    from engine.model import Object

DELETIONS: Final = frozenset({"delete", "expired"})
"""Verbs of what an object does not come back from."""
REUSE: Final = "reuse"
"""Verb of bringing a code again that was used; the object is the use."""
BROUGHT_BY: Final = "broughtAgainBy"
"""Field of a use's status with those of whom the trail tells that they brought its code again."""
MOST_REUSES: Final = 5
"""Records about one used code: whoever holds it is refused as often as they like, and cannot fill the trail with that."""
LONGEST_REASON: Final = 1024


@dataclass(frozen=True, slots=True)
class AuditedAction:
    """What somebody does: the verb, to which object (apiVersion, kind, namespace, name, uid), and why.

    `state` is what tells this action from the same one done before to the same object. `shown` is what the object must show once the
    action is done, where nobody proved that the API server told of it.
    """

    verb: str
    object: Object
    reason: str = ""
    policy: str = ""
    state: str = ""
    shown: Shown | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What an object shows of an action: that it was `made`, that it was `changed`, or that it is `gone`, and its `content` then."""

    how: str
    content: str = ""


def content_of(obj: Object) -> str:
    """Return a digest of what people decide about an object: its spec, annotations and labels."""
    metadata = obj.get("metadata") or {}
    noted = [metadata.get(name) or {} for name in ("annotations", "labels")]
    told = compact_json([obj.get("spec"), *noted])
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def note_key(key: bytes) -> bytes:
    """Return the key that notes are signed with, from the one that all replicas share."""
    return hmac.digest(key, b"kpolicy audit note", "sha256")


def note_of(
    action: AuditedAction, actor: str, at: datetime, *, namespace: str, key: bytes, groups: tuple[str, ...] = ()
) -> Object:  # fmt: skip
    """Return the object of a note in `namespace`, signed with the `note_key`.

    A deletion may be refused and tried again, so that each second has a note of its own.
    """
    instant = rfc3339.write(at)
    told = [action.verb, actor, action.state, compact_json(action.object)]
    if action.verb in DELETIONS:
        told.append(instant)
    if action.shown is not None:
        told += ["unproven", action.shown.how, action.shown.content]
    name = "note-" + word_of("\0".join(told))
    spec: dict[str, Any] = {
        "verb": action.verb,
        "actor": actor,
        "groups": list(groups),
        "object": dict(action.object),
        "policy": action.policy,
        "reason": action.reason[:LONGEST_REASON],
        "at": instant,
    }
    if action.shown is not None:
        spec |= {
            "unproven": True,
            "shown": {"how": action.shown.how, "content": action.shown.content},
        }
    return {
        "apiVersion": AUDIT_NOTES.api_version,
        "kind": AUDIT_NOTES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**spec, "mac": _mac(name, spec, key)},
    }


def is_ours(note: Object, key: bytes) -> bool:
    """Tell whether a note was signed with the `note_key`."""
    spec = note.get("spec") or {}
    name = str(note["metadata"]["name"])
    mac = str(spec.get("mac") or "").encode("utf-8", "surrogatepass")
    return hmac.compare_digest(_mac(name, spec, key).encode(), mac)


def entry_of(note: Object, result: str) -> dict[str, Any]:
    """Return the record of a note; `result` says whether what was asked for took place."""
    spec = note["spec"]
    target = spec.get("object") or {}
    return {
        "id": entry_id(str(spec.get("verb")), str(target.get("uid") or ""), note["metadata"]["name"], result),
        "time": str(spec.get("at") or ""),
        "actor": str(spec.get("actor") or ""),
        "verb": str(spec.get("verb") or ""),
        "object": {key: str(target.get(key) or "") for key in ("kind", "namespace", "name")},
        "policy": str(spec.get("policy") or ""),
        "result": result,
        "reason": str(spec.get("reason") or ""),
        **({"unproven": True} if is_unproven(note) else {}),
    }  # fmt: skip


def to_tell_next(use: Object, actor: str) -> list[str] | None:
    """Return `BROUGHT_BY` with one more, None where the trail tells of this person or of enough others."""
    known = [str(one) for one in (use.get("status") or {}).get(BROUGHT_BY) or ()]
    return None if actor in known or len(known) >= MOST_REUSES else [*known, actor]


def is_unproven(note: Object) -> bool:
    """Tell whether nobody proved that the API server told of what a note says, so that its actor is only claimed."""
    return bool((note.get("spec") or {}).get("unproven"))


def shown_by(note: Object) -> Shown:
    """Return what the object of an unproven note must show."""
    told = (note.get("spec") or {}).get("shown") or {}
    return Shown(str(told.get("how") or ""), str(told.get("content") or ""))


def entry_id(verb: str, uid: str, note: str = "", result: str = "ok") -> str:
    """Return the id of a record: an object is deleted once, whoever tells of it, and may be refused to be any number of times."""
    return f"{uid}/delete" if verb == "delete" and uid and result == "ok" else note


def _mac(name: str, spec: Object, key: bytes) -> str:
    content = {field: value for field, value in spec.items() if field != "mac"}
    return hmac.digest(key, f"{name}\n{compact_json(content)}".encode("utf-8", "surrogatepass"), "sha256").hex()  # fmt: skip
