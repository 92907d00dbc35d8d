"""What a process writes to its log: a line for each event, as text or as JSON, with the id of the request that it is about.

Upstream's flag chooses between the two (row W-33). A request's id is set once and is in every line until the next one; of a
request only what names it is logged, never its content, and of an answer never the message, which may show a code.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from contextlib import nullcontext
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Json

TEXT, JSON = "text", "json"
FORMATS: Final = (TEXT, JSON)
_TEXT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"

_WORD: Final = re.compile(r"[!#-~]*")

current_request: Final[ContextVar[str]] = ContextVar("current_request", default="")
"""The UID of the request that is being answered, empty beside requests."""

_log = logging.getLogger("controllers.webhook.requests")


def configure(level: str, form: str, process: str, stream: TextIO | None = None) -> None:
    """Have this process log from a level on, in one of FORMATS, to standard error or a stream; `process` says in JSON who writes."""
    # no line says in which place of the code, thread or process it was written; looking for them with each costs more than the line
    logging._srcfile = None  # noqa: SLF001 - the way that its documentation names
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = _Lines(stream)
    handler.setFormatter(_AsJson(process) if form == JSON else _AsText(_TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class _Lines(logging.StreamHandler[TextIO]):
    """Writes lines in their order: those of answers once the answers of the moment are on their way, all of them together."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__(stream)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[logging.LogRecord] = []
        # a child that is forked meanwhile leaves them to its parent
        os.register_at_fork(after_in_child=self._waiting.clear)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, after those that wait, or let it wait."""
        loop = _loop() if record.name == _log.name else None
        if self._waiting and loop is not self._loop:
            self.flush()
        if loop is None:
            super().emit(record)
            return
        record.told = _about(record)
        if not self._waiting:
            self._loop = loop
            loop.call_soon(self.flush)
        self._waiting.append(record)

    def flush(self) -> None:
        """Write what waits, and have the stream write what it holds."""
        with self.lock or nullcontext():
            if self._waiting:
                waiting = [*self._waiting]
                self._waiting.clear()
                try:
                    self.stream.write("".join([f"{self.format(one)}\n" for one in waiting]))
                except Exception:
                    self.handleError(waiting[0])
            super().flush()


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _AsText(logging.Formatter):
    """Words, and behind them what an event is about as `key=value`."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - overrides
        """Return the line without what follows of an exception."""
        pairs = " ".join(f"{key}={_plain(value)}" for key, value in _about(record).items())
        return f"{super().formatMessage(record)} {pairs}".rstrip()


def _plain(value: Any) -> str:
    """Return a value as one word, quoted where it is none: names in requests are not checked yet, and may hold line breaks."""
    text = str(value)
    return text if _WORD.fullmatch(text) else orjson.dumps(text).decode()


class _AsJson(logging.Formatter):
    """One object a line, which nothing that is logged can break."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": self._process,
            "msg": record.getMessage(),
            **_about(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def _about(record: logging.LogRecord) -> dict[str, Any]:
    """Return what an event is about: the request in whose answer it happened, and what was given as `extra={"about": …}`."""
    told: dict[str, Any] | None = getattr(record, "told", None)
    if told is not None:
        return told
    uid = current_request.get()
    return {**({"request": uid} if uid else {}), **getattr(record, "about", {})}


def logs_everything() -> bool:
    """Tell whether requests that are let in are logged, too."""
    return _log.isEnabledFor(logging.DEBUG)


def log_answer(
    request: Mapping[str, Json], webhook: str, seconds: float, *, is_allowed: bool
) -> None:
    """Log that a request was answered: a refusal always, what was let through for those who debug."""
    level = logging.DEBUG if is_allowed else logging.INFO
    if not _log.isEnabledFor(level):
        return
    about = {
        "webhook": webhook,
        "operation": request.get("operation"),
        "kind": request["kind"].get("kind"),
        "namespace": request.get("namespace") or "",
        "name": request.get("name") or "",
        "user": request["userInfo"].get("username") or "",
        "milliseconds": round(seconds * 1000, 1),
    }
    _log.log(level, "allowed" if is_allowed else "refused", extra={"about": about})
