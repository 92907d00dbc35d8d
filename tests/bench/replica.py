"""`python -m tests.bench.replica [--objects N] [--policies N] [--reports crd|store]`: what one replica holds, and takes at rest.

On a real kube-apiserver with Pods of which each has its report: the memory of all processes of the replica, pages that they share
counted once, and their processor time while nobody asks anything. 16 of the policies judge every Pod; the others are told apart by labels.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from kubectl_kpolicy.output.structured import json_text, list_of
from tests.e2e import engine

from .accounts import LOOPS, WEBHOOK, held, spent
from .cluster import add_reports, installed
from .growth_cost import SHAPES
from .many_pods import SETTLED_SECONDS, filled
from .pod_creation import REPORTS, count_at
from .webhook_server import policies

if TYPE_CHECKING:
    from tests.e2e.tiers import Tier

FEW_POLICIES, FEW_OBJECTS = 18, 1_000
LITTLE, MUCH = 120.0, 400.0
"""MiB that a replica may hold with so few policies and objects, and with 1,000 and 100,000."""
MOST_IDLE = 0.01
"""Part of a core that it may take at rest with few of them."""
IDLE_SECONDS = 120.0
PATIENCE = 1800.0
AT_ONCE = 100


def main() -> int:
    """Measure and print; returns 1 where an aim is not reached."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.replica", description=__doc__)
    parser.add_argument("--objects", type=int, default=FEW_OBJECTS, help="Pods (%(default)s)")
    parser.add_argument("--policies", type=int, default=FEW_POLICIES, help="(%(default)s)")
    add_reports(parser, "crd")
    given = parser.parse_args()
    with installed(given.reports) as tier:
        _apply(tier, _policies(given.policies))
        asyncio.run(filled(tier, given.objects))
        with engine.engine(tier, f"--reports={given.reports}"):
            return _measured(tier, given.objects, given.policies)


def _policies(count: int) -> list[dict[str, Any]]:
    judging = policies("16 validate")
    return judging + [SHAPES["labels"](number) for number in range(1, count - len(judging) + 1)]


def _apply(tier: Tier, documents: list[dict[str, Any]]) -> None:
    for start in range(0, len(documents), AT_ONCE):
        given = json_text(list_of(documents[start : start + AT_ONCE]))
        tier.kubectl("apply", "--server-side", "-f", "-", given=given)


def _measured(tier: Tier, objects: int, count: int) -> int:
    end = time.monotonic() + PATIENCE
    while (there := count_at(tier, REPORTS)) < objects:
        if time.monotonic() > end:
            print(f"{there:,} reports of {objects:,} Pods after {PATIENCE:.0f} s")
            return 1
        time.sleep(1)
    time.sleep(SETTLED_SECONDS)
    before = spent()
    time.sleep(IDLE_SECONDS)
    idle = {name: seconds / IDLE_SECONDS for name, seconds in (spent() - before).items()}
    memory = held()
    ours = memory[LOOPS] + memory[WEBHOOK]
    taken = idle.get(LOOPS, 0.0) + idle.get(WEBHOOK, 0.0)
    is_little = count <= FEW_POLICIES and objects <= FEW_OBJECTS
    aim = LITTLE if is_little else MUCH
    print(f"{count:,} policies, {objects:,} Pods")
    print(f"  MiB: {', '.join(f'{name} {value:.0f}' for name, value in memory.most_common())}")
    print(f"  at rest: {', '.join(f'{name} {value:.2%}' for name, value in idle.items())}")
    print(
        f"  a replica: {ours:.0f} MiB (aim {aim:.0f}), {taken:.2%} of a core (aim {MOST_IDLE:.0%})"
    )
    return int(ours > aim or (is_little and taken > MOST_IDLE))


if __name__ == "__main__":
    sys.exit(main())
