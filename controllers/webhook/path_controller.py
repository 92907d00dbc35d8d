"""Keeps what replicas share of how callers prove themselves, in a Secret of our own namespace that all of them watch.

Any replica has the paths changed: when it starts, when an API server may have printed one because a call failed, and the leader
each hour. The leader writes the configurations and says when they have followed (`keeping`). The authority of the API
server's certificate is remembered there, too, so that a file which is gone again never lets callers in by a path.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import AlreadyExists, Client, Clock, Conflict, KubeError, NotFound
from controllers.kube.kinds import SECRETS
from controllers.kube.reflector import Selection
from controllers.manifests.written import CALLERS
from engine import vocabulary
from engine.errors import EngineError, reason_of

from .secret_path import OVERLAP, Shared, unpacked
from .tls import authorities_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from controllers.kube.reflector import Informers
    from controllers.kube.store import Change
    from controllers.runtime.options import Options
    from engine.model import Object

SPREAD: Final = timedelta(seconds=2)
"""How long replicas may take to learn of new paths before the API server is told of them."""
HOUR: Final = 3600.0
FILE_CHECK: Final = 5.0
_FIELD: Final = "callers"
_SIZE: Final = 32
_TRIES: Final = 5
_log = logging.getLogger(__name__)


class PathController:
    """Shares paths and authority. `start` it, `run` it as a task.

    `changed` is called with everything new, and again once configurations are to carry it; it must not wait.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        informers: Informers,
        options: Options,
        changed: Callable[[Shared], None],
    ) -> None:
        self._client, self._clock, self._informers = client, clock, informers
        self._namespace, self._file = options.namespace, options.client_ca
        self._names = options.client_names
        self._changed = changed
        self._wanted = asyncio.Event()
        self._news = asyncio.Event()
        self._is_missing = asyncio.Event()
        self._rotated = asyncio.Event()
        self._seen: Any = None
        self.shared = Shared()

    def outage(self) -> None:
        """Have the paths changed soon, because a caller may have printed one."""
        self._wanted.set()

    async def start(self) -> None:
        """Read what is shared, or make it; raises EngineError."""
        authority = self._read_file()
        self._take(await self._ensured(authority))
        if authority and authority != self.shared.authority:
            await self._change(partial(self._certified, authority))
        if self.shared.was_written:
            self._wanted.set()
        selection = Selection(namespace=self._namespace, fields=f"metadata.name={CALLERS}")
        self._informers.acquire(SECRETS, selection).on_change(self._noted)

    async def run(self) -> None:
        """Change paths when it is time, and look for the file of an authority, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._rotate_when_wanted())
            group.create_task(self._tell_when_spread())
            group.create_task(self._restore())
            if self._file is not None:
                group.create_task(self._follow_file())

    async def lead(self) -> None:
        """Have the paths changed each hour, until cancelled."""
        while True:
            await self._clock.sleep(HOUR)
            self.outage()

    def to_write(self) -> Shared:
        """Return what configurations are to say now: the new paths once replicas have had time to learn of them."""
        known = self.shared
        return (
            replace(known, current=known.previous, previous=b"")
            if self._until_spread() > 0
            else known
        )

    async def written(self, current: bytes) -> None:
        """Say that all configurations carry the paths that follow from `current`; raises KubeError."""
        if self.shared.current == current and self.shared.written_at is None:
            now = self._clock.now()

            def say(known: Shared) -> Shared:
                is_it = known.current == current and known.written_at is None
                return replace(known, written_at=now, was_written=True) if is_it else known

            await self._change(say)

    async def leave(self) -> None:
        """Change the paths at once, as far as that works: whoever was called here last may have printed one."""
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(2.0):
                await self._rotate()

    async def _tell_when_spread(self) -> None:
        while True:
            await self._rotated.wait()
            self._rotated.clear()
            while (wait := self._until_spread()) > 0:
                await self._clock.sleep(wait)
            self._changed(self.shared)

    def _until_spread(self) -> float:
        """Return the seconds that replicas still have to learn of new paths."""
        known = self.shared
        if not known.previous or known.written_at is not None or known.rotated_at is None:
            return 0.0
        return (known.rotated_at + SPREAD - self._clock.now()).total_seconds()

    async def _rotate_when_wanted(self) -> None:
        while True:
            await self._wanted.wait()
            wait = self._until_due()
            if wait is None:
                self._news.clear()
                await self._news.wait()
            elif wait > 0:
                await self._clock.sleep(wait)
            else:
                self._wanted.clear()
                try:
                    await self._rotate()
                except KubeError as error:
                    _log.warning("the paths of the webhooks cannot be changed: %s", error.message)
                    self._wanted.set()
                    await self._clock.sleep(FILE_CHECK)

    def _until_due(self) -> float | None:
        """Return the seconds until paths may change again; None while the present ones are not written yet."""
        if self.shared.written_at is None:
            return None
        return (self.shared.written_at + OVERLAP - self._clock.now()).total_seconds()

    async def _rotate(self) -> None:
        """Draw other paths, unless somebody did; those that nobody was told yet need no others."""
        seen = self.shared.current

        def fresh(known: Shared) -> Shared:
            if known.current != seen or known.written_at is None or known.authority:
                return known
            return replace(
                known,
                current=secrets.token_bytes(_SIZE),
                previous=known.current,
                rotated_at=self._clock.now(),
                written_at=None,
            )

        await self._change(fresh)

    async def _restore(self) -> None:
        """Make the Secret anew when it was deleted; what it held of an authority is forgotten, for that is how one says so."""
        while True:
            await self._is_missing.wait()
            self._is_missing.clear()
            _log.warning("the Secret `%s` is gone and is made anew", CALLERS)
            self._seen = None
            with suppress(EngineError):
                self._take(await self._ensured(self._read_file(), self.shared))

    async def _follow_file(self) -> None:
        while True:
            await self._clock.sleep(FILE_CHECK)
            try:
                authority = self._read_file()
                if authority and authority != self.shared.authority:
                    await self._change(partial(self._certified, authority))
                    _log.info("the API server is known by its certificate from now on")
            except EngineError as error:
                _log.warning("%s", error.message)

    def _read_file(self) -> bytes:
        """Return the authorities in the file, nothing where it is not there or as it was; raises EngineError."""
        if self._file is None:
            return b""
        try:
            status = self._file.stat()
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if seen == self._seen:
                return b""
            pem = self._file.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise EngineError(f"cannot read `{self._file}`: {reason_of(error)}") from error
        authorities_in(pem)
        self._seen = seen
        return pem

    def _certified(self, authority: bytes, known: Shared) -> Shared:
        since = known.certified_at or self._clock.now()
        names = self._names or known.names
        return replace(known, authority=authority, names=names, certified_at=since)

    async def _ensured(self, authority: bytes, before: Shared | None = None) -> Shared:
        """Return what is shared, made by whoever comes first; raises KubeError."""
        for _ in range(_TRIES):
            with suppress(NotFound):
                return _shared_in(await self._client.get(SECRETS, CALLERS, self._namespace))
            made = Shared(secrets.token_bytes(_SIZE), rotated_at=self._clock.now())
            if before is not None:
                made = replace(made, previous=before.current, was_written=before.was_written)
            if authority:
                made = self._certified(authority, made)
            with suppress(AlreadyExists):
                await self._client.create(SECRETS, _document(self._namespace, made))
                return made
        raise KubeError(f"the Secret `{CALLERS}` keeps changing while it is read")

    async def _change(self, change: Callable[[Shared], Shared]) -> None:
        """Write a change of what is there; raises KubeError where somebody else is quicker each time."""
        for _ in range(_TRIES):
            obj = await self._client.get(SECRETS, CALLERS, self._namespace)
            known = _shared_in(obj)
            wanted = change(known)
            if wanted != known:
                try:
                    await self._client.update(SECRETS, {**obj, "data": {_FIELD: wanted.packed()}})
                except Conflict:
                    continue
            self._take(wanted)
            return
        raise KubeError(f"the Secret `{CALLERS}` keeps changing while it is written")

    def _noted(self, change: Change) -> None:
        if change.new is None:
            self._is_missing.set()
            return
        try:
            self._take(_shared_in(change.new))
        except KubeError as error:
            _log.warning("%s", error.message)

    def _take(self, shared: Shared) -> None:
        if shared == self.shared:
            return
        if shared.current != self.shared.current:
            self._rotated.set()
        self.shared = shared
        self._news.set()
        self._changed(shared)


def _shared_in(secret: Object) -> Shared:
    """Return what the Secret holds; raises KubeError where that is not ours."""
    found = unpacked(str((secret.get("data") or {}).get(_FIELD) or ""))
    if found is None:
        raise KubeError(
            f"the Secret `{CALLERS}` does not hold what the controllers write there",
            help="delete the Secret; it is made anew",
        )
    return found


def _document(namespace: str, shared: Shared) -> Object:
    return SECRETS.document(
        CALLERS,
        namespace,
        labels=vocabulary.BY_KPOLICY,
        annotations={vocabulary.OWNER: "kpolicy"},
        type="Opaque",
        data={_FIELD: shared.packed()},
    )
