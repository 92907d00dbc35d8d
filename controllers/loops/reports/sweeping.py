"""Takes rows out of reports whose policy or rule is no more, or is about other kinds now (row R-07).

Apart from the scan, because it concerns every report, of objects that no policy is about any more, too.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from controllers.kube import Conflict, Kind, NotFound
from controllers.kube.client import PAGE
from controllers.kube.workqueue import WorkQueue
from controllers.loops.following import Following, logged
from controllers.loops.native.reported import ReportedNatives
from controllers.store.policies import is_policy
from controllers.store.reports import is_reported, pair_of, summary
from engine import vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controllers.loops.context import LoopContext
    from controllers.runtime.cluster_cache import Change
    from controllers.runtime.policy_cache import Snapshot
    from engine.evaluate import CompiledPolicy
    from engine.model import Object

    Speaking = dict[tuple[str, str], frozenset[str] | None]

_OURS = ",".join(f"{key}={value}" for key, value in vocabulary.BY_KYVERNO.items())
_GONE: frozenset[str] = frozenset()
_log = logging.getLogger(__name__)


class ReportSweep:
    """Keeps reports free of rows of rules that are gone. `run` it as a task on the leader."""

    def __init__(self, context: LoopContext, natives: ReportedNatives | None = None) -> None:
        self._context = context
        self._natives = natives or ReportedNatives(context, ())
        self.queue: WorkQueue[str] = WorkQueue(clock=context.clock, least=1.0, most=60.0)
        self._known: Speaking | None = None

    async def run(self) -> None:
        """Work until cancelled."""
        failed = logged(_log, lambda _: "reports could not be swept")
        async with Following(self._context.informers) as following:
            following.listen(self._context.cache.on_change, self._changed)
            following.listen(self._natives.on_change, lambda: self.queue.add(""))
            self.queue.add("")
            # INVARIANT: rows of a policy that was not listed yet are not taken for those of one that is gone.
            await self._natives.wait_known()
            await self.queue.run(self._look, on_error=failed)

    def _changed(self, change: Change) -> None:
        if is_policy(change.object):
            self.queue.add("")

    async def _look(self, _: str) -> None:
        """Sweep when a rule is gone or is about other kinds, and once at the start."""
        known = _speaking(self._context.snapshot, self._natives.compiled)
        if self._known is None or not self._known.items() <= known.items():
            kinds = self._context.options.report_kinds
            for kind in (kinds.namespaced, kinds.cluster_wide):
                for fields in self._chosen(known):
                    await self._sweep(kind, known, fields)
        self._known = known

    def _chosen(self, known: Speaking) -> list[str]:
        """Return the field selectors of the reports to look at: all, or those that speak of what is gone."""
        if self._known is None or not self._context.options.chooses_reports:
            return [""]
        gone = {pair[0] for pair, kinds in self._known.items() if known.get(pair, _GONE) != kinds}
        return [f"results.policy={identity.rpartition(':')[2]}" for identity in sorted(gone)]

    async def _sweep(self, kind: Kind, known: Speaking, fields: str) -> None:
        """Look at reports page by page, because all of them at once may be more than there is memory."""
        resume = ""
        while True:
            page = await self._context.client.list(
                kind, label_selector=_OURS, field_selector=fields, limit=PAGE, resume=resume
            )
            for report in page.items:
                # Whoever wrote a report meanwhile left these rows out as well.
                with suppress(Conflict, NotFound):
                    await self._clean(kind, report, known)
            resume = page.resume
            if not resume:
                return

    async def _clean(self, kind: Kind, report: Object, known: Speaking) -> None:
        rows = report.get("results") or ()
        about = str((report.get("scope") or {}).get("kind") or "")
        kept = [row for row in rows if _speaks(known, row, about)]
        client, metadata = self._context.client, report["metadata"]
        if not kept:
            name, namespace = metadata["name"], metadata.get("namespace") or ""
            await client.delete(kind, name, namespace, uid=metadata["uid"])
        elif len(kept) < len(rows):
            await client.update(kind, {**report, "results": kept, "summary": summary(kept)})


def _speaking(snapshot: Snapshot, natives: Mapping[str, CompiledPolicy]) -> Speaking:
    """Return the rules that reports may speak of, each with the kinds it can be about (None: any)."""
    return {
        (compiled.policy.identity, rule.rule.name): rule.matcher.kinds
        for compiled in (*snapshot.judged.values(), *natives.values())
        if is_reported(compiled.policy)
        for rule in compiled.rules
    }


def _speaks(known: Speaking, row: Object, kind: str) -> bool:
    pair = pair_of(row)
    return pair in known and ((kinds := known[pair]) is None or kind in kinds)
