"""Tells people what happens to grants and codes: an Event on the object, and a signed notice to an address of their choice.

The address is in the Secret `kpolicy-notify` (`url`, `key`, optionally `ca` and `format`); without it there are Events only. A notice
is sent at least once while this process leads; its id tells one that came twice. Never a code, and never a link that decides: a
request comes with the command that approves it, which asks who types it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube import find
from controllers.kube.kinds import SECRETS
from controllers.kube.workqueue import WorkQueue
from controllers.store.events import Note
from engine.errors import EngineError
from engine.lang import rfc3339

from .announcing import announce

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object

    from .context import LoopContext

SECRET_NAME: Final = "kpolicy-notify"  # noqa: S105 - the name of an object, not a secret
SOURCE: Final = "kpolicy-grants"
SHORTEST_KEY: Final = 16
MOST_TRIES: Final = 8
_MOST_WAITING: Final = 1000
_log = logging.getLogger(__name__)


class Notices:
    """Takes notices at once and sends them in the background; `run` it as a task on the leader."""

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        self._waiting: OrderedDict[str, Object] = OrderedDict()
        self._tries: dict[str, int] = {}
        self.queue: WorkQueue[str] = WorkQueue(clock=context.clock, least=1.0, most=300.0)

    async def run(self) -> None:
        """Send until cancelled."""
        await self.queue.run(self._send, on_error=_failed)

    def tell(self, reason: str, about: Mapping[str, str], message: str, **fields: Any) -> None:
        """Write an Event about an object and send a notice with further fields."""
        note = Note(about, reason, "None", message, SOURCE)
        announce(self._context, [note])
        if self._context.post is None:
            return
        at = rfc3339.write(self._context.clock.now())
        told = {"time": at, "reason": reason, "object": dict(about), "message": message, **fields}
        digest = hmac.digest(self._context.key, orjson.dumps(told), "sha256").hex()[:32]
        self._waiting[digest] = {"id": digest, **told}
        while len(self._waiting) > _MOST_WAITING:
            self._forget(next(iter(self._waiting)))
        self.queue.add(digest)

    async def _send(self, key: str) -> None:
        """Send one notice; raises EngineError, then it is tried again later, some times."""
        told = self._waiting.get(key)
        if told is None or self._context.post is None:
            return
        target = await self._target()
        if target is not None:
            self._tries[key] = self._tries.get(key, 0) + 1
            if self._tries[key] > MOST_TRIES:
                _log.warning("a notice about %s could not be sent", told["reason"])
            else:
                body = orjson.dumps(BODIES[target.format](told))
                headers = signed(body, told["time"], key, target.key) if target.key else {}
                await self._context.post(target.url, headers, body, target.authorities)
        self._forget(key)

    def _forget(self, key: str) -> None:
        self._waiting.pop(key, None)
        self._tries.pop(key, None)

    async def _target(self) -> Target | None:
        context = self._context
        secret = await find(context.client, SECRETS, SECRET_NAME, context.namespace)
        return None if secret is None else target_in(secret)


class Target:
    """Where notices go, and what they are signed with."""

    __slots__ = ("authorities", "format", "key", "url")

    def __init__(self, url: str, key: bytes, authorities: str, form: str = "generic") -> None:
        self.url, self.key, self.authorities, self.format = url, key, authorities, form

    def __repr__(self) -> str:
        return "<Target>"


def target_in(secret: Object) -> Target | None:
    """Return where notices go by a Secret, None where it names no https address with a key that is long enough.

    Chats check no signature: their address is the secret, and they need no key.
    """
    data = secret.get("data") or {}
    try:
        url, key, authorities, form = (
            base64.b64decode(data.get(name) or "", validate=True)
            for name in ("url", "key", "ca", "format")
        )
        address, named = url.decode().strip(), form.decode().strip() or "generic"
        is_signed = len(key) >= SHORTEST_KEY or (not key and named != "generic")
        if address.startswith("https://") and is_signed and named in BODIES:
            return Target(address, key, authorities.decode(), named)
    except (binascii.Error, TypeError, ValueError):
        pass
    _log.warning(
        "the Secret `%s` names no https address with a key of %d bytes, or a format that is none of %s",
        SECRET_NAME,
        SHORTEST_KEY,
        ", ".join(BODIES),
    )
    return None


def signed(body: bytes, at: str, key_id: str, key: bytes) -> dict[str, str]:
    """Return the headers of a notice: its id, its time, and `v1=` HMAC-SHA-256 of `time.body` in hex."""
    mac = hmac.digest(key, f"{at}.".encode() + body, "sha256").hex()
    return {"X-Kpolicy-Notice": key_id, "X-Kpolicy-Time": at, "X-Kpolicy-Signature": f"v1={mac}"}


def _lines(told: Object) -> list[str]:
    """Return what a chat shows: the sentence, and for what waits the command by which an approver decides."""
    about = told["object"]
    lines = [_printable(str(told["message"]))]
    if told.get("state") == "pending":
        lines.append(
            _printable(
                f"kubectl kpolicy grant approve {about['name']} -n {about['namespace']} --comment WHY"
            )
        )
    return lines


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _slack(told: Object) -> Object:
    """Return an incoming webhook's body; texts of requesters are no markup, so that they neither link nor call anybody."""
    lines = _lines(told)
    blocks = [
        {"type": "section", "text": {"type": "plain_text", "text": line[:3000], "emoji": False}}
        for line in lines
    ]
    escaped = lines[0].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": escaped, "blocks": blocks}


def _teams(told: Object) -> Object:
    """Return the body of a Teams workflow's webhook: a card of runs of text, which know no markup."""
    body = [
        {
            "type": "RichTextBlock",
            "inlines": [
                {"type": "TextRun", "text": line, **({"fontType": "Monospace"} if number else {})}
            ],
        }
        for number, line in enumerate(_lines(told))
    ]
    card = {"type": "AdaptiveCard", "version": "1.4", "body": body}
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [content]}


BODIES: Final = {"generic": lambda told: told, "slack": _slack, "teams": _teams}
"""How a notice is written, by the Secret's `format`."""


def _failed(_: str, error: Exception) -> None:
    if isinstance(error, EngineError):
        _log.warning("a notice could not be sent: %s", type(error).__name__)
    else:
        _log.error("a notice could not be sent", exc_info=error)
