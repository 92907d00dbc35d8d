"""`python -m tests.e2e [--tier sandbox|real] [--jobs N] [SCENARIO…]`: run scenarios with kubectl, on a fresh server each.

Prints every step with its seconds. With several jobs that many scenarios run beside each other, each in a process of its own, and
each is printed when it ends. Without Go, and without programs that were built before, the real tier says so and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.plugin.signing.loopback_sigstore import identity_token, served

from . import engine, images, replicas, rights, scenario, tiers
from .server import binaries
from .server.processes import StartError
from .server.real import AUDIT_LOG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


REPLICAS, IMAGES = "two-replicas", "image-policies"
_WRITTEN_IN_CODE = {
    REPLICAS: (
        "Two replicas: one leads, and when it goes the other does; nothing bad is let in meanwhile",
        replicas.run,
    ),
    IMAGES: (
        "Images in a real registry: signed, bundled, notarized, attested, and everything that is none of it",
        images.run,
    ),
}
"""Title and player of what no file can tell."""
_ALONE = {REPLICAS}
"""What measures how long a change of leaders takes has the machine to itself."""


def main() -> int:
    """Run what is asked for and return 1 when anything is not as it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e", description=__doc__)
    parser.add_argument("--tier", choices=(tiers.SANDBOX, tiers.REAL), action="append")
    parser.add_argument("--keep", action="store_true", help="keep the folders with logs")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="scenarios at a time")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    args = parser.parse_args()
    there = [*scenario.names(), *_WRITTEN_IN_CODE]
    wanted = args.scenarios or there
    if unknown := set(wanted) - set(there):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    programs = None
    places = args.tier or [tiers.SANDBOX, tiers.REAL]
    if tiers.REAL in places:
        try:
            programs = binaries.ready()
        except binaries.ToolMissingError as reason:
            sys.exit(f"error: {reason}")
    runs = [(tier, name) for tier in places for name in wanted]
    if args.jobs > 1:
        failed = _beside_each_other(runs, args.jobs, keep=args.keep)
    else:
        failed = sum(
            not _passes(tier, name, programs if tier == tiers.REAL else None, keep=args.keep)
            for tier, name in runs
        )
    print(f"{len(runs) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _beside_each_other(runs: list[tuple[str, str]], jobs: int, *, keep: bool) -> int:
    """Run each in a process of its own, `jobs` at a time, print what it printed, and return how many failed."""
    beside = [one for one in runs if one[1] not in _ALONE]
    with ThreadPoolExecutor(jobs) as pool:
        codes = list(pool.map(lambda one: _in_a_process(*one, keep=keep), beside))
    codes += [_in_a_process(*one, keep=keep) for one in runs if one[1] in _ALONE]
    return sum(code != 0 for code in codes)


def _in_a_process(tier: str, name: str, *, keep: bool) -> int:
    words = [sys.executable, "-m", "tests.e2e", "--tier", tier, *(["--keep"] if keep else []), name]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    told, _, _ = done.stdout.rstrip().rpartition("\n")
    print(told if done.returncode == 0 else done.stdout, flush=True)
    return done.returncode


def _passes(tier: str, name: str, programs: binaries.Binaries | None, *, keep: bool) -> bool:
    """Run one scenario on one server and say how it went."""
    folder = Path(tempfile.mkdtemp(prefix=f"kpolicy-e2e-{name}-"))
    began = time.monotonic()
    print(f"{tier}: {_title(name)}", flush=True)
    try:
        if name in _WRITTEN_IN_CODE:
            run_written(name, tier, programs, folder)
        else:
            run(tier, name, programs, folder)
    except (
        scenario.ScenarioError,
        StartError,
        RuntimeError,
        TimeoutError,
        binaries.ToolMissingError,
    ) as error:
        print(f"FAILED {name} on {tier} (logs in {folder}):\n{error}", flush=True)
        return False
    print(f"passed in {time.monotonic() - began:.1f} s\n", flush=True)
    if not keep:
        _remove(folder)
    return True


def _title(name: str) -> str:
    if name in _WRITTEN_IN_CODE:
        return _WRITTEN_IN_CODE[name][0]
    return scenario.load(name).title


def run_written(name: str, tier: str, programs: binaries.Binaries | None, folder: Path) -> None:
    """Run what is written in code on a fresh server; raises as `run` does."""
    with _server(tier, folder, programs) as cluster:
        engine.install(cluster)
        _WRITTEN_IN_CODE[name][1](cluster, print)


def run(tier: str, name: str, programs: binaries.Binaries | None, folder: Path) -> None:
    """Run one scenario on a fresh server; raises ScenarioError, StartError, RuntimeError or TimeoutError."""
    played = scenario.load(name)
    with ExitStack() as stack:
        known, flags = stack.enter_context(sigstore(folder)) if played.has_sigstore else ({}, [])
        cluster = stack.enter_context(_server(tier, folder, programs))
        if not played.has_engine:
            engine.install_kinds(cluster, played.kinds)
            scenario.Runner(tier, cluster.kubeconfig, folder, cluster.forward, known=known).run(
                played
            )
            return
        engine.install(cluster, played.unfiltered, played.settings)
        running = stack.enter_context(engine.engine(cluster, *flags))
        player = scenario.Runner(tier, cluster.kubeconfig, folder, running.forward, known=known)
        player.run(played)
    if tier == tiers.REAL and not played.takes_rights:
        allowed, refused = rights.used(folder / AUDIT_LOG)
        print(f"  {len(allowed)} rights used by {len({one.account for one in allowed})} accounts")
        if refused:
            raise scenario.ScenarioError(
                f"the shipped roles lack: {', '.join(map(str, sorted(refused)))}"
            )


@contextmanager
def sigstore(folder: Path) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Run a private Sigstore; give what the steps know of it, and the engine's flags by which it is trusted."""
    with served() as instance:
        work = folder / "work"
        work.mkdir()
        (work / "trust.json").write_text(json.dumps(instance.trust_config))
        (folder / "root.json").write_text(json.dumps(instance.trusted_root))
        known = {"token": identity_token(instance.now)}
        yield known, [f"--trusted-root={folder / 'root.json'}"]


def _server(
    tier: str, folder: Path, programs: binaries.Binaries | None
) -> AbstractContextManager[tiers.Tier]:
    if programs is not None:
        return tiers.real_tier(folder, programs)
    return tiers.sandbox_tier(folder)


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
