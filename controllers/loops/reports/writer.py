"""Writes the report of one resource: new rows in the place of old ones, nothing when nothing changed (row R-01).

For admission and the background scan alike, which may come to the same report at the same time: whoever loses reads again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from controllers.kube import AlreadyExists, Client, Conflict, Kind, NotFound, retried
from controllers.store.reports import Row, is_reported, merged, pair_of, report_of, says_the_same
from engine.model.kinds import NATIVE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from controllers.runtime.policy_cache import Snapshot
    from engine.evaluate import CompiledPolicy
    from engine.model import Object

    from .sending import Reports

_TRIES = 5


@dataclass(frozen=True, slots=True)
class InForce:
    """The (policy, rule) pairs that reports may speak of; `knows_natives` where those of native policies are among them."""

    pairs: frozenset[tuple[str, str]]
    knows_natives: bool = False

    def __contains__(self, pair: tuple[str, str]) -> bool:
        """Tell whether a row may stay; only who knows the native policies takes out rows of theirs."""
        if pair in self.pairs:
            return True
        return not self.knows_natives and pair[0].partition(":")[0] in NATIVE


class KnownPairs:
    """The pairs in force, worked out once for each state of the policies: they are asked for with every report."""

    def __init__(self) -> None:
        self._of: tuple[Snapshot | None, Mapping[str, CompiledPolicy] | None] = (None, None)
        self._pairs = InForce(frozenset())

    def of(
        self, snapshot: Snapshot, natives: Mapping[str, CompiledPolicy] | None = None
    ) -> InForce:
        """Return the (policy, rule) pairs that reports may speak of; rows of others are out of date (row R-07)."""
        if self._of[0] is not snapshot or self._of[1] is not natives:
            self._of, self._pairs = (snapshot, natives), _pairs_in_force(snapshot, natives)
        return self._pairs


def _pairs_in_force(snapshot: Snapshot, natives: Mapping[str, CompiledPolicy] | None) -> InForce:
    every = (*snapshot.judged.values(), *(natives or {}).values())
    return InForce(
        frozenset(
            (compiled.policy.identity, rule.rule.name)
            for compiled in every
            if is_reported(compiled.policy)
            for rule in compiled.rules
        ),
        knows_natives=natives is not None,
    )


async def write_rows(
    reports: Reports,
    obj: Object,
    rows: Sequence[Row],
    *,
    judged: Collection[tuple[str, str]] | None = None,
    known: InForce,
    is_new: bool = False,
) -> list[Row]:
    """Put rows into the report of an object and return those that say something new.

    `judged` are pairs whose old rows go (see `merged`), `known` those that exist at all. A report without rows is deleted.
    The report of an object that `is_new` is made without looking for one, unless somebody made it meanwhile. Raises KubeError.
    """
    if is_new:
        with suppress(AlreadyExists):
            return await _first(reports, obj, rows)
    write = partial(_write, reports, obj, rows, judged, known)
    return await retried(_TRIES, write, Conflict, AlreadyExists, NotFound)


async def _first(reports: Reports, obj: Object, rows: Sequence[Row]) -> list[Row]:
    found, kinds = merged((), rows), reports.kinds
    if found:
        await reports.write(kinds.of(obj), report_of(obj, found, kinds))
    return found


async def _write(
    reports: Reports,
    obj: Object,
    rows: Sequence[Row],
    judged: Collection[tuple[str, str]] | None,
    known: InForce,
) -> list[Row]:
    metadata, kind = obj["metadata"], reports.kinds.of(obj)
    before = await reports.read(kind, metadata["uid"], metadata.get("namespace") or "")
    old = list((before or {}).get("results") or ())
    kept = [row for row in old if pair_of(row) in known]
    found = merged(kept, rows, judged=judged)
    if not found:
        if before is not None:
            await _remove(reports.client, kind, before)
        return []
    report = report_of(obj, found, reports.kinds, before)
    if before is None or not says_the_same(report, before):
        await reports.write(kind, report)
    as_they_were = set(map(id, old))
    return [row for row in found if id(row) not in as_they_were and row not in old]


async def _remove(client: Client, kind: Kind, report: Object) -> None:
    metadata = report["metadata"]
    with suppress(NotFound):
        await client.delete(
            kind, metadata["name"], metadata.get("namespace") or "", uid=metadata["uid"]
        )
