"""Processes of our own that outlive a command: how they find our packages, and whether one still runs.

For the sandbox and the engine beside it. A release unpacked by krew is no environment of Python's; its executables know where
packages lie, and `python -m` would not.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import sys
from pathlib import Path

from engine.errors import EngineError

SANDBOX = "kpolicy_sandbox"
"""The module of the sandbox, which is a distribution of its own: it is started, never imported."""
EXPRESSIONS = "kubectl_kpolicy.session.expressions:EngineExpressions"
"""Where the sandbox's process finds the engine, to evaluate CEL with."""
_CLONE = Path(__file__).parents[2] / "controllers" / "sandbox"


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment for a process that imports what this one can import."""
    folders = [path for path in sys.path if path and Path(path).is_dir()]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **more}


def sandbox_environment() -> dict[str, str]:
    """Return the environment for the sandbox's process: as `child_environment`, in a clone with the sandbox of the same tree.

    Raises EngineError where the sandbox is not installed.
    """
    if (_CLONE / SANDBOX).is_dir():
        environment = child_environment()
        path = os.pathsep.join((str(_CLONE), environment["PYTHONPATH"]))
        return {**environment, "PYTHONPATH": path}
    if importlib.util.find_spec(SANDBOX) is None:
        raise EngineError(
            "the sandbox is not installed",
            help="pip install kpolicy-sandbox, or in a clone: pip install ./controllers/sandbox",
        )
    return child_environment()


def holder_of(path: Path) -> int | None:
    """Return the number of the process that holds the lock at `path`, as the file says it; None when nobody does."""
    try:
        lock = path.open("r")
    except FileNotFoundError:
        return None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            text = lock.read()
            return int(text) if text.isdecimal() else None
    return None
