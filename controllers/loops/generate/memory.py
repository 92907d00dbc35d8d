"""Which synchronised rules there were and what kinds they made, remembered in a ConfigMap of ours (row U-04).

What a rule made must go when the rule goes, though nobody led when that happened and though its kinds came from variables. A
rule that is gone tells neither; the labels of its objects (row U-02) say who made them, and this memory where to look.

Beside it, in this process only, what generating policies could not do until they could: an Event says it once and a report says it of one
trigger, the status says it of the policy for as long as it holds. Work that failed is tried again by every leader.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import orjson

from controllers.kube import Forbidden, NotFound, find
from controllers.kube.client import MERGE
from controllers.kube.kinds import CONFIG_MAPS
from controllers.loops.rules import (
    kinds_are_open,
    kinds_cloned,
    kinds_made,
    outlives_policy,
    synchronizes,
)
from engine.fields import part

from .origin import is_copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from controllers.loops.context import LoopContext
    from engine.evaluate.rules import CompiledRule
    from engine.model import Json, Object, Policy

    from .origin import Origin

NAME: Final = "kpolicy-generate-rules"
_KEY: Final = "rules"
MOST: Final = 1_000_000
"""What a ConfigMap holds. INVARIANT: what is not remembered is still carried out, so that no tenant's rules stop all others."""
_log = logging.getLogger(__name__)

Place = tuple[str, str]
"""The identity of a policy and the name of a rule."""

KindName = tuple[str, str]
"""apiVersion and kind."""


@dataclass(frozen=True, slots=True)
class Made:
    """The kinds of objects that a synchronised rule made, and those of the `sources` that it copied.

    With `stays` they outlive rule and policy.
    """

    kinds: frozenset[KindName] = frozenset()
    stays: bool = False
    sources: frozenset[KindName] = frozenset()


class Memory:
    """What synchronised rules made, kept in step with the cluster. `learned` is called when a rule makes a new kind."""

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        self._rules: dict[Place, Made] = {}
        self._written: str | None = None
        self._is_recalled = False
        self._lock = asyncio.Lock()
        self.learned: Callable[[], None] = _nobody

    @property
    def rules(self) -> Mapping[Place, Made]:
        """What is known of each rule, those included that are gone and not yet settled."""
        return dict(self._rules)

    def kinds(self, rule: CompiledRule) -> list[KindName]:
        """Return the kinds that a rule makes: those it names, and those that a variable gave it so far."""
        return list(dict.fromkeys((*kinds_made(rule), *sorted(self._open(rule).kinds))))

    def sources(self, rule: CompiledRule) -> list[KindName]:
        """Return the kinds that a rule copies: those it names, and those that an evaluation gave it so far."""
        return list(dict.fromkeys((*kinds_cloned(rule), *sorted(self._open(rule).sources))))

    def _open(self, rule: CompiledRule) -> Made:
        """Return what a rule with a variable for a kind made so far; what any other made before it was edited stays."""
        known = self._rules.get(_place(rule))
        return known if known is not None and kinds_are_open(rule) else Made()

    async def recall(self) -> None:
        """Read what the last leader knew; raises KubeError. Without the right to, only what is seen from now on is known."""
        async with self._lock:
            await self._recall()

    async def keep(self, rules: Iterable[CompiledRule], gone: Iterable[Place] = ()) -> None:
        """Remember the synchronised ones of these rules and forget those that are gone; raises KubeError."""
        async with self._lock:
            await self._recall()
            forgotten = set(gone)
            known = {}
            for rule in rules:
                if synchronizes(rule):
                    known[_place(rule)] = self._made(rule)
                else:
                    # what is not kept in step is nobody's: it stays, whatever becomes of the rule
                    forgotten.add(_place(rule))
            unsettled = {
                place: made
                for place, made in self._rules.items()
                if place not in known and place not in forgotten
            }
            self._rules = {**unsettled, **known}
            await self._write()

    async def learn(self, rule: CompiledRule, objects: Iterable[Object]) -> None:
        """Remember the kinds of objects before a rule makes them; raises KubeError."""
        listed = list(objects)
        found = {_kind_name(one) for one in listed}
        copied = {_kind_name(one) for one in listed if is_copy(one)}
        if not synchronizes(rule) or (
            found <= set(self.kinds(rule)) and copied <= set(self.sources(rule))
        ):
            return
        async with self._lock:
            await self._recall()
            known = self._rules.get(_place(rule)) or self._made(rule)
            self._rules[_place(rule)] = replace(
                known, kinds=known.kinds | found, sources=known.sources | copied
            )
            await self._write()
        self.learned()

    def _made(self, rule: CompiledRule) -> Made:
        kinds, sources = frozenset(self.kinds(rule)), frozenset(self.sources(rule))
        return Made(kinds, outlives_policy(rule), sources)

    async def _recall(self) -> None:
        if self._is_recalled:
            return
        context = self._context
        try:
            found = await find(context.client, CONFIG_MAPS, NAME, context.namespace)
        except Forbidden as error:
            _log.warning("what deleted rules made cannot be looked up: %s", error.message)
            found = None
        self._written = str((found.get("data") or {}).get(_KEY) or "") if found else None
        self._rules = {**_read(self._written or ""), **self._rules}
        self._is_recalled = True

    async def _write(self) -> None:
        text = _text(self._rules)
        if text == (self._written or "[]"):
            return
        if len(text) > MOST:
            _log.warning("what rules make is more than can be remembered: %d bytes", len(text))
            return
        client, namespace = self._context.client, self._context.namespace
        try:
            if self._written is None:
                await client.create(CONFIG_MAPS, _document(namespace, text))
            else:
                patch = {"data": {_KEY: text}}
                await client.patch(CONFIG_MAPS, NAME, namespace, patch, content_type=MERGE)
        except NotFound:
            await client.create(CONFIG_MAPS, _document(namespace, text))
        except Forbidden as error:
            _log.warning("what rules make cannot be remembered: %s", error.message)
        self._written = text


def _kind_name(obj: Object) -> KindName:
    return str(obj["apiVersion"]), str(obj["kind"])


def _place(rule: CompiledRule) -> Place:
    return rule.policy.identity, rule.rule.name


def _document(namespace: str, text: str) -> Object:
    labels = {"app.kubernetes.io/part-of": "kyverno"}
    return CONFIG_MAPS.document(NAME, namespace, labels=labels, data={_KEY: text})


def _text(rules: Mapping[Place, Made]) -> str:
    rows = [
        {
            "policy": policy,
            "rule": rule,
            "kinds": sorted(map(list, made.kinds)),
            "stays": made.stays,
            "sources": sorted(map(list, made.sources)),
        }
        for (policy, rule), made in sorted(rules.items())
    ]
    return orjson.dumps(rows).decode()


def _read(text: str) -> dict[Place, Made]:
    """Return what a text remembers; parts that are not as we write them count as absent."""
    try:
        rows = orjson.loads(text) if text else []
    except orjson.JSONDecodeError:
        return {}
    found = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("policy") and row.get("rule"):
            kinds = frozenset(_kinds(row.get("kinds")))
            sources = frozenset(_kinds(row.get("sources")))
            made = Made(kinds, row.get("stays") is True, sources)
            found[str(row["policy"]), str(row["rule"])] = made
    return found


def _kinds(listed: Json) -> list[KindName]:
    pairs = listed if isinstance(listed, list) else []
    return [
        (str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2
    ]


def _nobody() -> None:
    """Hear of nothing."""


MOST_TRIGGERS = 100
"""Triggers remembered of one policy."""


class Failures:
    """The last error of each trigger, by policy; `on_change` are told when the first comes or the last goes.

    A policy that is made anew under the name of another one has failed in nothing yet.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[Origin, str]] = {}
        self.on_change: list[Callable[[], None]] = []

    def put(self, policy: Policy, origin: Origin, message: str) -> None:
        """Remember that a policy failed for a trigger."""
        found = self._known.setdefault(_key_of(policy), {})
        is_first = not found
        if origin in found or len(found) < MOST_TRIGGERS:
            found[origin] = message
        self._tell(is_news=is_first)

    def clear(self, policy: Policy, origin: Origin) -> None:
        """Forget what failed for a trigger, because it did not this time."""
        found = self._known.get(_key_of(policy), {})
        is_known = found.pop(origin, None) is not None
        if is_known and not found:
            del self._known[_key_of(policy)]
            self._tell(is_news=True)

    def keep(self, policies: Iterable[Policy]) -> None:
        """Forget what all other policies failed in."""
        kept = set(map(_key_of, policies))
        self._known = {key: found for key, found in self._known.items() if key in kept}

    def message(self, policy: Policy) -> str:
        """Return what is wrong with a policy's work now, empty when nothing is."""
        found = self._known.get(_key_of(policy))
        if not found:
            return ""
        origin, message = next(iter(found.items()))
        place = f"{origin.kind} in namespace {origin.namespace}" if origin.namespace else origin.kind  # fmt: skip
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return f"not carried out for {place}{others}: {message}"

    def _tell(self, *, is_news: bool) -> None:
        for listener in self.on_change if is_news else ():
            listener()


def _key_of(policy: Policy) -> tuple[str, str]:
    return policy.identity, str(part(policy.raw, "metadata").get("uid") or "")
