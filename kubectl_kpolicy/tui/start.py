"""Starts the console: source, identity, rights and recording put together."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from controllers.kube.clock import ServerClock
from engine.collector import settle
from engine.errors import EngineError
from engine.record import record, replace
from kubectl_kpolicy.actions.catalog import ALL
from kubectl_kpolicy.actions.executor import ActionExecutor
from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.cluster.beside import AbsentSource, BesideSource
from kubectl_kpolicy.cluster.charts import load_samples, save_samples
from kubectl_kpolicy.cluster.fetching import Scope
from kubectl_kpolicy.cluster.recording import Recorder, ReplaySource, read_recording
from kubectl_kpolicy.cluster.sources import LiveSource, Source
from kubectl_kpolicy.cluster.violations import all_rows
from kubectl_kpolicy.grants.form import GrantForm
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.output.time_format import instant
from kubectl_kpolicy.session.cluster import ClusterFlags, access_of, context_names, several
from kubectl_kpolicy.session.kept import load_columns, load_lines, load_seen, save_lines, save_seen

from .app import Console
from .serving import end_with_server, is_served
from .settings import Settings
from .stage import CommandHistory, OneCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controllers.kube import Client
    from controllers.kube.http import HttpClient
    from engine.model import Object
    from kubectl_kpolicy.session.identity import Identity


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

    def make(self) -> None:
        """Make the value."""
        if self._made is None:
            self._made = self._make()

    def __getattr__(self, name: str) -> Any:
        self.make()
        return getattr(self._made, name)


class ConnectingSource(LiveSource):
    """A cluster to which a connection is made when it is begun with; keys are heard meanwhile."""

    async def start(self) -> None:
        """Connect, and begin."""
        if isinstance(self.client, Late):
            await asyncio.to_thread(self.client.make)
        await super().start()


@record
class ConsoleRequest:
    """What `tui` was told, by the names of its flags."""

    connection: ClusterFlags
    screen: str = ""
    where: str = ""
    read_only: bool = False
    write: bool = False
    theme: str = ""
    ascii: bool = False
    record: str = ""
    replay: str = ""
    at: str = ""
    contexts: str = ""


def start(flags: ConsoleRequest, settings_of: Callable[[ConsoleRequest], dict[str, Any]]) -> int:
    """Open the console until somebody leaves it; on another context, where somebody left for that."""
    flags = resolved(flags)
    settle(*_COLLECTOR)
    while chosen := asyncio.run(_run(flags, Settings(**settings_of(flags)))):
        flags = elsewhere(flags, *chosen)
    return 0


def elsewhere(flags: ConsoleRequest, context: str, screen: str) -> ConsoleRequest:
    """Return what was asked for, on another context.

    What was said about the one before is not said about it: neither its server and credentials nor that it may be written to.
    """
    kept, beside = flags.connection, context if "," in context else ""
    there = ClusterFlags(kubeconfig=kept.kubeconfig, context="" if beside else context, all_namespaces=kept.all_namespaces, as_user=kept.as_user,
                         as_group=kept.as_group, as_uid=kept.as_uid, request_timeout=kept.request_timeout)  # fmt: skip
    return replace(
        flags, connection=there, contexts=beside, screen=screen, where="", write=False, record=""
    )


def resolved(flags: ConsoleRequest) -> ConsoleRequest:
    """Return what was asked for with the contexts that `--contexts` means; of one alone as `--context` asks. Raises EngineError."""
    if not flags.contexts:
        return flags
    if flags.replay or flags.record:
        raise Misuse(
            "several contexts are neither recorded nor replayed", help="name one with --context"
        )
    first, *more = several(flags.contexts, flags.connection)
    if more:
        return replace(flags, contexts=",".join((first, *more)))
    return replace(flags, contexts="", connection=replace(flags.connection, context=first))


def contexts_of(flags: ConsoleRequest) -> list[str]:
    """Return the contexts that are shown side by side, none where it is one."""
    return flags.contexts.split(",") if flags.contexts else []


async def _run(flags: ConsoleRequest, settings: Settings) -> tuple[str, str] | None:
    """Run a console; return the context to go on with and the screen, where somebody chose another."""
    settings = replace(settings, columns=load_columns(), color=_color(settings.color))
    if flags.replay:
        past = _replay(flags)
        name = settings.context or past.name
        console = Console(past, replace(settings, context=name, read_only=True))
        end_well(console)
        await console.run_async()
        return None
    first = LISTINGS[settings.screen].needs if settings.screen in LISTINGS else ()
    clusters = _clusters(flags, settings.context, first)
    beside = len(clusters) > 1
    if beside:
        source: Source = BesideSource({name: one.source for name, one in clusters.items()})
    else:
        source, context = clusters[""].source, settings.context
        settings = replace(settings, seen=load_seen(context), past=load_samples(context))
    console = Console(source, settings, clusters=clusters)
    console.lines = CommandHistory(load_lines())
    console.identify = partial(_identify, console)
    console.contexts = partial(context_names, flags.connection)
    with ExitStack() as stack:
        _record(flags, source, stack)
        try:
            end_well(console)
            chosen = await console.run_async()
        finally:
            for one in clusters.values():
                if one.client is not None:
                    await one.client.close()
    save_lines(console.lines.lines)
    if not beside:
        save_seen(settings.context, (row.key for row in all_rows(source.world)))
        console.sample()
        save_samples(settings.context, console.past)
    return (chosen, console.current) if chosen else None


def _clusters(
    flags: ConsoleRequest, context: str, first: Sequence[str] = ()
) -> dict[str, OneCluster]:
    """Return the clusters that are meant, by context; one alone has no name. Raises EngineError where the one cannot be asked."""
    names = contexts_of(flags)
    if not names:
        return {"": _opened(flags.connection, context, first)}
    found = {}
    for name in names:
        try:
            found[name] = _opened(replace(flags.connection, context=name), name, first, name)
        except EngineError as error:
            found[name] = OneCluster(AbsentSource(name, error, ServerClock().now), name=name)
    return found


def _opened(
    connection: ClusterFlags, context: str, first: Sequence[str], name: str = ""
) -> OneCluster:
    """Return a cluster, to which the first request connects; raises EngineError."""
    from controllers.kube import connect
    from kubectl_kpolicy.session.config import load_config

    access = access_of(connection)
    clock = ServerClock()
    client = cast("HttpClient", Late(partial(connect, access, clock=clock)))
    journal = connection.journal or load_config().context(context, "journal")
    source = ConnectingSource(client, clock, Scope(journal=journal), name=context, first=first)
    doer = ActionExecutor(client, source.now, world=source.world)
    return OneCluster(source, doer, name=name)


def end_well(console: Console) -> None:
    """Let the console leave the terminal as it was when it is told to end, or when its terminal or its server is gone."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        with suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, console.exit)
    if is_served():
        end_with_server()


def _color(name: str) -> str:
    """Return a colour as it was written; raises EngineError for one that there is not."""
    from textual.color import Color, ColorParseError

    try:
        return name and Color.parse(name) and name
    except ColorParseError as error:
        raise EngineError(f"`{name}` is no colour", help="write `color` of the context as teal or #112233") from error  # fmt: skip


async def _identify(console: Console) -> None:
    """Find out, beside everything else, who looks at each cluster and what they may do there."""
    await asyncio.gather(*(_identified(console, one) for one in console.clusters.values()))


async def _identified(console: Console, one: OneCluster) -> None:
    from kubectl_kpolicy.session.identity import rights_of, who_am_i

    client = one.client
    if client is None:
        return
    me = await who_am_i(client)
    if not one.name:
        console.settings = replace(console.settings, user=me.user)
    one.doer.who = me
    console.looks_as(me, one)
    _connect(one, client, me)
    rights = {right for action in ALL for right in action.rights}
    one.rights.everywhere = await rights_of(client, rights, console.settings.namespace)
    one.rights.ask = partial(rights_of, client, rights)
    console.draw_frame()


def _connect(one: OneCluster, client: Client, me: Identity) -> None:
    """Let a console request grants, and issue and use codes, as somebody."""
    from kubectl_kpolicy.actions.codes import CodeActions
    from kubectl_kpolicy.actions.grants import hand_in

    source = one.source

    async def handed_in(wanted: Object, dry_run: bool) -> str:
        return await hand_in(client, wanted, source.now(), dry_run=dry_run)

    one.grant_form = GrantForm(source.world, source.now, me, handed_in)
    one.codes = CodeActions(client, me, source.now, source.world)


def _replay(flags: ConsoleRequest) -> ReplaySource:
    at = instant(flags.at)
    if flags.at and at is None:
        raise EngineError(f"cannot read `{flags.at}` as an instant", help="write it as 2026-11-21T10:18:00Z")  # fmt: skip
    return ReplaySource(read_recording(Path(flags.replay)), at)


def _record(flags: ConsoleRequest, source: Source, stack: ExitStack) -> None:
    if flags.record:
        path = Path(flags.record)
        path.touch(mode=0o600)
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
        Recorder(source.world, stack.enter_context(os.fdopen(descriptor, "w")), source.now, source.name)  # fmt: skip
