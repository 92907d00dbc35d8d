"""Generated objects in the cluster: found by their labels, compared, made, updated, deleted (rows U-02 to U-06)."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from controllers.kube import AlreadyExists, Conflict, Forbidden, Kind, NotFound
from controllers.kube.client import APPLY, find, retried
from controllers.kube.events import reference
from controllers.kube.kinds import object_reference
from controllers.loops.rules import synchronizes, uses_apply
from controllers.store.cel_policies import is_of_cel
from engine.errors import EvaluationError
from engine.generate.labels import SOURCE_NAMESPACE, SOURCE_UID
from engine.lang.gotext import plain
from engine.reach import Effect, out_of_reach, target_of

from .origin import POLICY_NAMESPACE, Origin, is_copy, is_of, made_by, origin_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from controllers.loops.context import LoopContext
    from engine.evaluate.rules import CompiledRule
    from engine.model import Json, Object

    from .memory import KindName, Memory
    from .memory import Place as RulePlace

FIELD_MANAGER = "kyverno-generate"
_TRIES = 4
_MOST_DISOWNED = 4096
"""Objects without labels of which is remembered whose they were."""

Place = tuple[str, str, str, str]


def place_of(obj: Object) -> Place:
    """Return apiVersion, kind, namespace and name of an object."""
    return reference(object_reference(obj))[:4]


class Downstreams:
    """What rules have made."""

    def __init__(self, context: LoopContext, memory: Memory) -> None:
        self._context = context
        self._client = context.client
        self._memory = memory
        self._disowned: dict[str, Origin] = {}

    async def of_rule(self, place: RulePlace, kinds: Iterable[KindName]) -> list[Object]:
        """Return everything of some kinds that a rule made, which may be no more; raises KubeError."""
        selector, namespace = made_by(place)
        return await self._selected(kinds, selector, namespace)

    async def of_trigger(self, rule: CompiledRule, origin: Origin) -> list[Object]:
        """Return what a rule made for one trigger; raises KubeError."""
        kinds = self._memory.kinds(rule)
        return await self._selected(kinds, origin.selector, origin.policy_namespace)

    async def put(self, rule: CompiledRule, wanted: Object) -> bool:
        """Let an object exist as wanted; return whether it was made. Raises EngineError.

        What is there already is left alone by a rule that does not synchronise (row U-03). A policy written in CEL goes by what
        it made itself: that is put right whenever the policy is asked, everything else is left alone (row GP-12).
        """
        _check_place(rule, wanted)
        kind = await self._context.kind_of_object(wanted)
        _, _, namespace, name = place_of(wanted)
        if not kind.namespaced:
            metadata = {key: one for key, one in wanted["metadata"].items() if key != "namespace"}
            wanted, namespace = {**wanted, "metadata": metadata}, ""
        _check_reach(rule.policy.namespace, kind, wanted)
        put = partial(self._put, rule, kind, wanted, namespace, name)
        return await retried(_TRIES, put, Conflict, AlreadyExists)

    async def delete(self, obj: Object) -> None:
        """Delete an object, if it is still that very one and in reach of the policy that it says made it; raises KubeError."""
        kind = await self._context.kind_of_object(obj)
        made_within = str((obj["metadata"].get("labels") or {}).get(POLICY_NAMESPACE) or "")
        _check_reach(made_within, kind, obj)
        _, _, namespace, name = place_of(obj)
        with suppress(NotFound, Conflict):
            await self._client.delete(kind, name, namespace, uid=obj["metadata"]["uid"])

    async def delete_except(
        self, rule: CompiledRule, origin: Origin, kept: Collection[Place] = ()
    ) -> None:
        """Delete what a rule made for a trigger, except what it wants to exist now; raises KubeError."""
        for obj in await self.of_trigger(rule, origin):
            if place_of(obj) not in kept:
                await self.delete(obj)

    async def delete_without_source(self, rule: CompiledRule, origin: Origin) -> None:
        """Delete copies of which the source is gone (row U-04); raises KubeError."""
        for obj in await self.of_trigger(rule, origin):
            labels = obj["metadata"].get("labels") or {}
            if labels.get(SOURCE_UID) and not await self._has_source(obj, labels):
                await self.delete(obj)

    async def _has_source(self, obj: Object, labels: dict[str, str]) -> bool:
        namespace = labels.get(SOURCE_NAMESPACE, "")
        kind = await self._context.kind_of_object(obj)
        page = await self._client.list_all(kind, namespace, metadata_only=True)
        return any(one["metadata"].get("uid") == labels[SOURCE_UID] for one in page.items)

    async def _selected(
        self, kinds: Iterable[KindName], selector: str, within: str
    ) -> list[Object]:
        """Return what bears labels, of a namespaced policy's in its namespace: elsewhere others wrote them."""
        found: list[Object] = []
        for api_version, kind_name in kinds:
            try:
                kind = await self._context.kind_of(api_version, kind_name)
                if within and not kind.namespaced:
                    continue
                page = await self._client.list_all(kind, within, label_selector=selector)
            except NotFound:
                continue
            found += [{"apiVersion": api_version, "kind": kind_name, **item} for item in page.items]
        return found

    async def _put(
        self, rule: CompiledRule, kind: Kind, wanted: Object, namespace: str, name: str
    ) -> bool:
        existing = await find(self._client, kind, name, namespace)
        if existing is not None:
            _check_reach(rule.policy.namespace, kind, existing, wanted)
            if not self._is_kept(rule, existing, wanted):
                return False
        if uses_apply(rule):
            # server-side apply (row A-22) leaves fields of others alone
            await self._client.patch(
                kind, name, namespace, wanted, content_type=APPLY, field_manager=FIELD_MANAGER, force=True
            )  # fmt: skip
        elif existing is None:
            await self._client.create(kind, wanted)
        elif not is_as_wanted(existing, wanted, is_copy=is_copy(wanted)):
            await self._client.update(kind, replaced(existing, wanted))
        return existing is None

    def disown(self, obj: Object) -> None:
        """Remember whose an object was that somebody took the labels off, or deleted."""
        origin, uid = origin_in(obj), str(obj["metadata"].get("uid") or "")
        if origin is not None and uid:
            self._disowned[uid] = origin
            while len(self._disowned) > _MOST_DISOWNED:
                del self._disowned[next(iter(self._disowned))]

    def _is_kept(self, rule: CompiledRule, existing: Object, wanted: Object) -> bool:
        """Tell whether a rule puts right what is there."""
        if not is_of_cel(rule.policy):
            return synchronizes(rule)
        origin = origin_in(existing)
        lost = self._disowned.get(str(existing["metadata"].get("uid") or ""))
        mine = origin_in(wanted)
        return any(
            one is not None and mine is not None and is_of(one, rule) and one.uid == mine.uid
            for one in (origin, lost)
        )


def _check_reach(within: str, kind: Kind, *states: Object) -> None:
    """Refuse what is out of a policy's reach (row A-25), whatever its variables come to."""
    target = target_of(*states, is_namespaced=kind.namespaced)
    if reason := out_of_reach(Effect.GENERATE, target, within):
        raise Forbidden(reason)


def _check_place(rule: CompiledRule, wanted: Object) -> None:
    """Refuse an object without a name, and one of another namespace than a namespaced Policy's own."""
    metadata = wanted["metadata"]
    if not metadata.get("name"):
        raise EvaluationError("a generated object needs a name")
    namespace = rule.policy.namespace
    if namespace and metadata.get("namespace") != namespace:
        raise Forbidden(f"policy `{rule.policy.key}` may only generate in namespace `{namespace}`")


_NOT_CONTENT = frozenset({"metadata", "status"})


def satisfies(existing: Json, wanted: Json) -> bool:
    """Tell whether a value holds everything that is wanted: maps may hold more, lists not.

    What the server or people add beside is left alone, so that defaults are not fought over (row U-06).
    """
    if isinstance(wanted, dict):
        return isinstance(existing, dict) and all(
            key in existing and satisfies(existing[key], value)
            for key, value in wanted.items()
            if value is not None
        )
    if isinstance(wanted, list):
        return (
            isinstance(existing, list)
            and len(existing) == len(wanted)
            and all(satisfies(*pair) for pair in zip(existing, wanted, strict=True))
        )
    return bool(existing == wanted)


def is_as_wanted(existing: Object, wanted: Object, *, is_copy: bool) -> bool:
    """Tell whether an object needs no update. A copy must equal its source, as what is gone there must go here."""
    if not satisfies(_placed(existing), _placed(wanted)):
        return False
    if is_copy:
        return _content(existing) == _content(wanted)
    return satisfies(_content(existing), _content(wanted))


def replaced(existing: Object, wanted: Object) -> Object:
    """Return an object with the wanted content; labels and annotations of others stay."""
    metadata = dict(existing.get("metadata") or {})
    for name in ("labels", "annotations"):
        more = (wanted.get("metadata") or {}).get(name)
        if more:
            metadata[name] = {**(metadata.get(name) or {}), **more}
    kept = {"status": existing["status"]} if "status" in existing else {}
    return {**{key: value for key, value in wanted.items() if key != "status"}, "metadata": metadata, **kept}  # fmt: skip


def with_texts(obj: Object) -> Object:
    """Return an object whose labels and annotations are texts, as no server takes the numbers that variables may give."""
    metadata = obj["metadata"]
    changed = {
        name: {key: one if isinstance(one, str) else plain(one) for key, one in values.items()}
        for name in ("labels", "annotations")
        if isinstance(values := metadata.get(name), dict)
        and any(not isinstance(one, str) for one in values.values())
    }
    return {**obj, "metadata": {**metadata, **changed}} if changed else obj


def _content(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in _NOT_CONTENT}


def _placed(obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    return {name: metadata.get(name) or {} for name in ("labels", "annotations")}
