"""Health: whether everything that policies, grants and this console rest on is there, and what to do where it is not.

Judged from what was read anyway: a resource that is missing, forbidden or silent is itself the finding.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.errors import EngineError
from engine.fields import items, part, word
from engine.record import record
from kubectl_kpolicy.output.rows import Column, Listing, Row, Shape
from kubectl_kpolicy.output.structured import name_of

from .cache import ClusterCache, Trouble
from .cleanup import is_of_label
from .resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from engine.model import Object


_SHOWN = 8
_CRD_FIX = "kubectl kpolicy install --crds-only | kubectl apply -f -"


@record
class Check:
    """One finding: what was checked, `ok`, `warn`, `fail` or `unknown`, in words, and what mends it.

    A `fix` that begins with `kubectl` is run as it stands (`--fix-commands | sh`): one with a blank to fill in begins with words.
    """

    name: str
    status: str
    detail: str
    fix: str = ""


def listed(names: Sequence[str]) -> str:
    """Return the first names as a list, and how many more there are."""
    return ", ".join(names[:_SHOWN]) + (
        f" and {len(names) - _SHOWN} more" if names[_SHOWN:] else ""
    )


def checks(world: ClusterCache, now: datetime) -> list[Check]:
    """Return all findings, in a fixed order."""
    return [
        *_engine(world),
        *_kinds(world),
        *_policies(world),
        *_holds(world, now),
        *_leaders(world, now),
    ]


def engine_of(world: ClusterCache) -> str:
    """Return whose webhooks answer admission: `kpolicy`, `Kyverno`, or nothing where that cannot be told."""
    ours, kyverno = webhooks(world)
    return "kpolicy" if ours else "Kyverno" if kyverno else ""


def webhooks(world: ClusterCache) -> tuple[list[Object], list[Object]]:
    """Return the webhook configurations of kpolicy, by our mark on them, and those of Kyverno, by their names."""
    hooks = (*world.objects("validatingwebhooks"), *world.objects("mutatingwebhooks"))
    ours = [hook for hook in hooks if vocabulary.OWNER in part(hook, "metadata", "annotations")]
    others = (hook for hook in hooks if hook not in ours)
    return ours, [one for one in others if word(one, "metadata", "name").startswith("kyverno-")]


def _engine(world: ClusterCache) -> Iterator[Check]:
    if problem := world.problem("validatingwebhooks"):
        yield Check(
            "engine", "unknown", f"webhooks cannot be read: {problem.message}", problem.help
        )
        return
    ours, kyverno = webhooks(world)
    if ours and kyverno:
        yield Check("engine", "fail", "webhooks of kpolicy and of Kyverno are both installed",
                    "remove one of them; two engines must not act on the same policies")  # fmt: skip
    elif ours or kyverno:
        name = "kpolicy" if ours else "Kyverno"
        yield Check("engine", "ok", f"{name} answers admission with {len(ours or kyverno)} webhook configurations")  # fmt: skip
    else:
        yield Check("engine", "warn", "no policy webhook is installed: nothing is enforced at admission",
                    "kubectl kpolicy install | kubectl apply -f -")  # fmt: skip
    yield from _certificates(ours or kyverno)


def _certificates(hooks: Iterable[Object]) -> Iterator[Check]:
    bare = [
        word(hook, "metadata", "name")
        for hook in hooks
        if any(not word(one, "clientConfig", "caBundle") for one in items(hook, "webhooks"))
    ]
    if bare:
        yield Check("certificates", "fail", f"no CA bundle in {', '.join(bare)}",
                    "restart the engine: it writes the bundle when it leads")  # fmt: skip


def _kinds(world: ClusterCache) -> Iterator[Check]:
    for resource in RESOURCES.values():
        problem = world.problem(resource.name)
        if problem is None or (resource.optional and problem.trouble is Trouble.MISSING):
            continue
        is_ours = resource.kind.group == "kpolicy.io"
        if problem.trouble is Trouble.MISSING:
            status, fix = ("warn" if is_ours else "fail"), _CRD_FIX
        else:
            status, fix = "fail", problem.help
        yield Check(str(resource.kind), status, f"{resource.what}: {problem.message}", fix)
    if not any(world.problem(name) for name in ("clusterpolicies", "reports", "exceptions")):
        yield Check("kinds", "ok", "policies, reports and exceptions can be read")


def _policies(world: ClusterCache) -> Iterator[Check]:
    from .policies import readiness

    policies = (*world.objects("clusterpolicies"), *world.objects("policies"))
    broken = [word(one, "metadata", "name") for one in policies if readiness(one) == "no"]
    if broken:
        yield Check("policies", "fail", f"not ready: {', '.join(sorted(broken))}",
                    "to see why: kubectl kpolicy policies describe NAME")  # fmt: skip
    elif policies:
        yield Check("policies", "ok", f"{len(policies)} policies, none refused")


def _holds(world: ClusterCache, now: datetime) -> Iterator[Check]:
    """Tell of clean-ups that are held back until somebody resumes them: who may annotate an object may hold it, too."""
    from .cleanup import cleanup_rows, hold_of

    held = [
        row
        for row in cleanup_rows(world, now)
        if (hold := hold_of(row, now)) is not None and hold.until is None
    ]
    if held:
        shown = listed([row.text("object") for row in held])
        yield Check("holds", "warn", f"never cleaned up until resumed: {shown}",
                    "to see why: kubectl kpolicy cleanup list -A")  # fmt: skip


def _leaders(world: ClusterCache, now: datetime) -> Iterator[Check]:
    from datetime import timedelta

    from kubectl_kpolicy.output.time_format import instant

    for lease in world.objects("leases"):
        name = word(lease, "metadata", "name")
        if not name.startswith(("kyverno", "kpolicy")) or vocabulary.KIND in part(lease, "metadata", "labels"):  # fmt: skip
            continue
        renewed = instant(word(lease, "spec", "renewTime"))
        late = renewed is None or now - renewed > timedelta(minutes=1)
        holder = word(lease, "spec", "holderIdentity") or "nobody"
        if late:
            yield Check(f"lease {name}", "warn", f"not renewed for over a minute; last held by {holder}",
                        "see whether its Pod runs: kubectl -n kyverno get pods")  # fmt: skip
        else:
            yield Check(f"lease {name}", "ok", f"held by {holder}")


def health_rows(world: ClusterCache, now: datetime) -> list[Row]:
    """Return the findings as rows."""
    return rows_of(checks(world, now))


def rows_of(found: Iterable[Check]) -> list[Row]:
    """Return findings as rows, in their order."""
    rows = []
    for number, check in enumerate(found):
        told = {"status": check.status, "detail": check.detail, "fix": check.fix}
        metadata = {"name": check.name.replace(" ", "-")}
        obj = {"apiVersion": vocabulary.KPOLICY, "kind": "Check", "metadata": metadata, **told}
        rows.append(Row(f"{number}/{check.name}", {"check": check.name, **told}, obj))
    return rows


LISTING = Listing(
    noun="health",
    title="Health",
    aliases=("doctor",),
    columns=(
        Column("check", "CHECK", most=34),
        Column("status", "STATUS", Shape.STATE, aliases=("result",)),
        Column("detail", "DETAIL", grows=True),
        Column("fix", "FIX", most=60, narrow=False),
    ),
    rows=health_rows,
    needs=("clusterpolicies",),
    wants=tuple(RESOURCES),
    groups=("status",),
    failures=lambda row: row.cells["status"] != "ok",
    empty="nothing was checked yet",
    next_step="wait for the first answers of the API server",
)


# Whether holding back a clean-up would be honoured: Kyverno's own engine deletes all the same.


def check_engine(world: ClusterCache, name: str, rows: Sequence[Row]) -> None:
    """Refuse what Kyverno would not honour, with the command that does the same there; raises EngineError."""
    if engine_of(world) == "Kyverno":
        raise EngineError(f"Kyverno knows no way to {name} a clean-up, so that nothing would come of it", help="; ".join(map(_instead, rows)))  # fmt: skip


def _instead(row: Row) -> str:
    """Return the command that keeps Kyverno from deleting: another schedule, or no TTL label."""
    place = f" -n {row.text('namespace')}" if row.text("namespace") else ""
    thing = shlex.quote(name_of(row.object))
    if is_of_label(row):
        return f"kubectl label {thing}{place} cleanup.kyverno.io/ttl- takes its label away"
    patch = shlex.quote('{"spec":{"schedule":"0 0 31 2 *"}}')
    return f"kubectl patch {thing}{place} --type merge -p {patch} gives it a schedule that never comes"  # fmt: skip
