"""Starts the console: source, identity, rights and recording put together; in a terminal or for a browser."""

from __future__ import annotations

import asyncio
import gc
import os
import shlex
import sys
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from engine.errors import EngineError
from engine.record import replace
from kubectl_kpolicy.actions.catalog import ALL
from kubectl_kpolicy.actions.doing import Doer
from kubectl_kpolicy.cluster.fetching import Scope
from kubectl_kpolicy.cluster.moments import instant
from kubectl_kpolicy.cluster.recording import Recorder, ReplaySource, read_recording
from kubectl_kpolicy.cluster.sources import LiveSource
from kubectl_kpolicy.session.watermark import load_seen, save_seen

from .app import Console
from .settings import Settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from controllers.kube.http import HttpClient
    from kubectl_kpolicy.cluster.sources import Source


_COLLECTOR = (100_000, 50, 100)
"""Rows by the ten thousand are no garbage: with Python's own thresholds, looking for some took half the time of reading them."""


class Late:
    """Stands for a value that is made when somebody first uses it.

    For the connection: its library takes longer to load than the first frame takes to draw.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def __repr__(self) -> str:
        return f"<Late {self._made!r}>"

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)


def start(args: argparse.Namespace, words: dict[str, Any]) -> int:
    """Open the console until somebody leaves it."""
    gc.freeze()
    gc.set_threshold(*_COLLECTOR)
    return asyncio.run(_run(args, Settings(**words)))


async def _run(args: argparse.Namespace, settings: Settings) -> int:
    if args.replay:
        past = _replay(args)
        name = settings.context or past.name
        console = Console(past, replace(settings, context=name, read_only=True))
        await console.run_async()
        return 0
    from controllers.kube.access import connect
    from controllers.kube.clock import ServerClock
    from kubectl_kpolicy.session.cluster import access_of
    from kubectl_kpolicy.session.config import load_config

    access = access_of(args)
    clock = ServerClock()
    client = cast("HttpClient", Late(partial(connect, access, clock=clock)))
    journal = args.journal or load_config().context(settings.context, "journal")
    source = LiveSource(client, clock, Scope(journal=journal), name=settings.context)
    settings = replace(settings, seen=load_seen(settings.context))
    console = Console(source, settings, doer=Doer(client, source.now))
    console.identify = _identifying(console, client)
    with ExitStack() as stack:
        _record(args, source, stack)
        try:
            await console.run_async()
        finally:
            await client.close()
    save_seen(settings.context, source.world)
    return 0


def _identifying(console: Console, client: Any) -> Any:
    """Return what finds out, beside everything else, who looks and what they may do."""

    async def identify() -> None:
        from kubectl_kpolicy.session.identity import rights_of, who_am_i

        from .wiring import connect

        me = await who_am_i(client)
        console.settings = replace(console.settings, user=me.user)
        console.doer.user = me.user
        connect(console, client, me)
        rights = {right for action in ALL for right in action.rights}
        console.rights = await rights_of(client, rights, console.settings.namespace)
        console.draw_frame()

    return identify


def _replay(args: argparse.Namespace) -> ReplaySource:
    at = instant(args.at)
    if args.at and at is None:
        raise EngineError(f"cannot read `{args.at}` as an instant", help="write it as 2026-11-21T10:18:00Z")  # fmt: skip
    return ReplaySource(read_recording(Path(args.replay)), at)


def _record(args: argparse.Namespace, source: Source, stack: ExitStack) -> None:
    if args.record:
        path = Path(args.record)
        path.touch(mode=0o600)
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
        Recorder(source.world, stack.enter_context(os.fdopen(descriptor, "w")), source.now, source.name)  # fmt: skip


def serve(args: argparse.Namespace, words: list[str]) -> int:
    """Show the console in a browser; the server is Textual's, the address loopback unless another is named."""
    try:
        server = import_module("textual_serve.server").Server
    except ModuleNotFoundError as error:
        raise EngineError("the browser needs textual-serve", help="pip install textual-serve") from error  # fmt: skip
    host, _, port = args.serve.rpartition(":")
    rest = [word for word in words[1:] if word != "--serve" and word != args.serve and not word.startswith("--serve=")]  # fmt: skip
    command = shlex.join([sys.executable, "-m", "kubectl_kpolicy", *rest])
    server(command, host=host or "127.0.0.1", port=int(port), title="kpolicy").serve()
    return 0
