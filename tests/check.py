"""`python -m tests.check`: the one command for every check that is no test of behaviour.

Lint, format, types, layers and the contracts on the tree itself, the same at home and in CI. All of them run, whatever fails.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
LAYERS = [str(BIN / "lint-imports"), "--no-cache"]
CHECKS = {
    "lint": [str(BIN / "ruff"), "check", "."],
    "format": [str(BIN / "ruff"), "format", "--check", "."],
    "types": [str(BIN / "mypy")],
    "layers": LAYERS,
    "layers of the sandbox": LAYERS,
    "docs": [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"],
    "contracts": [sys.executable, "-m", "pytest", "tests/contracts"],
}
FOLDERS = {"layers of the sandbox": ROOT / "controllers" / "sandbox"}
"""Where a check is run that is not run at the root: contracts are read, and packages found, from there."""


def main(names: list[str]) -> int:
    """Run the named checks, or all; print what failing ones say; return 1 where one fails."""
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        print(
            f"error: unknown check `{unknown[0]}`; there are {', '.join(CHECKS)}", file=sys.stderr
        )
        return 2
    failed = [name for name in names or CHECKS if not _passes(name)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _passes(name: str) -> bool:
    began = time.perf_counter()
    folder = FOLDERS.get(name, ROOT)
    done = subprocess.run(CHECKS[name], cwd=folder, capture_output=True, text=True, check=False)
    passed = done.returncode == 0
    print(
        f"{'ok' if passed else 'FAILED':6}  {name}  ({time.perf_counter() - began:.1f} s)",
        flush=True,
    )
    if not passed:
        print(done.stdout + done.stderr, flush=True)
    return passed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
