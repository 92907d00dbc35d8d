"""What a clean-up would delete now: conditions evaluated with their context, who owns each object, and what goes with it.

The engine decides (`engine.cleanup`), as it does when the controllers run a policy; here is what it has to be told about the
cluster.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.cleanup.holds import hold_on_object
from engine.errors import EngineError
from engine.fields import items, word
from engine.lang import rfc3339
from engine.reach import Effect, out_of_reach, target_of
from engine.record import record
from kubectl_kpolicy.output.time_format import absolute

from . import celkinds
from .cleanup import hold_of, is_of_label
from .details import Section
from .fetching import named
from .owners import owners_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from controllers.kube import Client
    from controllers.kube.discovery import Discovery
    from controllers.lookups.answering import Lookups
    from controllers.runtime.configuration import Configuration
    from engine.evaluate.cel.exceptions import CompiledCelException
    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row

_DEPENDENTS = ("ReplicaSet", "Job", "Pod")
"""Kinds that controllers make for others; looked through for what goes with an object."""
DEFAULT_PROPAGATION = "Background"


@record
class Planned:
    """One object that a clean-up is about: whether it goes, why, whose it is, and what goes with it."""

    object: Object
    by: str
    at: datetime | None
    goes: bool
    reason: str
    propagation: str = DEFAULT_PROPAGATION
    owners: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


async def plans_of(client: Client, rows: Sequence[Row], now: datetime) -> list[Planned]:
    """Return what becomes of the objects that rows of the Cleanup listing are about; raises EngineError."""
    from controllers.kube.discovery import Discovery
    from controllers.lookups.assembling import for_person

    discovery = Discovery(client)
    await discovery.refresh()
    lookups = for_person(client=client, discovery=discovery)
    planner = Planner(client, discovery, lookups, now)
    try:
        found: list[Planned] = []
        for row in rows:
            if is_of_label(row):
                found.append(await planner.of_label(row.object, row.moment("due")))
            else:
                found += await planner.of_policy(row.object)
        return found
    finally:
        await lookups.close()


class Planner:
    """Plans clean-ups of one cluster at one instant; `lookups` answer the conditions of policies."""

    def __init__(
        self, client: Client, discovery: Discovery, lookups: Lookups, now: datetime
    ) -> None:
        self._client, self._discovery, self._lookups, self._now = client, discovery, lookups, now
        self._below: dict[str, list[Object]] | None = None

    async def of_policy(self, policy: Object) -> list[Planned]:
        """Return what the next run of a cleanup policy is about; raises EngineError."""
        from controllers.loops.rules import candidates
        from engine.cleanup.plan import plan
        from engine.cleanup.timed import is_deleting, read_timed
        from engine.evaluate import Inputs
        from engine.evaluate.asking import conclude_later

        cleanup = read_timed(policy, await self._exceptions() if is_deleting(policy) else ())
        labels, is_filtered = await self._labels(), (await self._configuration()).leaves_out
        key, made = cleanup.policy.key, []
        for kind in candidates(self._discovery, cleanup.policy):
            page = await self._client.list_all(kind, cleanup.policy.namespace)
            asking = plan(cleanup, named(page.items, kind), Inputs(now=self._now), resource=kind.plural, namespace_labels=labels, is_filtered=is_filtered)  # fmt: skip
            found = await conclude_later(asking, self._lookups.resolve)
            made += [await self._planned(one.object, key, found.run_at, found.propagation, goes=one.goes, reason=one.reason) for one in found.decisions]  # fmt: skip
        return made

    async def _exceptions(self) -> list[CompiledCelException]:
        """Return the exceptions that may protect objects from policies written in CEL; raises EngineError."""
        from engine.evaluate.cel.exceptions import compile_cel_exception
        from engine.parse.celpolicies import parse_cel_exception

        found = []
        for kind in await celkinds.kinds(self._client, celkinds.EXCEPTIONS):
            page = await self._client.list_all(kind)
            found += [compile_cel_exception(parse_cel_exception(one, strict=False)) for one in named(page.items, kind)]  # fmt: skip
        return found

    async def of_label(self, obj: Object, at: datetime | None) -> Planned:
        """Return what becomes of an object with a TTL label; raises KubeError."""
        from engine.cleanup.ttl import propagation

        hold = hold_on_object(obj, self._now)
        kept = out_of_reach(Effect.EXPIRE, target_of(obj)) or ("its label cannot be read" if at is None else hold.reason if hold else "")  # fmt: skip
        label = f"label ttl={word(obj, 'metadata', 'labels', vocabulary.TTL_LABEL)}"
        return await self._planned(obj, label, at, propagation(obj), goes=not kept, reason=kept or "its label says so")  # fmt: skip

    async def _configuration(self) -> Configuration:
        """Return what the engine's ConfigMap keeps from all policies; its defaults where it may not be read."""
        from controllers.kube.errors import KubeError
        from controllers.kube.kinds import CONFIG_MAPS
        from controllers.runtime.configuration import read_configuration

        try:
            return read_configuration(await self._client.get(CONFIG_MAPS, "kyverno", "kyverno"))
        except KubeError:
            return read_configuration(None)

    async def _labels(self) -> dict[str, dict[str, str]]:
        """Return the labels of namespaces; none where they may not be read, as selectors by them then hold for nothing."""
        from controllers.kube.errors import KubeError
        from controllers.kube.kinds import NAMESPACES

        try:
            page = await self._client.list_all(NAMESPACES)
        except KubeError:
            return {}
        return {one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in page.items}

    async def _planned(
        self,
        obj: Object,
        by: str,
        at: datetime | None,
        propagation: str,
        *,
        goes: bool,
        reason: str,
    ) -> Planned:
        how = propagation or DEFAULT_PROPAGATION
        takes = await self._takes(obj) if goes and how != "Orphan" else ()
        owners = await owners_of(self._client, self._discovery, obj)
        return Planned(obj, by, at, goes, reason, how, tuple(owners), takes)

    async def _takes(self, obj: Object) -> tuple[str, ...]:
        """Return the objects that belong to one and go with it, through however many others."""
        if self._below is None:
            self._below = await self._dependents()
        found: list[str] = []
        waiting = [word(obj, "metadata", "uid")]
        while waiting:
            for one in self._below.get(waiting.pop(), ()):
                found.append(f"{word(one, 'kind')}/{word(one, 'metadata', 'name')}")
                waiting.append(word(one, "metadata", "uid"))
        return tuple(dict.fromkeys(found))

    async def _dependents(self) -> dict[str, list[Object]]:
        """Return what belongs to an object, by its UID; kinds that may not be listed are left out."""
        found: dict[str, list[Object]] = {}
        for name in _DEPENDENTS:
            for kind in self._discovery.matching("*", "*", name, preferred=True):
                if "list" not in kind.verbs:
                    continue
                with suppress(EngineError):
                    page = await self._client.list_all(kind, metadata_only=True)
                    for obj in page.items:
                        for owner in items(obj, "metadata", "ownerReferences"):
                            below = found.setdefault(word(owner, "uid"), [])
                            below.append({**obj, "kind": kind.kind})
        return found


def as_object(one: Planned) -> Object:
    """Return a plan for one object as data; its fields are a promise."""
    metadata = one.object["metadata"]
    return {
        "apiVersion": vocabulary.KPOLICY,
        "kind": "PlannedDeletion",
        "metadata": {"name": metadata["name"], "namespace": metadata.get("namespace", "")},
        "target": {key: one.object.get(key, "") for key in ("apiVersion", "kind")} | {"uid": metadata.get("uid", "")},
        "policy": one.by,
        "at": rfc3339.write(one.at) if one.at else "",
        "goes": one.goes,
        "reason": one.reason,
        "propagation": one.propagation,
        "owners": list(one.owners),
        "takes": list(one.takes),
    }  # fmt: skip


def named_in_full(one: Planned) -> str:
    """Return what a plan is about, in words: the object, its namespace, and how much goes with it."""
    metadata = one.object["metadata"]
    place = f" in {metadata['namespace']}" if metadata.get("namespace") else ""
    takes = f" and {len(one.takes)} that belong to it" if one.takes else ""
    return f"{one.object['kind']}/{metadata['name']}{place}{takes}"


# The preview of a clean-up as sections to read: when it runs, what holds it back, what goes with what, what stays and why.
# Commands print the same plans as a table.

_HOLDS = {"paused": "paused: nothing goes until it is resumed", "skip": "skipped: the next run passes everything over", "postponed": "postponed: nothing goes before then"}  # fmt: skip
_UNREADABLE = "held back: its annotation cannot be read, so that nothing goes until that is changed"


def preview(row: Row, plans: Sequence[Planned], now: datetime) -> list[Section]:
    """Return what the next run of a row of Cleanup would do; `plans` are what was planned for it."""
    going = [one for one in plans if one.goes]
    staying = [one for one in plans if not one.goes]
    hold = hold_of(row, now)
    pairs = [("runs", absolute(row.moment("due")) or "never"), ("goes", str(len(going))), ("stays", str(len(staying)))]  # fmt: skip
    if hold:
        pairs.append(("held", _UNREADABLE if hold.is_unreadable else _HOLDS[hold.state]))
    found = [Section("", pairs=tuple(pairs))]
    for title, part in (("goes", going), ("stays", staying)):
        if part:
            found.append(Section(title, tuple(line for one in part for line in _lines(one))))
    return found


def _lines(one: Planned) -> Iterator[str]:
    yield named_in_full(one)
    yield f"  {one.reason}"
    if one.owners:
        yield f"  of {' < '.join(one.owners)}"
    if one.takes:
        yield f"  with {', '.join(one.takes)}"
