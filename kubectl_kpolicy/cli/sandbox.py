"""`kubectl kpolicy sandbox`: an API server of one's own on this machine, started, looked at, moved in time and thrown away.

The server is a process of its own (the distribution `kpolicy-sandbox`) and is spoken to as any API server is. Its folder is all
that there is of it; whether it runs is told by the lock that it holds there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .flags import Arguments, Flags, Verbs

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.errors import EngineError

_FOLDER = "KPOLICY_SANDBOX_DIR"
_SECONDS = 30.0
_OWN = ("lock", "ca.crt")


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    flags.parser.description = "Run an API server on this machine to try policies in. It is never a place to keep things."  # fmt: skip
    verbs = Verbs(flags, "sandbox up && export KUBECONFIG=$(kubectl kpolicy sandbox kubeconfig)")

    def add(name: str, text: str, run: Callable[[Arguments], int]) -> Flags:
        verb = verbs.add(name, text, run, cluster=False)
        verb.text("--dir", "DIR", f"its folder (default: ${_FOLDER} or one in your home)", type=Path, default=None)  # fmt: skip
        return verb

    up = add("up", "start it, or print where it runs", _up)
    up.switch("--engine", "install kpolicy there and run its engine beside it")
    add("down", "stop it; everything in it stays", _down)
    add("status", "show whether it runs, where, and its clock; exit with 1 when it does not", _status)  # fmt: skip
    config = add("kubeconfig", "print the path of its kubeconfig", _kubeconfig)
    config.text("--user", "NAME", "one for this user instead of the administrator")
    config.many("--group", "NAME", "group of that user (repeatable)")
    add("reset", "delete everything in it; restart it when it ran", _reset)
    clock = add("clock", "print its clock, or move it forward", _clock)
    clock.add("forward", "how far, such as 4h or 90s", nargs="?", default="", metavar="DURATION")


def folder_of(args: Arguments) -> Path:
    """Return the sandbox's folder: as given, by environment, or in the user's state."""
    if args.dir is not None:
        return Path(args.dir).absolute()
    if named := os.environ.get(_FOLDER):
        return Path(named).absolute()
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "kpolicy" / "sandbox"


def process_of(folder: Path) -> int | None:
    """Return the number of the process that runs in a folder; None when none does."""
    from kubectl_kpolicy.session.replica import holder_of

    return holder_of(folder / "lock")


def _up(args: Arguments) -> int:
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

    from kubectl_kpolicy.session import replica

    command = [sys.executable, "-m", replica.SANDBOX, f"--expressions={replica.EXPRESSIONS}"]
    environment = replica.sandbox_environment()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = folder / "log"
    with log.open("ab") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own module, and no shell
            [*command, "--dir", str(folder)],
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
        raise replica.not_started("the sandbox", log)
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


def _down(args: Arguments) -> int:
    print("the sandbox is stopped" if _stop(folder_of(args)) else "the sandbox does not run")
    return 0


def _stop(folder: Path) -> bool:
    """Stop the server and wait until it is gone; False when it did not run."""
    from kubectl_kpolicy.session import replica

    replica.stop(folder)
    return replica.end(folder / "lock")


def _status(args: Arguments) -> int:
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


def _kubeconfig(args: Arguments) -> int:
    import re

    from kubectl_kpolicy.session.replica import write_kubeconfig

    folder = folder_of(args)
    if not args.user:
        if not (folder / "kubeconfig").exists():
            raise _error("there is no sandbox yet", "start one with `kubectl kpolicy sandbox up`")
        print(folder / "kubeconfig")
        return 0
    made = _ask(folder, "POST", "/sandbox/users", {"name": args.user, "groups": args.group})
    file = f"kubeconfig-{re.sub(r'[^A-Za-z0-9._-]', '_', args.user)}"
    print(write_kubeconfig(folder, args.user, str(made["token"]), file))
    return 0


def _reset(args: Arguments) -> int:
    import shutil

    folder = folder_of(args)
    is_empty = not folder.exists() or not any(folder.iterdir())
    if not is_empty and not all((folder / one).exists() for one in _OWN):
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


def _clock(args: Arguments) -> int:
    folder = folder_of(args)
    how = ("POST", {"forward": args.forward}) if args.forward else ("GET", None)
    told = _ask(folder, how[0], "/sandbox/clock", how[1])
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
