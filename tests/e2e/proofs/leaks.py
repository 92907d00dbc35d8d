"""After a thousand denials with a code each, no code is anywhere but in the answers to those who were denied."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING

from controllers.kube.kinds import CODE_USES, PODS
from tests.e2e.server.collector import collector
from tests.e2e.tiers import ROOT

from .dry_runs import state_of_server
from .stage import CODE, Stage, hold, pod, spaces, staged, tried

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.server.collector import Traces
    from tests.e2e.tiers import Tier

    from .stage import Say

DENIALS, AT_ONCE, USED, SPACES = 1000, 10, 20, 20
_API_SERVER = frozenset({"kube-apiserver.log", "etcd"})
"""What an API server writes by itself: it logs each refusal with its text (A11), which is why a code is bound to who got it."""
COMMANDS = (
    "violations -A -o json", "violations --blocks -A -o json", "policies -o json", "exceptions -A -o json", "otp list -o json",
    "audit log -o json", "audit export --format jsonl", "audit export --format cef", "grant list -A -o json", "cleanup -A -o json",
    "report violations -A --format html", "report compliance -A --format csv", "status -o json", "doctor -o json",
)  # fmt: skip


def run(tier: Tier, say: Say) -> None:
    """Deny, redeem some, then read everything that anybody could read.

    One replica logs words and the other JSON, all that they have, and both send traces.
    """
    with collector() as traces:
        at = f"--tracingAddress=127.0.0.1:{traces.port}"
        told = ("--enableTracing", at, "--egress-network=127.0.0.1/32")
        with staged(tier, "--log-level=debug", *told) as stage:
            stage.replicas[1].stop()
            stage.start(1, "--loggingFormat=json")
            spaces(tier, SPACES)
            asyncio.run(_all(stage, traces, say))


async def _all(stage: Stage, traces: Traces, say: Say) -> None:
    began, codes = time.monotonic(), []
    for start in range(0, DENIALS, AT_ONCE):
        codes += await asyncio.gather(*(_denied(stage, number) for number in range(start, start + AT_ONCE)))  # fmt: skip
    hold(len(set(codes)) == DENIALS, "a code of its own for each denial", len(set(codes)))
    for number in range(USED):
        client = stage.client(f"person-{number}")
        hold(
            not await tried(
                client, PODS, pod(f"p-{number}", codes[number], namespace=_space(number))
            ),
            "a code is good",
        )
        await client.close()
    await asyncio.sleep(5)  # Events and records come after the answers
    took = time.monotonic() - began
    sinks = await _sinks(stage, say)
    hold(traces.spans, "there are traces of denials")
    sinks["traces"] = json.dumps(traces.spans)
    for name, text in sinks.items():
        found = _codes_in(text, codes)
        hold(not found, f"no code in {name}", (len(found), text[max(0, text.find(found[0]) - 200) :][:400] if found else ""))  # fmt: skip
    size = sum(map(len, sinks.values()))
    say(
        f"{DENIALS} denials and {USED} uses in {took:.0f} s; {len(sinks)} sinks, {size / 1e6:.1f} MB: no code"
    )


def _space(number: int) -> str:
    return f"space-{number % SPACES}"


async def _denied(stage: Stage, number: int) -> str:
    client = stage.client(f"person-{number}")
    said = await tried(client, PODS, pod(f"p-{number}", namespace=_space(number)))
    await client.close()
    found = CODE.search(said)
    hold(found, "a denial offers a code", said)
    return found[0] if found else ""


def _codes_in(text: str, codes: list[str]) -> list[str]:
    """Return codes that a text holds in the form people see, or without dashes."""
    return [one for one in codes if one in text or one.replace("-", "") in text]


async def _sinks(stage: Stage, say: Say) -> dict[str, str]:
    """Return everything that can be read, by where."""
    admin = stage.client()
    uses = (await admin.list_all(CODE_USES)).items
    hold(len(uses) == USED, "uses are on record", len(uses))
    state = await state_of_server(admin)
    await admin.close()
    events = [key for key in state if "/events " in key]
    hold(events, "there are Events of denials")
    found = {"the store": json.dumps([_without_own(obj) for obj in state.values()])}
    for port in stage.metrics:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            found[f"metrics of {port}"] = answer.read().decode()
    for path in sorted(stage.tier.folder.glob("*.log")):
        if path.name not in _API_SERVER:
            found[path.name] = path.read_text(errors="replace")
    for words in COMMANDS:
        found[f"kubectl kpolicy {words}"] = await asyncio.to_thread(_printed, stage.tier, words)
    recording = stage.tier.folder / "recording.jsonl"
    await asyncio.to_thread(_recorded, stage.tier, recording)
    found["a recording"] = recording.read_text()
    say(f"Events {len(events)}, objects {len(state)}, logs and outputs {len(found) - 1}")
    return found


def _without_own(obj: dict[str, object]) -> dict[str, object]:
    """Return an object without the code that its own maker put into it."""
    metadata = obj.get("metadata")
    if obj.get("kind", "Pod") != "Pod" or not isinstance(metadata, dict):
        return obj
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != "kpolicy.io/code"}  # fmt: skip
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _printed(tier: Tier, words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kubectl_kpolicy", *words.split()],
        env={**os.environ, "KUBECONFIG": str(tier.kubeconfig), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    hold(done.returncode == 0, f"`{words}` works", done.stderr)
    return done.stdout + done.stderr


def _recorded(tier: Tier, file: Path) -> None:
    """Write what the console records, with the console's own parts."""
    script = (
        "import asyncio, sys\n"
        "from datetime import UTC, datetime\n"
        "from controllers.kube import connect, load_access\n"
        "from kubectl_kpolicy.cluster.fetching import fetch\n"
        "from kubectl_kpolicy.cluster.recording import harmless\n"
        "from kubectl_kpolicy.cluster.resources import RESOURCES\n"
        "import json\n"
        "async def main():\n"
        "    client = connect(load_access(sys.argv[1]))\n"
        "    world = await fetch(client, tuple(RESOURCES), datetime.now(UTC))\n"
        "    await client.close()\n"
        "    with open(sys.argv[2], 'w') as out:\n"
        "        for name in RESOURCES:\n"
        "            for obj in world.objects(name):\n"
        "                out.write(json.dumps(harmless(name, obj)) + '\\n')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tier.kubeconfig), str(file)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    hold(done.returncode == 0, "a recording is written", done.stderr)
