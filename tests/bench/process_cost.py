"""What whole commands cost: processor time, peak memory, and which heavy modules they load."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kubectl_kpolicy.output.structured import yaml_text

from . import subjects

if TYPE_CHECKING:
    from collections.abc import Mapping

KPOLICY = [sys.executable, "-m", "kubectl_kpolicy"]
HEAVY = ("textual", "kubernetes", "aiohttp", "sigstore", "cryptography")
ROUNDS = 15


LAUNCHER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status), flush=True)
os._exit(0)
"""
"""Starts a command from a small process: until a child runs its own program, its peak is that of who started it."""


def costs(
    commands: Mapping[str, tuple[list[str], int]], compiled: Path
) -> dict[str, tuple[float, float]]:
    """Return by name the median seconds of processor time of a command, which is run so often, and its peak memory in MiB.

    Commands take turns, so that a slow moment of the host hits all alike. Modules are compiled once, into `compiled`, as an
    installed wheel has them, whatever the tree here may be written into.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment = {**kept, "PYTHONPYCACHEPREFIX": str(compiled)}
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for turn in range(max(rounds for _, rounds in commands.values())):
        for name, (command, rounds) in commands.items():
            if turn < rounds:
                runs[name].append(_run(command, environment))
    return {
        name: (statistics.median(one for one, _ in found), max(peak for _, peak in found))
        for name, found in runs.items()
    }


def _run(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, *command]
    done = subprocess.run(launch, capture_output=True, text=True, check=True, env=environment)
    seconds, peak, code = done.stdout.split()
    if code not in ("0", "1"):
        raise RuntimeError(f"{' '.join(command)} ended with {code}")
    return float(seconds), float(peak)


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
        compiled = Path(folder, "compiled")
        one.write_text(yaml_text(subjects.pod()))
        many.write_text("---\n".join(yaml_text(subjects.pod(index)) for index in range(1000)))
        nineteen = [str(path) for path in subjects.STANDARDS + subjects.PRACTICES]
        sixteen = [str(path) for path in subjects.STANDARDS]
        loads = "import yaml, gc; gc.disable(); list(yaml.load_all(open({!r}), yaml.CSafeLoader))"
        commands = {
            "python -c pass": ([sys.executable, "-c", "pass"], ROUNDS),
            "kpolicy version": ([*KPOLICY, "version"], ROUNDS),
            "kpolicy --help": ([*KPOLICY, "--help"], ROUNDS),
            "apply, 19 policy files x 1 Pod": (
                [*KPOLICY, "apply", *nineteen, "-r", str(one)],
                ROUNDS,
            ),
            "CSafeLoader on the 1,000 Pods": ([sys.executable, "-c", loads.format(str(many))], 3),
            "apply, 16 rules x 1,000 Pods": ([*KPOLICY, "apply", *sixteen, "-r", str(many)], 5),
        }
        return costs(commands, compiled)
