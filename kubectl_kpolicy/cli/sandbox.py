"""`kubectl kpolicy sandbox`: an API server of one's own on this machine, started, looked at, moved in time and thrown away.

The server is a process of its own (the distribution `kpolicy-sandbox`) and is spoken to as any API server is. Its folder is all
that there is of it; whether it runs is told by the lock that it holds there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .parsing import add_global_flags

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from engine.errors import EngineError

_FOLDER = "KPOLICY_SANDBOX_DIR"
_SECONDS = 30.0
_OWN = ("lock", "ca.crt")


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command with its verbs."""
    parser = sub.add_parser(
        "sandbox",
        description="Run an API server on this machine to try policies in. It is never a place to keep things.",
        epilog="example: kubectl kpolicy sandbox up && export KUBECONFIG=$(kubectl kpolicy sandbox kubeconfig)",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    up = _verb(verbs, "up", "start it, or print where it runs", _up)
    up.add_argument(
        "--engine", action="store_true", help="install kpolicy there and run its engine beside it"
    )
    _verb(verbs, "down", "stop it; everything in it stays", _down)
    _verb(
        verbs,
        "status",
        "show whether it runs, where, and its clock; exit with 1 when it does not",
        _status,
    )
    config = _verb(verbs, "kubeconfig", "print the path of its kubeconfig", _kubeconfig)
    config.add_argument(
        "--user", default="", metavar="NAME", help="one for this user instead of the administrator"
    )
    config.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="NAME",
        help="group of that user (repeatable)",
    )
    _verb(verbs, "reset", "delete everything in it; restart it when it ran", _reset)
    clock = _verb(verbs, "clock", "print its clock, or move it forward", _clock)
    clock.add_argument(
        "forward", nargs="?", default="", metavar="DURATION", help="how far, such as 4h or 90s"
    )


def _verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument(
        "--dir",
        type=Path,
        default=None,
        metavar="DIR",
        help=f"its folder (default: ${_FOLDER} or one in your home)",
    )
    add_global_flags(parser, again=True)
    parser.set_defaults(run=run)
    return parser


def folder_of(args: argparse.Namespace) -> Path:
    """Return the sandbox's folder: as given, by environment, or in the user's state."""
    if args.dir is not None:
        return Path(args.dir).absolute()
    if named := os.environ.get(_FOLDER):
        return Path(named).absolute()
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "kpolicy" / "sandbox"


def process_of(folder: Path) -> int | None:
    """Return the number of the process that runs in a folder; None when none does."""
    from kubectl_kpolicy.session.children import holder_of

    return holder_of(folder / "lock")


def _up(args: argparse.Namespace) -> int:
    folder = folder_of(args)
    if process_of(folder) is None:
        _start(folder)
    print(f"the sandbox runs at {_server(folder)}")
    if args.engine:
        from kubectl_kpolicy.session import replica

        replica.start(folder)
        print("the engine runs beside it")
    if not args.quiet:
        print(f"to use it: export KUBECONFIG={folder / 'kubeconfig'}")
    return 0


def _start(folder: Path) -> None:
    """Start the server as a process of its own and wait until it says that it is ready."""
    import subprocess

    from kubectl_kpolicy.session.children import EXPRESSIONS, SANDBOX, sandbox_environment

    environment = sandbox_environment()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = folder / "log"
    with log.open("ab") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own module, and no shell
            [sys.executable, "-m", SANDBOX, f"--expressions={EXPRESSIONS}", "--dir", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=Path(__file__).parents[2],
            env=environment,
            start_new_session=True,
        )
    assert process.stdout is not None, "it is a pipe"
    with process.stdout as output:
        line = _first_line(output)
    if not line.startswith(b"ready"):
        process.kill()
        process.wait()
        last = log.read_text(errors="replace").strip().rpartition("\n")[2]
        raise _error(f"the sandbox did not start: {last or 'it said nothing'}", f"see `{log}`")
    _, _, opened = line.decode(errors="replace").strip().partition("; ")
    if opened:
        print(f"warning: {opened}; `kubectl kpolicy sandbox reset` makes other keys", file=sys.stderr)  # fmt: skip
    # the server outlives us, which is what it was started for
    process.returncode = 0


def _first_line(output: Any) -> bytes:
    import select

    ready, _, _ = select.select([output], [], [], _SECONDS)
    line: bytes = output.readline() if ready else b""
    return line


def _down(args: argparse.Namespace) -> int:
    if not _stop(folder_of(args)):
        print("the sandbox does not run")
    else:
        print("the sandbox is stopped")
    return 0


def _stop(folder: Path) -> bool:
    """Stop the server and wait until it is gone; False when it did not run."""
    import signal
    import time

    from kubectl_kpolicy.session import replica

    replica.stop(folder)
    process = process_of(folder)
    if process is None:
        return False
    os.kill(process, signal.SIGTERM)
    end = time.monotonic() + _SECONDS
    while process_of(folder) is not None:
        if time.monotonic() > end:
            raise _error(f"process {process} does not stop", f"end it with `kill -9 {process}`")
        time.sleep(0.02)
    return True


def _status(args: argparse.Namespace) -> int:
    folder = folder_of(args)
    if process_of(folder) is None:
        print(f"the sandbox in {folder} does not run")
        return 1
    told = _ask(folder, "GET", "/sandbox/clock")
    rows = {
        "server": _server(folder),
        "kubeconfig": str(folder / "kubeconfig"),
        "time": f"{told['now']} ({_ahead(told)})",
        "process": str(process_of(folder)),
    }
    for name, text in rows.items():
        print(f"{name:<12}{text}")
    return 0


def _ahead(told: Any) -> str:
    from engine.lang import duration

    ahead = duration.parse(str(told["ahead"])) or 0
    return f"{duration.text(ahead)} ahead" if ahead else "real time"


def _kubeconfig(args: argparse.Namespace) -> int:
    folder = folder_of(args)
    if not args.user:
        if not (folder / "kubeconfig").exists():
            raise _error("there is no sandbox yet", "start one with `kubectl kpolicy sandbox up`")
        print(folder / "kubeconfig")
        return 0
    made = _ask(folder, "POST", "/sandbox/users", {"name": args.user, "groups": args.group})
    print(_write_user(folder, args.user, str(made["token"])))
    return 0


def _write_user(folder: Path, name: str, token: str) -> Path:
    import json
    import re

    config = json.loads((folder / "kubeconfig").read_text())
    config["users"] = [{"name": name, "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = name
    place = folder / f"kubeconfig-{re.sub(r'[^A-Za-z0-9._-]', '_', name)}"
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump(config, file, indent=2)
    return place


def _reset(args: argparse.Namespace) -> int:
    import shutil

    folder = folder_of(args)
    if (
        folder.exists()
        and any(folder.iterdir())
        and not all((folder / one).exists() for one in _OWN)
    ):
        raise _error(f"`{folder}` is no sandbox's folder", "nothing was removed")
    ran = _stop(folder)
    if folder.exists():
        shutil.rmtree(folder)
    if ran:
        _start(folder)
        print(f"the sandbox is empty and runs at {_server(folder)}")
    else:
        print("the sandbox is gone")
    return 0


def _clock(args: argparse.Namespace) -> int:
    folder = folder_of(args)
    if args.forward:
        told = _ask(folder, "POST", "/sandbox/clock", {"forward": args.forward})
    else:
        told = _ask(folder, "GET", "/sandbox/clock")
    print(f"{told['now']} ({_ahead(told)})")
    return 0


def _server(folder: Path) -> str:
    import json

    config = json.loads((folder / "kubeconfig").read_text())
    return str(config["clusters"][0]["cluster"]["server"])


def _ask(folder: Path, method: str, path: str, body: Any = None) -> Any:
    """Call the sandbox's server as its administrator and return the answer."""
    import asyncio

    from controllers.kube import connect, load_access

    if process_of(folder) is None:
        raise _error("the sandbox does not run", "start it with `kubectl kpolicy sandbox up`")

    async def call() -> Any:
        client = connect(load_access(folder / "kubeconfig"))
        try:
            return await client.raw(method, path, body)
        finally:
            await client.close()

    return asyncio.run(call())


def _error(message: str, advice: str) -> EngineError:
    from engine.errors import EngineError

    return EngineError(message, help=advice)
