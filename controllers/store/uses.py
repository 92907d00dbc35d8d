"""Uses of codes as objects: one CodeUse per code, which whoever comes first creates; there is no way to create it twice.

INVARIANT: a use that is written is never taken back. A request that was sent again finds its own use and passes; any other
finds somebody's and does not.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import AlreadyExists, Client, find
from controllers.kube.kinds import CODE_USES
from engine.codes import body_digest
from engine.digest import word_of
from engine.lang import rfc3339
from engine.lang.gotext import compact_json

from .audit import mac_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object

NOTHING: Final[Mapping[str, str]] = {}
USER: Final = "kpolicy.io/user-hash"
POLICY: Final = "kpolicy.io/policy-hash"
_LABEL: Final = 32
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
UNPROVEN: Final = "unproven"
"""Field of a use that nobody proved the API server to have asked for: it is a reservation until the cluster shows another state."""
ABSENT: Final = "absent"
SAME_ATTEMPT: Final = timedelta(seconds=40)
"""How long an update may be run again: beyond the API server's own ceiling of 34 s."""
_AHEAD: Final = timedelta(seconds=5)
"""How far the clock of the replica that wrote a use may be ahead of ours; what came later than that is not known to be the same."""


@dataclass(frozen=True, slots=True)
class CodeUseRecord:
    """One request that wants to use a code.

    `target` says which object (apiVersion, kind, namespace, name, uid); `fingerprint` is the digest of its body; `source` is
    the name of an issued code's object, or `minted`. With `seen` nobody proved that the API server
    asks: it says what the cluster showed before (`state_of`), and the attempt counts once the cluster shows something else.
    """

    name: str
    user: str
    policy: str
    rules: tuple[str, ...]
    operation: str
    target: Object
    fingerprint: str
    source: str
    at: datetime
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A use on record: when, of what (as `CodeUseRecord.source`), and what became of it."""

    at: datetime
    source: str
    state: str


class Uses:
    """The uses in a namespace; `key` signs each, so that an edited one can be told."""

    def __init__(self, client: Client, namespace: str, key: bytes) -> None:
        self._client, self._namespace, self._key = client, namespace, key

    async def records(self, user: str, policy: str) -> dict[str, Record]:
        """Return the uses of a user's codes for a policy (by key) that are on record, by name; raises KubeError."""
        selector = ",".join(f"{key}={value}" for key, value in labels_of(user, policy).items())
        page = await self._client.list_all(CODE_USES, self._namespace, label_selector=selector)
        found = {}
        for one in page.items:
            spec, status = one.get("spec") or {}, one.get("status") or {}
            at = rfc3339.read(str(spec.get("usedAt") or "")) or _LONG_AGO
            record = Record(at, str(spec.get("code") or ""), str(status.get("state") or ""))
            found[str(one["metadata"]["name"])] = record
        return found

    async def take(self, attempt: CodeUseRecord) -> bool:
        """Use a code: True where this attempt has it, now or already; raises KubeError when that is not known."""
        try:
            document = use_document(attempt, self._namespace, self._key)
            await self._client.create(CODE_USES, document)
        except AlreadyExists:
            found = await self._client.get(CODE_USES, attempt.name, self._namespace)
            return is_same(attempt, found.get("spec") or {})
        return True

    async def could_take(self, attempt: CodeUseRecord) -> bool:
        """Tell whether `take` would succeed, without writing anything; raises KubeError."""
        found = await find(self._client, CODE_USES, attempt.name, self._namespace)
        return found is None or is_same(attempt, found.get("spec") or {})


def use_document(
    attempt: CodeUseRecord, namespace: str, key: bytes, also: Mapping[str, str] = NOTHING
) -> Object:
    """Return the object that records a use, signed with `key`; `also` are further fields of its spec."""
    spec: dict[str, Any] = {
        "user": attempt.user,
        "code": attempt.source,
        "operation": attempt.operation,
        "binding": {"policy": attempt.policy, "rules": list(attempt.rules)},
        "object": dict(attempt.target),
        "fingerprint": attempt.fingerprint,
        "usedAt": rfc3339.write(attempt.at),
        **({UNPROVEN: attempt.seen} if attempt.seen else {}),
        **also,
    }
    spec["mac"] = mac_of(attempt.name, spec, key)
    labels = labels_of(attempt.user, attempt.policy)
    return CODE_USES.document(attempt.name, namespace, labels=labels, spec=spec)


def labels_of(user: str, policy: str) -> dict[str, str]:
    """Return the labels by which the uses of a user's codes for a policy are found; names of users are no labels."""
    return {USER: word_of(user, _LABEL), POLICY: word_of(policy, _LABEL)}


def state_of(live: Object | None) -> str:
    """Return what stands for the state of an object as people decide about it: a digest, `ABSENT` for none.

    The same content after a change and its opposite is another state, where the object shows that it was changed.
    """
    if live is None:
        return ABSENT
    metadata = live.get("metadata") or {}
    # a status is written by programs all the time, so with one the version of the object says nothing about people
    written = None if "status" in live else metadata.get("resourceVersion")
    return _digest([content_of(live), metadata.get("generation") or written])


def content_of(obj: Object) -> str:
    """Return a digest of what people decide about in an object: its body, labels and annotations."""
    metadata = obj.get("metadata") or {}
    return _digest([body_digest(obj), metadata.get("labels"), metadata.get("annotations")])


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(compact_json(parts).encode("utf-8", "surrogatepass")).hexdigest()


def use_key(key: bytes) -> bytes:
    """Return the key that uses are signed with, from the one that all replicas share."""
    return hmac.digest(key, b"kpolicy code use", "sha256")


def is_same(attempt: CodeUseRecord, spec: Object) -> bool:
    """Tell whether a use is of this very attempt, which the API server may send several times."""
    uid = attempt.target.get("uid")
    before = spec.get("object") or {}
    if not uid or before.get("uid") != uid or spec.get("user") != attempt.user:
        return False
    if spec.get("operation") != attempt.operation or spec.get("fingerprint") != attempt.fingerprint:
        return False
    at = rfc3339.read(str(spec.get("usedAt") or ""))
    return attempt.operation == "CREATE" or (
        at is not None and -_AHEAD <= attempt.at - at <= SAME_ATTEMPT
    )
