"""What a parent process tells its workers, and they it, over a pair of sockets: messages of JSON, each with its length.

One process watches the API server and the others are fed, so that N workers cost the server no more than one. Order is kept: a worker sees changes in the order the parent saw them.
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from controllers.store.policies import ExceptionRules

from .cluster_cache import WATCHED, WATCHED_IF_SERVED, Change, ClusterCache
from .options import Options, outside_in

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Mapping

    from controllers.kube import Kind
    from controllers.kube.store import Store

Message = dict[str, Any]
LARGEST = 256 * 1024 * 1024
_PATHS = ("kubeconfig", "trusted_root", "client_ca")
_SETS = ("generated_natives", "omitted_events", "reported_natives", "roles")
_KINDS = {str(kind): kind for kind in (*WATCHED, *WATCHED_IF_SERVED)}


class Channel:
    """One end of the pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def on(cls, end: socket.socket) -> Channel:
        """Make the channel of a connected socket."""
        return cls(*await asyncio.open_connection(sock=end))

    def send(self, message: Message) -> None:
        """Queue a message; one to somebody who is gone is lost."""
        if not self._writer.is_closing():
            body = orjson.dumps(message)
            self._writer.write(len(body).to_bytes(4, "big") + body)

    async def messages(self) -> AsyncIterator[Message]:
        """Yield what the other side says, until it is gone."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = int.from_bytes(await self._reader.readexactly(4), "big")
                if size > LARGEST:
                    return
                yield orjson.loads(await self._reader.readexactly(size))

    def close(self) -> None:
        """End the connection."""
        self._writer.close()


def change_message(change: Change) -> Message:
    """Return the message about a change of a ClusterCache."""
    return {"t": change.type, "k": str(change.kind), "o": change.object}


def everything(stores: Mapping[Kind, Store], cache: ClusterCache) -> list[Message]:
    """Return the messages after which a ClusterCache that knew nothing knows what this one does."""
    found: list[Message] = []
    for kind, store in stores.items():
        found += [{"t": "PUT", "k": str(kind), "o": kind.typed(obj)} for obj in store]
        if str(kind) not in cache.missing:
            found.append({"t": "LISTED", "k": str(kind)})
    return found


def take_over(cache: ClusterCache, message: Message) -> bool:
    """Let a ClusterCache take over a message about it; return False for any other message."""
    named = str(message.get("k"))
    if named not in _KINDS:
        return False
    kind = next((one for one in cache.watched if str(one) == named), _KINDS[named])
    match message["t"]:
        case "PUT":
            cache.put(kind, message["o"])
        case "REMOVED":
            cache.remove(kind, message["o"])
        case "LISTED":
            cache.listed(kind)
        case _:
            return False
    return True


def options_message(options: Options) -> Message:
    """Return options as a message."""
    made = asdict(options)
    for name in _PATHS:
        path = getattr(options, name)
        made[name] = str(path.absolute()) if path else None
    for name in _SETS:
        made[name] = sorted(getattr(options, name))
    return made


def options_in(message: Message) -> Options:
    """Return the options of a message."""
    given = dict(message)
    for name in _PATHS:
        given[name] = Path(given[name]) if given[name] else None
    given["client_names"] = tuple(given["client_names"])
    given["outside"] = outside_in(given["outside"])
    given["exceptions"] = ExceptionRules(**given["exceptions"])
    for name in _SETS:
        given[name] = frozenset(given[name])
    return Options(**given)


def packed(data: bytes) -> str:
    """Return bytes as a text for a message."""
    return base64.b64encode(data).decode()


def unpacked(text: str) -> bytes:
    """Return the bytes of a text of a message."""
    return base64.b64decode(text)
