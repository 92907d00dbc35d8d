"""What a code may be used for, as bytes that mean exactly one thing.

Changing any part (another user, object, namespace, policy text, violation, cluster) gives other bytes and so another code.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from engine.lang.gotext import compact_json
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Json

_VERSION = b"kpolicy code 2"
_SIZE = 4


@record
class Binding:
    """Everything that a code is bound to.

    `cluster` is the UID of the namespace kube-system; `policy_hash` covers the spec of the policy. `rules` are those that the
    object violates; `violation` is its `fingerprint`. `object_name` is the generateName where there is no name yet;
    `object_uid` is empty on CREATE. `username` is compared byte by byte, and so are `groups`, in whatever order they come.
    """

    cluster: str
    policy_uid: str
    policy_hash: str
    rules: tuple[str, ...]
    violation: str
    group: str
    version: str
    resource: str
    subresource: str
    operation: str
    namespace: str
    namespace_uid: str
    object_name: str
    object_uid: str
    username: str
    groups: tuple[str, ...] = ()

    def bytes(self) -> bytes:
        """Return a form in which no two different bindings are equal: every part is led by its length."""
        groups = sorted({*self.groups})
        parts = [
            self.cluster,
            self.policy_uid,
            self.policy_hash,
            str(len(self.rules)),
            *sorted(self.rules),
            self.violation,
            self.group,
            self.version,
            self.resource,
            self.subresource,
            self.operation,
            self.namespace,
            self.namespace_uid,
            self.object_name,
            self.object_uid,
            self.username,
            str(len(groups)),
            *groups,
        ]
        return _VERSION + _led([part.encode("utf-8", "surrogatepass") for part in parts])


def _led(parts: Iterable[bytes]) -> bytes:
    """Return parts each of which is led by its length."""
    return b"".join([len(part).to_bytes(_SIZE, "big") + part for part in parts])


def fingerprint(violations: Iterable[tuple[str, str, Json]], images: Iterable[str]) -> str:
    """Return a digest of what is wrong: (rule, path, value there) of each violation, and the images of the object.

    Their order does not count. A change elsewhere in the object keeps the fingerprint; another value or image does not.
    """
    found = [compact_json([rule, path, value]).encode() for rule, path, value in violations]
    listed = [image.encode("utf-8", "surrogatepass") for image in {*images}]
    return hashlib.sha256(_led([*sorted(found), b"images", *sorted(listed)])).hexdigest()
