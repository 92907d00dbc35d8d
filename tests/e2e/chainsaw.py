"""`python -m tests.e2e.chainsaw [--area AREA…] [--sample N] [--out FILE] [TEST…]`: upstream's end-to-end tests on the real tier.

Reads the published tests from `KPOLICY_CHAINSAW` or ../shared/chainsaw and needs the program `chainsaw` (see its README): from the
path, `KPOLICY_TEST_CHAINSAW`, or the cache. Prints a line per test and a score per area; `--out` keeps them with their causes.
Every run has an API server of its own, so that runs go on beside each other. Tests that need a node run only where they are named.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from controllers.kube.accounts import ACCOUNTS, Job
from engine.model.kinds import KINDS

from . import engine, tiers
from .server import binaries

AREAS = (
    "cleanup",
    "ttl",
    "exceptions",
    "filter",
    "autogen",
    "rangeoperators",
    "deferred",
    "policy-validation",
)
_LEFT_BEHIND = (
    *(f"{kind.plural}.{kind.group}" for kind in KINDS),
    "policyexceptions.kyverno.io",
    "policyexceptions.policies.kyverno.io",
    "globalcontextentries.kyverno.io",
    "updaterequests.kyverno.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
)
_LONGEST = 240
_HOST = "127.0.0.43"
_SELECTED = {
    "namespaceSelector": {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [name]}
            for name in ("kube-system", "kyverno")
        ]
    }
}
"""What upstream's installation for these tests keeps away from webhooks."""


def _role(part: str, resources: list[str], verbs: list[str], group: str = "") -> dict[str, Any]:
    """Return a ClusterRole that a part's own role collects, as people of a cluster add rights."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": f"tests:{part}:{resources[0]}",
            "labels": {f"rbac.kyverno.io/aggregate-to-{part}": "true"},
        },
        "rules": [{"apiGroups": [group], "resources": resources, "verbs": verbs}],
    }


_ROLES = (
    _role("cleanup-controller", ["pods"], ["list", "watch", "delete"]),
    _role(
        "background-controller",
        ["namespaces", "pods", "secrets"],
        ["get", "list", "watch", "create", "update", "patch", "delete"],
    ),
    _role(
        "background-controller",
        ["clusterrolebindings"],
        ["get", "list", "watch", "update"],
        "rbac.authorization.k8s.io",
    ),
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "tests:view"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [
            {
                "kind": "ServiceAccount",
                "name": ACCOUNTS[Job.BACKGROUND],
                "namespace": engine.NAMESPACE,
            }
        ],
    },
)
"""Tests of TTL labels, generation and mutation of these kinds give no rights of their own: upstream's installation for them has
these, `view` for who generates bindings to it among them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test went; `cause` is the last error of a failed one."""

    file: str
    area: str
    passed: bool
    seconds: float
    cause: str = ""


def home() -> Path:
    """Return the folder with the tests."""
    shared = Path(__file__).parents[3] / "shared"
    return Path(os.environ.get("KPOLICY_CHAINSAW", shared / "chainsaw"))


def program() -> Path:
    """Return the runner; exits with a message when there is none."""
    built = Path.home() / ".cache" / "kpolicy" / "bin" / "chainsaw"
    for candidate in (os.environ.get("KPOLICY_TEST_CHAINSAW"), shutil.which("chainsaw"), built):
        if candidate and Path(candidate).exists():
            return Path(candidate)
    sys.exit(f"error: there is no chainsaw; `{home() / 'install-chainsaw'}` builds it")


def main() -> int:
    """Run the tests and print scores; returns 1 when the tests or their runner are not here."""
    args = _arguments()
    if not (home() / "index.json").exists():
        sys.exit(f"error: {home()} is not here; set KPOLICY_CHAINSAW to the folder that holds it")
    tests = _chosen(args)
    runner = program()
    folder = Path(tempfile.mkdtemp(prefix="kpolicy-chainsaw-"))
    # some tests write files beside themselves
    upstream = Path(shutil.copytree(home(), folder / "upstream"))
    print(f"{len(tests)} tests, logs in {folder}", flush=True)
    outcomes = []
    with tiers.real_tier(folder, binaries.ready(), args.runtime_config) as tier:
        library = any(test["file"].startswith("policies/") for test in tests)
        _furnish(tier, library=library, as_service=args.as_service)
        reached: dict[str, Any] = (
            {"port": 443, "address": "", "host": _HOST} if args.as_service else {}
        )
        process = engine.start(tier, "engine", *args.flag, **reached)
        try:
            for test in tests:
                if not process.is_running:
                    print("the engine ended; it is started again", flush=True)
                    process = engine.start(tier, "engine", *args.flag, **reached)
                outcome = play(runner, tier, upstream, test)
                outcomes.append(outcome)
                print(line(outcome), flush=True)
                write(args.out, outcomes)
        finally:
            process.stop()
    summarize(outcomes)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.chainsaw", description=__doc__)
    parser.add_argument("--area", action="append", default=[])
    parser.add_argument("--sample", type=int, default=0, help="so many of each area, by chance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--flag", action="append", default=[], help="flag for the controllers")
    parser.add_argument(
        "--runtime-config",
        default="",
        metavar="API=true,…",
        help="APIs that the server serves besides its own choice, such as admissionregistration.k8s.io/v1beta1=true",
    )
    parser.add_argument(
        "--as-service",
        action="store_true",
        help=f"be reached by the Service, at {_HOST}:443, with the chart's selectors; for tests that compare webhooks",
    )
    parser.add_argument("tests", nargs="*", metavar="TEST", help="parts of file names")
    return parser.parse_args()


def _chosen(args: argparse.Namespace) -> list[dict[str, Any]]:
    tests = json.loads((home() / "index.json").read_text())
    if args.tests:
        return [test for test in tests if any(part in test["file"] for part in args.tests)]
    chance = random.Random(args.seed)
    chosen = []
    for area in args.area or AREAS:
        found = [one for one in tests if one["area"] == area and not one["tier"].startswith("2")]
        chosen += chance.sample(found, min(args.sample, len(found))) if args.sample else found
    return chosen


def _furnish(tier: tiers.Tier, *, library: bool, as_service: bool) -> None:
    """Install what the tests expect of a cluster: our parts, a Node of the usual name, the library's kinds."""
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "kind-control-plane",
            "labels": {"kubernetes.io/hostname": "kind-control-plane"},
        },
    }
    tier.kubectl("apply", "-f", "-", given=json.dumps(node))
    status = {"status": {"capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"}}}
    tier.kubectl(
        "patch", "node", "kind-control-plane", "--subresource=status", "-p", json.dumps(status)
    )
    give_rights(tier)
    engine.install(tier, settings={"webhooks": json.dumps(_SELECTED)} if as_service else None)
    if as_service:
        tier.kubectl("delete", "service", "kyverno-svc", "-n", "kyverno", "--ignore-not-found")
        tier.kubectl(
            "create",
            "service",
            "externalname",
            "kyverno-svc",
            "-n",
            "kyverno",
            f"--external-name={_HOST}",
        )
    if library:
        install_library_kinds(tier)


def give_rights(tier: tiers.Tier) -> None:
    """Add the rights that the tests take for granted to those that are shipped."""
    for role in _ROLES:
        tier.kubectl("apply", "-f", "-", given=json.dumps(role))


def install_library_kinds(tier: tiers.Tier) -> None:
    """Install the kinds of the library's tests: last, because after each the server describes itself anew, and whoever applies waits."""
    crds = str(home() / "policies" / ".chainsaw" / "crds")
    tier.kubectl("apply", "--server-side", "--validate=false", "-f", crds)


def play(
    runner: Path,
    tier: tiers.Tier,
    upstream: Path,
    test: dict[str, Any],
    programs: Path | None = None,
) -> Outcome:
    """Run one test of the copy in `upstream`, with more programs on its path; clears away what it left."""
    began = time.monotonic()
    where = upstream / Path(test["file"]).parent
    command = [
        runner,
        "test",
        "--config",
        upstream / "config.yaml",
        "--test-dir",
        where,
        "--no-color",
        f"--template={'true' if _is_template(where, upstream) else 'false'}",
    ]
    path = {"PATH": f"{programs}:{os.environ['PATH']}"} if programs else {}
    try:
        done = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, "KUBECONFIG": str(_kubeconfig(tier)), **path},
            cwd=tier.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST,
        )
        output, passed = done.stdout + done.stderr, done.returncode == 0
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
        output, passed = said if isinstance(said, str) else said.decode("utf-8", "replace"), False
        output += "\nit took too long"
    log = tier.folder / "tests" / f"{Path(test['file']).parent.as_posix().replace('/', '_')}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text(output)
    _clear(tier)
    seconds = time.monotonic() - began
    return Outcome(test["file"], test["area"], passed, seconds, "" if passed else _cause(output))


def line(outcome: Outcome) -> str:
    """Return the line that is printed for a test."""
    word = "ok  " if outcome.passed else "FAIL"
    return f"{word} {outcome.seconds:5.1f} {outcome.file} {outcome.cause[:300]}"


def _kubeconfig(tier: tiers.Tier) -> Path:
    """Return a kubeconfig that holds the authority's certificate itself: scripts of tests read it out of there."""
    whole = tier.folder / "tests.kubeconfig"
    if not whole.exists():
        whole.write_text(tier.kubectl("config", "view", "--raw", "--flatten"))
    return whole


def _is_template(where: Path, upstream: Path) -> bool:
    """Tell whether values in parentheses are expressions of the runner, as the settings of the folder say; they are CEL in some."""
    for folder in (where, *where.parents):
        settings = folder / ".chainsaw.yaml"
        if settings.exists():
            spec = (yaml.safe_load(settings.read_text()) or {}).get("spec") or {}
            return (spec.get("templating") or {}).get("enabled") is not False
        if folder == upstream:
            break
    return True


def _cause(output: str) -> str:
    """Return the lines of a run that say what went wrong."""
    lines = output.splitlines()
    found = [number for number, line in enumerate(lines) if "| ERROR" in line or "ERROR |" in line]
    if not found:
        return " ".join(lines[-6:])
    first = found[0]
    return " / ".join(line.strip() for line in lines[first : first + 12])


def _clear(tier: tiers.Tier) -> None:
    """Delete the policies that a test left behind, so that the next does not meet them."""
    words = ("--all", "--all-namespaces", "--wait=false", "--ignore-not-found")
    with suppress(RuntimeError):
        tier.kubectl("delete", ",".join(_LEFT_BEHIND), *words)


def write(path: Path | None, outcomes: list[Outcome]) -> None:
    """Keep what came of each test in a file, where one is named."""
    if path is not None:
        rows = [{name: getattr(one, name) for name in Outcome.__slots__} for one in outcomes]
        path.write_text(json.dumps(rows, indent=1))


def summarize(outcomes: list[Outcome]) -> None:
    """Print a score per area."""
    run = Counter(one.area for one in outcomes)
    good = Counter(one.area for one in outcomes if one.passed)
    for area in run:
        print(f"{area:24} {good[area]:3} of {run[area]:3}")
    print(f"{'all':24} {good.total():3} of {run.total():3}")


if __name__ == "__main__":
    sys.exit(main())
