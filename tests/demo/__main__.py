"""`python -m tests.demo [--dir DIR] [--console] [--offline]`: a guided run of the five scenarios, then the console.

With kubectl it plays them on a sandbox with the engine beside it; `--offline` asks the engine alone, without any server. With
a terminal the sandbox is filled as a cluster is on a working day, the console opens on it, and it is left running; without
one it is thrown away at the end. `--console` goes straight to the console.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from engine.errors import EngineError


def main() -> int:
    """Run the demonstration; return 0, or 1 when something did not come as it must."""
    parser = argparse.ArgumentParser(prog="python -m tests.demo", description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path(".sandbox"), metavar="DIR")
    parser.add_argument("--offline", action="store_true", help="without a server, on files only")
    parser.add_argument(
        "--console",
        action="store_true",
        help="only the console, on a sandbox with something going on in it",
    )
    parser.add_argument("--stop", action="store_true", help="end what an earlier run left running")
    args = parser.parse_args()
    try:
        return _run(args)
    except EngineError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.help:
            print(f"help: {error.help}", file=sys.stderr)
        return 1


def _run(args: argparse.Namespace) -> int:
    folder = args.dir.absolute()
    if args.offline:
        from . import offline

        return offline.main()
    from . import playing

    if args.stop:
        return playing.remove(folder)
    if shutil.which("kubectl") is None:
        raise EngineError(
            "kubectl is not on the path, and the guided run is made of kubectl commands",
            help="install it (https://kubernetes.io/docs/tasks/tools/), or add --offline",
        )
    if args.console:
        return playing.look(folder)
    return playing.play(folder, keep=sys.stdout.isatty() and sys.stdin.isatty())


if __name__ == "__main__":
    sys.exit(main())
