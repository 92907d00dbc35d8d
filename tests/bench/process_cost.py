"""What whole commands cost: wall time, peak memory, and which heavy modules they load."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kubectl_kpolicy.output.structured import yaml_text

from . import subjects

KPOLICY = [sys.executable, "-m", "kubectl_kpolicy"]
HEAVY = ("textual", "kubernetes", "aiohttp", "sigstore", "cryptography")
ROUNDS = 9


def wall(command: list[str], rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the median wall seconds of a command and its peak memory in MiB."""
    times, peak = [], 0.0
    for _ in range(rounds):
        began = time.perf_counter()
        peak = max(peak, _peak_of(command))
        times.append(time.perf_counter() - began)
    return statistics.median(times), peak


def _peak_of(command: list[str]) -> float:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_maxrss / 1024


def heavy_modules(*arguments: str) -> list[str]:
    """Return which of the heavy packages a command loads."""
    code = (
        "import sys, json, runpy\n"
        f"sys.argv = ['kubectl-kpolicy', *{list(arguments)!r}]\n"
        "from kubectl_kpolicy.entry import main\n"
        "import contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
        f"print(json.dumps(sorted({set(HEAVY)!r} & set(sys.modules))))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout.splitlines()[-1]))


def measure() -> dict[str, tuple[float, float]]:
    """Return (seconds, MiB) by name; `python -c pass` is the yardstick."""
    with tempfile.TemporaryDirectory() as folder:
        one, many = Path(folder, "pod.yaml"), Path(folder, "pods.yaml")
        one.write_text(yaml_text(subjects.pod()))
        many.write_text("---\n".join(yaml_text(subjects.pod(index)) for index in range(1000)))
        nineteen = [str(path) for path in subjects.STANDARDS + subjects.PRACTICES]
        sixteen = [str(path) for path in subjects.STANDARDS]
        loads = "import yaml, gc; gc.disable(); list(yaml.load_all(open({!r}), yaml.CSafeLoader))"
        return {
            "python -c pass": wall([sys.executable, "-c", "pass"]),
            "kpolicy version": wall([*KPOLICY, "version"]),
            "kpolicy --help": wall([*KPOLICY, "--help"]),
            "apply, 19 policy files x 1 Pod": wall([*KPOLICY, "apply", *nineteen, "-r", str(one)]),
            "CSafeLoader on the 1,000 Pods": wall(
                [sys.executable, "-c", loads.format(str(many))], rounds=3
            ),
            "apply, 16 rules x 1,000 Pods": wall(
                [*KPOLICY, "apply", *sixteen, "-r", str(many)], rounds=5
            ),
        }


def own_peak() -> float:
    """Return this process's peak memory in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
