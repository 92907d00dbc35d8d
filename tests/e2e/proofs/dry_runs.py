"""A thousand dry runs, with codes and without, change nothing: the state is the same to the last byte (I4)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

from controllers.kube.kinds import PODS

from .stage import REFUSED, Stage, code_for, hold, pod, spaces, staged, tried

if TYPE_CHECKING:
    from controllers.kube import Client
    from tests.e2e.tiers import Tier

    from .stage import Say

RUNS, AT_ONCE, SPACES = 1000, 10, 20
_MOVING = ("leases",)
"""What lives by itself: who leads renews its lease."""


def run(tier: Tier, say: Say) -> None:
    """Take the state, run dry, take it again."""
    with staged(tier) as stage:
        spaces(tier, SPACES)
        asyncio.run(_all(stage, say))


async def _all(stage: Stage, say: Say) -> None:
    admin = stage.client()
    await _settled(admin)
    before, began = await state_of_server(admin), time.monotonic()
    counts = [0, 0, 0]
    for start in range(0, RUNS, AT_ONCE):
        for part in await asyncio.gather(
            *(_dry(stage, number) for number in range(start, start + AT_ONCE))
        ):
            counts[part] += 1
    took = time.monotonic() - began
    await asyncio.sleep(5)  # whatever follows a request is written within a second or two
    after = await state_of_server(admin)
    hold(before == after, "nothing has changed", _different(before, after))
    await admin.close()
    digest = hashlib.sha256(json.dumps(after, sort_keys=True).encode()).hexdigest()[:16]
    say(
        f"{RUNS} dry runs in {took:.0f} s: {counts[0]} refused, {counts[1]} that would use a code, {counts[2]} with a wrong code; {len(after)} objects, state {digest} before and after"
    )


async def _dry(stage: Stage, number: int) -> int:
    client = stage.client(f"dry-{number}")
    kind = number % 3

    def made(*codes: str) -> dict[str, Any]:
        return pod(f"p-{number}", *codes, namespace=f"space-{number % SPACES}")

    if kind == 0:
        said = await tried(client, PODS, made(), dry_run=True)
        hold("no host PID" in said, "refused", said)
    elif kind == 1:
        code = await code_for(client, made())
        said = await tried(client, PODS, made(code), dry_run=True)
        hold(not said, "with its code it would pass", said)
    else:
        said = await tried(client, PODS, made("0" * 20), dry_run=True)
        hold(REFUSED in said, "a wrong code is refused", said)
    await client.close()
    return kind


async def state_of_server(admin: Client) -> dict[str, Any]:
    """Return everything that the server stores, by kind, namespace and name."""
    found: dict[str, Any] = {}
    for path in await _collections(admin):
        listed: Any = await admin.raw("GET", path)
        for obj in listed.get("items") or ():
            metadata = obj["metadata"]
            found[f"{path} {metadata.get('namespace', '')}/{metadata['name']}"] = obj
    return found


async def _collections(admin: Client) -> list[str]:
    core: Any = await admin.raw("GET", "/api/v1")
    groups: Any = await admin.raw("GET", "/apis")
    versions = [("/api/v1", core)]
    for group in groups["groups"]:
        base = f"/apis/{group['preferredVersion']['groupVersion']}"
        versions.append((base, await admin.raw("GET", base)))
    return [
        f"{base}/{one['name']}"
        for base, listed in versions
        for one in listed["resources"]
        if "list" in one["verbs"] and "/" not in one["name"] and one["name"] not in _MOVING
    ]


async def _settled(admin: Client) -> None:
    """Wait until nothing moves by itself any more."""
    last = await state_of_server(admin)
    for _ in range(30):
        await asyncio.sleep(2)
        now = await state_of_server(admin)
        if now == last:
            return
        last = now
    hold(False, "the server comes to rest")


def _different(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
