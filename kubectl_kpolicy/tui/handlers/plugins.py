"""What keys of somebody's own do: lines of `:`, and programs beside the console or in front of it, never by a shell."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from asyncio import subprocess
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from engine.errors import EngineError
from kubectl_kpolicy.actions.plugins import argv_of, values_of
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.output.diagnostics import sentence
from kubectl_kpolicy.tui.modals.danger import Danger, Question
from kubectl_kpolicy.tui.serving import is_served
from kubectl_kpolicy.tui.stage import cluster_of

from .changes import names_of
from .input_line import run_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubectl_kpolicy.actions.plugins import Plugin
    from kubectl_kpolicy.output.rows import Row
    from kubectl_kpolicy.tui.stage import Stage

_KEPT = 4096
"""Bytes of what a program in the background says last."""


async def press(line: str, app: Stage) -> None:
    """Run a line as if it had been typed after `:`."""
    await run_line(app, line)


async def run(name: str, app: Stage) -> None:
    """Run a program for the marked rows, else for the row under the cursor; where it is to be confirmed, after it was shown."""
    plugin = app.settings.own.plugins[name]
    try:
        lines = _lines(plugin, app)
    except EngineError as error:
        app.say(sentence(error), "yellow")
        return
    if not plugin.confirm:
        await _start(plugin, lines, app)
        return

    danger = " (dangerous)" if plugin.dangerous else ""
    effect = f"Run {plugin.command}, as it is configured{danger}."
    names = names_of(app.rows) if plugin.needs_row else ()
    title = plugin.description or plugin.name
    question = Question(title, effect, names, command=_shown(lines), destroys=False)
    app.ask(Danger(question), lambda _form: _start(plugin, lines, app), "nothing was run")


def _lines(plugin: Plugin, app: Stage) -> list[list[str]]:
    """Return what is to be run, one list of arguments for each row; raises EngineError where something is in the way."""
    if is_served():
        raise EngineError(
            "programs are not started from a browser", help="open the console in a terminal"
        )
    if app.settings.acts_as:
        raise EngineError(
            f"the console looks as `{app.settings.acts_as}`, a program would not",
            help="open it without --as",
        )
    program = shutil.which(plugin.command)
    if program is None:
        raise EngineError(f"there is no program `{plugin.command}` on PATH for `{plugin.name}`")
    rows = app.rows if plugin.needs_row else [None]
    return [argv_of(plugin, values_of(row, **_about(app, row))) for row in rows]


def _about(app: Stage, row: Row | None) -> dict[str, str]:
    """Return in which cluster and as whom a program is to act."""
    there = cluster_of(row, app.clusters)
    return {
        "context": there.name or app.settings.context,
        "user": app.settings.user or there.doer.user,
    }


def _shown(lines: Sequence[Sequence[str]]) -> str:
    return " && ".join(map(shlex.join, lines))


async def _start(plugin: Plugin, lines: Sequence[Sequence[str]], app: Stage) -> None:
    app.log_command(_shown(lines))
    if plugin.background:
        app.say(f"{plugin.name} runs in the background")
        app.run_worker(_in_background(plugin, lines, app), group="plugins", exit_on_error=False)
        return
    try:
        with app.suspend():
            code = await _in_front(lines, app)
    except SuspendNotSupported:
        app.say("this terminal cannot be lent to a program; set `background = true`", "yellow")
        return
    app.refresh(layout=True)
    app.say(_ended(plugin, code, ""), "red" if code else "")


async def _in_front(lines: Sequence[Sequence[str]], app: Stage) -> int:
    """Lend the terminal to programs, one after the other up to the first that fails, and wait for enter; return the last exit code."""
    code = 0
    for argv in lines:
        print(f"$ {shlex.join(argv)}", flush=True)
        process = await _process(argv, app)
        code = await process.wait()
        if code:
            break
    print(f"\nexit code {code}; enter goes back to the console", flush=True)
    with suppress(EOFError):
        await asyncio.to_thread(input)
    return code


async def _in_background(plugin: Plugin, lines: Sequence[Sequence[str]], app: Stage) -> None:
    """Run programs one after the other up to the first that fails, and say how they ended."""
    for argv in lines:
        process = await _process(argv, app, captured=True)
        try:
            said = await _last_of(process)
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            raise
        if process.returncode:
            break
    code = process.returncode or 0
    app.say(_ended(plugin, code, said), "red" if code else "")


async def _last_of(process: subprocess.Process) -> str:
    """Wait for the end of a process; return the last line that it wrote: where it failed to stderr, which says why."""
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = await asyncio.gather(_last_line(process.stdout), _last_line(process.stderr))
    failed = await process.wait() != 0
    return err or out if failed else out or err


async def _last_line(stream: asyncio.StreamReader) -> str:
    said = b""
    while part := await stream.read(_KEPT):
        said = (said + part)[-_KEPT:]
    lines = said.decode(errors="replace").strip().splitlines()
    return plain(lines[-1]) if lines else ""


def _ended(plugin: Plugin, code: int, said: str) -> str:
    how = "done" if not code else f"exit code {code}"
    return f"{plugin.name}: {how}" + (f": {said}" if said else "")


async def _process(
    argv: Sequence[str], app: Stage, *, captured: bool = False
) -> subprocess.Process:
    """Start a program with the kubeconfig that was named to the console; what it writes is captured, or goes to the terminal."""
    more = {"KUBECONFIG": app.settings.kubeconfig} if app.settings.kubeconfig else {}
    start = partial(asyncio.create_subprocess_exec, *argv, env={**os.environ, **more})
    if not captured:
        return await start()
    return await start(
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
