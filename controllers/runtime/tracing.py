"""Traces of reviews for OpenTelemetry, off unless an address of a collector is given.

A review is a trace, or a part of the API server's where that sends `traceparent` (W3C); what takes time in it is a span. Spans are
kept until they are posted, some seconds later, as OTLP over HTTP in its JSON form; what cannot be posted is dropped and counted,
because no answer ever waits for a trace.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import orjson

from engine.errors import EngineError

from .logs import current_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from controllers.kube import Clock

    from .metrics import Metrics

    Post = Callable[[str, Mapping[str, str], bytes], Awaitable[None]]

P = ParamSpec("P")
R = TypeVar("R")
EVERY: Final = 5.0
"""Seconds between two posts."""
MOST: Final = 2048
"""Spans that wait to be posted; what comes on top is dropped."""
PATH: Final = "/v1/traces"
PORT: Final = 4318
_PARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SERVER, _INTERNAL, _ERROR = 2, 1, 2
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Span:
    """Something that takes time within a trace; `about` is what is told of it."""

    trace: str
    name: str
    parent: str
    kind: int
    began: int
    keep: Callable[[Span], None]
    now: Callable[[], int]
    identity: str = field(default_factory=lambda: os.urandom(8).hex())
    ended: int = 0
    is_error: bool = False
    about: dict[str, str | bool] = field(default_factory=dict)

    def describe(self, **about: str | bool) -> None:
        """Tell something of what takes the time."""
        self.about.update({f"kpolicy.{key}": value for key, value in about.items()})

    @contextmanager
    def child(self, name: str) -> Iterator[Span]:
        """Have the block be a span within this one."""
        made = Span(self.trace, name, self.identity, _INTERNAL, self.now(), self.keep, self.now)
        with made.running():
            yield made

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have the block be this span; one that raises is an error."""
        token = current_span.set(self)
        try:
            yield
        except BaseException:
            self.is_error = True
            raise
        finally:
            current_span.reset(token)
            self.ended = self.now()
            self.keep(self)


current_span: Final[ContextVar[Span | None]] = ContextVar("current_span", default=None)
"""The span that runs, None wherever nothing is traced."""


def traced(name: str) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Return what makes a coroutine function a span wherever a trace runs; elsewhere it stays as it is."""

    def around(work: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        async def within(span: Span, *words: P.args, **named: P.kwargs) -> R:
            with span.child(name):
                return await work(*words, **named)

        @wraps(work)
        def run(*words: P.args, **named: P.kwargs) -> Awaitable[R]:
            span = current_span.get()
            return work(*words, **named) if span is None else within(span, *words, **named)

        return run

    return around


class Tracer:
    """The traces of one process; `run` it to have them posted."""

    def __init__(
        self, address: str, post: Post, clock: Clock, metrics: Metrics, identity: str
    ) -> None:
        self._url = collector_url(address)
        self._post, self._clock, self._metrics = post, clock, metrics
        self._about = {
            "service.name": "kpolicy",
            "service.instance.id": identity,
            "process.pid": str(os.getpid()),
        }
        self._waiting: list[Span] = []
        self._is_failing = False

    @contextmanager
    def review(self, webhook: str, parent: str = "") -> Iterator[None]:
        """Have the block be the trace of a review, in that of whoever calls unless they do not record it."""
        found = _PARENT.fullmatch(parent)
        if found and not int(found[3], 16) & 1:
            yield
            return
        trace, above = (found[1], found[2]) if found else (os.urandom(16).hex(), "")
        span = Span(trace, f"review {webhook}", above, _SERVER, self._now(), self._keep, self._now)
        with span.running():
            yield

    async def run(self) -> None:
        """Post what waits every few seconds, until cancelled."""
        while True:
            await self._clock.sleep(EVERY)
            await self.flush()

    async def flush(self) -> None:
        """Post what waits; spans of a post that fails are dropped."""
        spans, self._waiting = self._waiting, []
        if not spans:
            return
        try:
            await self._post(self._url, {}, orjson.dumps(exported(spans, self._about)))
        except EngineError as error:
            self._metrics.count("kpolicy_trace_spans_dropped", ("not posted",), len(spans))
            if not self._is_failing:
                _log.warning("traces cannot be posted: %s", error.message)
            self._is_failing = True
        else:
            self._is_failing = False

    def _keep(self, span: Span) -> None:
        if len(self._waiting) >= MOST:
            self._metrics.count("kpolicy_trace_spans_dropped", ("too many",))
            return
        span.about.setdefault("kpolicy.request", current_request.get())
        self._waiting.append(span)

    def _now(self) -> int:
        return int(self._clock.now().timestamp() * 1e9)


def collector_url(address: str) -> str:
    """Return where traces are posted: a URL, or a host with or without port, as an operator names a collector."""
    if "://" in address:
        return address.rstrip("/") + ("" if address.rstrip("/").endswith(PATH) else PATH)
    host = address if ":" in address.rpartition("]")[2] else f"{address}:{PORT}"
    return f"http://{host}{PATH}"


def exported(spans: list[Span], about: dict[str, str]) -> dict[str, Any]:
    """Return spans as OTLP's ExportTraceServiceRequest."""
    scope = {"scope": {"name": "kpolicy"}, "spans": [_span(one) for one in spans]}
    return {
        "resourceSpans": [{"resource": {"attributes": _attributes(about)}, "scopeSpans": [scope]}]
    }


def _span(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace,
        "spanId": span.identity,
        **({"parentSpanId": span.parent} if span.parent else {}),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.began),
        "endTimeUnixNano": str(span.ended),
        "attributes": _attributes(span.about),
        "status": {"code": _ERROR} if span.is_error else {},
    }


def _attributes(about: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"boolValue" if isinstance(one, bool) else "stringValue": one}}
        for key, one in about.items()
    ]
