"""What was judged, remembered in a ConfigMap of ours, so that the next leader goes on where the last one was.

Of each kind it is known by which policies its objects were judged, as of which version of the kind, and which objects were
left. An object that is no newer, in a namespace with the same labels, has its rows already. Resource versions are compared as
numbers; where one is none, everything is judged anew.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from controllers.kube import Forbidden, NotFound, find
from controllers.kube.client import MERGE
from controllers.kube.kinds import CONFIG_MAPS
from controllers.manifests.choice import VERSION
from controllers.store.policies import content_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from controllers.kube import Kind
    from controllers.loops.context import LoopContext
    from engine.evaluate import CompiledPolicy
    from engine.model import Json, Object

NAME: Final = "kpolicy-scan"
_KEY: Final = "judged"
MOST: Final = 900_000
"""Bytes, of the million that a ConfigMap holds; what is more is not remembered."""
MOST_LEFT: Final = 1_000
"""Objects that are left of a kind at which it counts as judged nevertheless."""
STILL_THERE: Final = 0.9
"""The part of the reports that must still be there: where more of them are gone, somebody deleted them."""

_log = logging.getLogger(__name__)
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Judged:
    """The objects of one kind: judged by policies with a digest, as of a version, all but those that were `left`."""

    policies: str
    version: int
    left: frozenset[_Key] = frozenset()


class ScanMemory:
    """What was judged, by kind. `recall` it before anything is judged, and `keep` it from time to time.

    `is_first` where there was no report at all then: nobody has to look for one before it is made.
    """

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        self._judged: dict[str, Judged] = {}
        self._namespaces: dict[str, str] = {}
        self._written: str | None = None
        self.is_first = False

    async def recall(self) -> None:
        """Read what the last leader judged; raises KubeError. Nothing is known where its reports are not there any more."""
        context = self._context
        there = await self._reports()
        self.is_first = not there
        try:
            found = await find(context.client, CONFIG_MAPS, NAME, context.namespace)
        except Forbidden as error:
            _log.warning("everything is judged anew: %s", error.message)
            return
        if found is None:
            return
        self._written = str((found.get("data") or {}).get(_KEY) or "")
        judged, namespaces, reports = _read(self._written)
        if there >= STILL_THERE * reports:
            self._judged, self._namespaces = judged, namespaces

    def knows(self, kind: Kind, obj: Object, policies: str) -> bool:
        """Tell whether an object was judged, as it is, by the policies with a digest."""
        judged = self._judged.get(str(kind))
        if judged is None or judged.policies != policies:
            return False
        metadata = obj["metadata"]
        namespace = str(metadata.get("namespace") or "")
        version = version_of(metadata.get("resourceVersion"))
        return (
            version is not None
            and version <= judged.version
            and (namespace, str(metadata["name"])) not in judged.left
            and (not namespace or self._namespaces.get(namespace) == self._labels(namespace))
        )

    def forget(self, kind: Kind) -> None:
        """Know nothing more of a kind: by what its objects are judged is about to change."""
        self._judged.pop(str(kind), None)

    def forget_namespace(self, name: str) -> None:
        """Know nothing more of a namespace: its labels changed."""
        self._namespaces.pop(name, None)

    async def keep(self, judged: Mapping[Kind, Judged], namespaces: Iterable[str]) -> None:
        """Remember what is judged by now, of kinds that have objects in some namespaces; raises KubeError."""
        if not judged and self._written is None:
            return
        kinds = {
            str(kind): [one.policies, one.version, sorted(one.left)] for kind, one in judged.items()
        }
        labels = {one: self._labels(one) for one in sorted(namespaces)}
        document = {"kinds": kinds, "namespaces": labels, "reports": await self._reports()}
        text = orjson.dumps(document).decode()
        if text == self._written or len(text) > MOST:
            return
        client, namespace = self._context.client, self._context.namespace
        data, labels = {_KEY: text}, {"app.kubernetes.io/part-of": "kyverno"}
        try:
            await client.patch(CONFIG_MAPS, NAME, namespace, {"data": data}, content_type=MERGE)
        except NotFound:
            made = CONFIG_MAPS.document(NAME, namespace, labels=labels, data=data)
            await client.create(CONFIG_MAPS, made)
        self._written = text

    async def _reports(self) -> int:
        """Return how many reports there are."""
        kinds, count = self._context.options.report_kinds, 0
        for kind in (kinds.namespaced, kinds.cluster_wide):
            page = await self._context.client.list(kind, limit=1)
            count += len(page.items) + page.remaining
        return count

    def _labels(self, namespace: str) -> str:
        labels = self._context.cache.namespaces.labels(namespace)
        return "" if labels is None else _digest(dict(labels))


def digest_of(context: LoopContext, policies: Mapping[str, CompiledPolicy], others: Json) -> str:
    """Return a digest of everything that objects are judged by, in whichever process: `others` says what is beside policies."""
    snapshot = context.snapshot
    return _digest(
        [
            VERSION,
            others,
            repr(context.cache.configuration.filters),
            context.options.report_kinds.namespaced.api_version,
            sorted(
                [key, content_hash(one.policy.raw), [rule.rule.name for rule in one.rules]]
                for key, one in policies.items()
            ),
            sorted([key, content_hash(one.raw)] for key, one in snapshot.exceptions_by_key.items()),
        ]
    )


def digest_of_object(obj: Object) -> bytes:
    """Return a digest of what policies look at; status and bookkeeping do not count."""
    metadata = obj["metadata"]
    meaning = {
        **{key: value for key, value in obj.items() if key not in ("metadata", "status")},
        "metadata": {
            key: metadata.get(key)
            for key in (
                "labels",
                "annotations",
                "finalizers",
                "ownerReferences",
                "deletionTimestamp",
            )
        },
    }
    return hashlib.blake2b(orjson.dumps(meaning, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()  # fmt: skip


def version_of(text: Json) -> int | None:
    """Return a resource version as a number, None where it is none."""
    return int(text) if isinstance(text, str) and text.isdecimal() else None


def _digest(value: Json) -> str:
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def _read(text: str) -> tuple[dict[str, Judged], dict[str, str], int]:
    """Return what a text remembers: kinds, labels of namespaces, how many reports; nothing of one that is not as we write it."""
    try:
        found = orjson.loads(text)
        judged = {
            kind: Judged(policies, int(version), frozenset((one[0], one[1]) for one in left))
            for kind, (policies, version, left) in found["kinds"].items()
        }
        return judged, dict(found["namespaces"]), int(found["reports"])
    except (AttributeError, LookupError, TypeError, ValueError):
        return {}, {}, 0
