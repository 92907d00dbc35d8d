"""`python -m tests.e2e.proofs [--tier sandbox|real] [--short] [NAME…]`: run proofs, each on a fresh server.

With `--short` all of them are run with fewer rounds, on the real server, in less than ten minutes on two cores: every promise
is tried, those about many tries less often.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e import tiers
from tests.e2e.scenario import ScenarioError
from tests.e2e.server import binaries
from tests.e2e.server.processes import StartError

REAL, BOTH = (tiers.REAL,), (tiers.SANDBOX, tiers.REAL)
PROOFS = {
    "race": BOTH,
    "forging": BOTH,
    "crashes": BOTH,
    "guards": BOTH,
    "expiry": BOTH,
    "tampering": BOTH,
    "guessing": BOTH,
    "transplants": BOTH,
    "dry_runs": BOTH,
    "leaks": BOTH,
}
"""Names of the modules here, and where each is run unless a server is named: the real one is the one that counts."""
USUAL = {"dry_runs": (tiers.SANDBOX,)}
SHORT: dict[str, dict[str, int]] = {
    "race": {"ROUNDS": 10, "THROUGH_SERVER": 2, "SPACES": 4},
    "crashes": {"KILLS": 4, "SPACES": 8},
    "guessing": {"GUESSES": 50_000, "THROUGH_WEBHOOK": 300, "TIMED": 5_000},
    "dry_runs": {"RUNS": 50, "SPACES": 4},
    "leaks": {"DENIALS": 60, "USED": 4, "SPACES": 4},
}
"""Sizes of the short form, by the name of the module and of the constant."""


def main() -> int:
    """Run what is asked for and return 1 when a promise does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.proofs", description=__doc__)
    parser.add_argument("--tier", choices=BOTH, action="append")
    parser.add_argument("--short", action="store_true", help="with fewer rounds")
    parser.add_argument("--keep", action="store_true", help="keep the folders with logs")
    parser.add_argument("proofs", nargs="*", metavar="NAME")
    args = parser.parse_args()
    # who is told to stop takes the servers along
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if unknown := set(args.proofs) - set(PROOFS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PROOFS)}")
    began = time.monotonic()
    results = [
        _holds(tier, name, keep=args.keep, short=args.short)
        for name in args.proofs or PROOFS
        for tier in args.tier or (REAL if args.short else USUAL.get(name, REAL))
    ]
    took = time.monotonic() - began
    print(f"{sum(results)} hold, {results.count(False)} do not, {took:.0f} s in all")
    return int(not all(results))


def _holds(tier: str, name: str, *, keep: bool, short: bool = False) -> bool:
    folder = Path(tempfile.mkdtemp(prefix=f"kpolicy-proof-{name}-"))
    began = time.monotonic()
    proof = importlib.import_module(f"{__package__}.{name}")
    for constant, size in SHORT.get(name, {}).items() if short else ():
        setattr(proof, constant, size)
    print(f"{name} on {tier}: {(proof.__doc__ or '').strip().splitlines()[0]}", flush=True)
    try:
        server = (
            tiers.real_tier(folder, binaries.ready()) if tier == tiers.REAL else tiers.sandbox_tier(folder)
        )  # fmt: skip
        with server as cluster:
            proof.run(cluster, lambda text: print(f"   {text}", flush=True))
    except (ScenarioError, StartError, RuntimeError, TimeoutError, binaries.ToolMissingError) as error:  # fmt: skip
        print(f"FAILED {name} on {tier} (logs in {folder}):\n{error}\n", flush=True)
        return False
    print(f"   holds, {time.monotonic() - began:.0f} s in all\n", flush=True)
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
