"""`python -m tests.e2e.watching`: what operators see, by a real Prometheus and a collector of traces on a real API server.

One replica, started as the Deployment does, is scraped while Pods are let in and refused: the shipped alert rules and every query
of the dashboard must be understood, and those about requests must show them. Then the replica ends, and the alert for that begins.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any

from controllers.manifests.monitoring import ALERTS, PANELS

from . import engine, tiers
from .load import Load, pod
from .replicas import NO_HOST_IPC
from .runs import parser_of, played
from .scenario import ScenarioError
from .server import binaries
from .server.collector import collector
from .server.processes import SLOWNESS, Process, free_ports

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .server.collector import Traces
    from .tiers import Tier

RULES = tiers.ROOT / "charts" / "monitoring" / "rules.yaml"
_PROGRAM = "prometheus"
_LOADED = 40
"""Right answers that are waited for while Prometheus scrapes."""
_PATIENCE = 120.0 * SLOWNESS
_SEEN = (
    "Replicas",
    "Certificate",
    "Policies' rules",
    "Requests",
    "How long answers take",
    "Results of classic policies",
    "Questions to the API server",
    "Memory",
    "Open files and tasks",
)
"""Panels that show something after a minute of requests; the others wait for what did not happen."""


def main() -> int:
    """Play everything and return 1 when anything is not as it must be; without Prometheus it says so and returns 0."""
    args = parser_of("watching", __doc__).parse_args()
    if shutil.which(_PROGRAM) is None:
        print("skipped: prometheus is not here (Debian package prometheus)")
        return 0
    failed = played("watching", _whole, keep=args.keep)
    print(f"{1 - failed} passed, {failed} failed")
    return failed


def _whole(folder: Path) -> int:
    with tiers.real_tier(folder, binaries.ready()) as tier, collector() as traces:
        _play(tier, traces)
    return 0


def _play(tier: Tier, traces: Traces) -> None:
    engine.install(tier)
    scraped, own = free_ports(2)
    flags = (
        "--loggingFormat=json",
        "--enableTracing",
        f"--tracingAddress=http://127.0.0.1:{traces.port}",
        "--egress-network=127.0.0.1/32",
    )
    replica = engine.start(tier, "engine", *flags, metrics_port=scraped)
    prometheus = _prometheus(tier.folder, scraped, own)
    try:
        prometheus.wait_until(lambda: _is_answered(f"http://127.0.0.1:{own}/-/ready"))
        tier.kubectl("apply", "-f", "-", given=NO_HOST_IPC)
        tier.kubectl("wait", "--for=condition=Ready", "clusterpolicy/no-host-ipc", "--timeout=60s")
        # requests of the load are dry runs, of which no results are counted
        tier.kubectl("create", "-f", "-", given=json.dumps(pod(is_bad=False)))
        with Load(tier.kubeconfig) as load:
            if not load.wait_for(_LOADED, _PATIENCE):
                raise ScenarioError("requests are not answered")
            # figures of workers are told every ten seconds, and a rate is of two scrapes
            _until(lambda: _shows_everything(own), "panels show the requests", lambda: _silent(own))
        if load.let_in or load.wrongly_refused:
            raise ScenarioError(load.said())
        print(f"        {load.said()}")
        _check_rules(own)
        _check_queries(own)
        _check_log(replica)
        _check_traces(traces)
        replica.stop()
        _until(lambda: _state(own, "KpolicyAbsent") == "pending", "the alert for no replica begins")
        print("        the alert for no replica began after the replica had ended")
    finally:
        replica.stop()
        prometheus.stop()


def _prometheus(folder: Path, scraped: int, own: int) -> Process:
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": "kpolicy", "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}]}
        ],
    }
    path = folder / "prometheus.json"
    path.write_text(json.dumps(configuration))
    words = (
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{own}",
    )
    return Process(_PROGRAM, [_PROGRAM, *words], folder)


def _is_answered(url: str) -> bool:
    """Tell whether an address answers well; raises OSError where it does not."""
    with urllib.request.urlopen(url, timeout=5) as answer:
        return bool(answer.status == 200)


def _asked(port: int, path: str, **query: str) -> Any:
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]
    except OSError as error:
        raise ScenarioError(f"prometheus does not answer `{path}` {query}: {error}") from error


def _check_rules(port: int) -> None:
    (group,) = _asked(port, "rules")["groups"]
    found = {one["name"]: one for one in group["rules"]}
    bad = [
        f"{name}: {one.get('lastError')}" for name, one in found.items() if one["health"] != "ok"
    ]
    firing = [name for name, one in found.items() if one["state"] == "firing"]
    if bad or firing or set(found) != {one.name for one in ALERTS}:
        raise ScenarioError(f"rules that are not as they must be: {bad}, firing: {firing}")
    print(f"        {len(found)} alert rules are evaluated, none fires")


def _check_queries(port: int) -> None:
    queries = [query for panel in PANELS for query in panel.queries.values()]
    shown = sum(bool(_asked(port, "query", query=query)["result"]) for query in queries)
    print(f"        {len(queries)} queries of the dashboard are understood, {shown} show something")


def _silent(port: int) -> str:
    """Return the panels of _SEEN that show nothing."""
    panels = {one.title: one for one in PANELS}
    silent = (
        name
        for name in _SEEN
        for query in panels[name].queries.values()
        if not _asked(port, "query", query=query)["result"]
    )
    return ", ".join(silent)


def _shows_everything(port: int) -> bool:
    return not _silent(port)


def _state(port: int, alert: str) -> str:
    (group,) = _asked(port, "rules")["groups"]
    return str(next(one["state"] for one in group["rules"] if one["name"] == alert))


def _check_log(replica: Process) -> None:
    lines = [json.loads(line) for line in replica.log.read_text().splitlines()]
    refused = [one for one in lines if one["msg"] == "refused"]
    if not refused or not all(one["request"] and one["kind"] == "Pod" for one in refused):
        raise ScenarioError(f"refusals are not logged with their ids: {refused[:2]}")
    print(f"        {len(lines)} lines of the log are JSON, {len(refused)} of them refusals")


def _check_traces(traces: Traces) -> None:
    _until(lambda: any(one["name"] == "evaluate" for one in traces.spans), "traces arrive")
    roots = {one["spanId"]: one for one in traces.spans if one["kind"] == 2}
    stray = [one for one in traces.spans if one["kind"] != 2 and one["parentSpanId"] not in roots]
    if stray:
        raise ScenarioError(f"spans without their review: {stray[:2]}")
    print(f"        {len(roots)} reviews were traced, in {len(traces.spans)} spans")


def _until(holds: Callable[[], bool], what: str, why: Callable[[], str] = lambda: "") -> None:
    end = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise ScenarioError(f"not within {_PATIENCE:.0f} s: {what} {why()}".rstrip())
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
