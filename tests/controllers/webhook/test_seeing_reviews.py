"""What operators see of a review beside figures: lines of the log, and traces, where they asked for them."""

from __future__ import annotations

import asyncio
import io
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
import pytest

from controllers.lookups.errors import OutsideError
from controllers.runtime import logs
from controllers.runtime.metrics import Metrics
from controllers.runtime.options import read_options
from controllers.runtime.tracing import MOST, Tracer, collector_url
from controllers.webhook.server import Routes, WebhookServer
from tests.clock import ManualClock

from .staging import NOW, UID, body, pod, policy, staged

if TYPE_CHECKING:
    from collections.abc import Iterator

ABOVE = "4bf92f3577b34da6a3ce929d0e0e4736"


@contextmanager
def logging_as(level: str, form: str) -> Iterator[io.StringIO]:
    """Log to the stream that is given, as a worker does."""
    root, stream = logging.getLogger(), io.StringIO()
    before, usual = root.handlers[:], root.level
    root.handlers = []
    logs.configure(level, form, "worker", stream)
    try:
        yield stream
    finally:
        root.handlers, root.level = before, usual


def test_a_line_is_written_without_a_look_at_the_code_that_wrote_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look(*_: Any) -> Any:
        raise AssertionError("every line looks through the frames above it")

    monkeypatch.setattr(logging.Logger, "findCaller", look)
    with logging_as("INFO", logs.TEXT) as stream:
        logging.getLogger("controllers.webhook.requests").info("refused")

    assert "INFO controllers.webhook.requests refused" in stream.getvalue()


def test_a_refusal_is_one_line_with_the_requests_id_and_without_what_it_says() -> None:
    async def play() -> None:
        async with staged(policy()) as stage:
            await stage.ask("validate", body(pod(labels={"team": "blue"})))
            await stage.ask("validate", body(pod()))

    with logging_as("info", "json") as written:
        asyncio.run(play())
    line = orjson.loads(written.getvalue())
    assert line.pop("ts").endswith("+00:00")
    assert line.pop("milliseconds") > 0
    assert line == {
        "level": "info",
        "logger": "controllers.webhook.requests",
        "process": "worker",
        "msg": "refused",
        "request": UID,
        "webhook": "/validate/fail",
        "operation": "CREATE",
        "kind": "Pod",
        "namespace": "shop",
        "name": "web",
        "user": "chip",
    }


def test_what_is_logged_cannot_break_a_line_and_exceptions_stay_within_theirs() -> None:
    with logging_as("info", "json") as written:
        try:
            raise ValueError("a\nb")
        except ValueError:
            logging.getLogger("any").exception('two\nlines and a "%s"', "word")
    line = orjson.loads(written.getvalue())
    assert line["msg"] == 'two\nlines and a "word"'
    assert "ValueError: a\nb" in line["error"]


def test_words_of_the_log_name_what_they_are_about() -> None:
    request = {"kind": {"kind": "Pod"}, "userInfo": {}, "operation": "CREATE", "name": "web"}
    with logging_as("debug", "text") as written:
        logs.log_answer(request, "/validate/fail", 0.0021, is_allowed=True)
    (line,) = written.getvalue().splitlines()
    assert "DEBUG controllers.webhook.requests allowed webhook=/validate/fail" in line
    assert line.endswith("milliseconds=2.1")


def test_names_in_requests_cannot_forge_lines_or_pairs_of_the_log() -> None:
    request = {
        "kind": {"kind": "Pod"},
        "userInfo": {"username": 'a" user=root'},
        "name": "web\n2026 INFO forged",
    }
    with logging_as("info", "text") as written:
        logs.log_answer(request, "/validate/fail", 0.002, is_allowed=False)
    (line,) = written.getvalue().splitlines()
    assert r'name="web\n2026 INFO forged" user="a\" user=root" milliseconds=2.0' in line


def test_lines_of_answers_wait_for_each_other_and_keep_their_order_and_their_requests() -> None:
    request = {"kind": {"kind": "Pod"}, "userInfo": {}, "name": "web"}

    def refuse(uid: str) -> None:
        logs.current_request.set(uid)
        logs.log_answer(request, "/validate/fail", 0.002, is_allowed=False)

    async def play(stream: io.StringIO) -> list[int]:
        seen = []
        refuse("one")
        refuse("")
        seen.append(len(stream.getvalue().splitlines()))
        await asyncio.sleep(0)
        seen.append(len(stream.getvalue().splitlines()))
        refuse("two")
        logging.getLogger("other").warning("between")
        seen.append(len(stream.getvalue().splitlines()))
        refuse("three")
        return seen

    with logging_as("info", "json") as written:
        assert asyncio.run(play(written)) == [0, 2, 4]
    lines = [orjson.loads(line) for line in written.getvalue().splitlines()]
    assert [line["msg"] for line in lines] == [
        "refused",
        "refused",
        "refused",
        "between",
        "refused",
    ]
    assert [line.get("request") for line in lines] == ["one", None, "two", "two", "three"]


def test_a_loop_that_ended_before_it_wrote_its_lines_loses_none() -> None:
    request = {"kind": {"kind": "Pod"}, "userInfo": {}, "name": "web"}

    async def refuse() -> None:
        logs.log_answer(request, "/validate/fail", 0.002, is_allowed=False)

    with logging_as("info", "text") as written:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(refuse())
        loop.close()
        logging.getLogger("other").warning("after")
    assert [line.split()[4] for line in written.getvalue().splitlines()] == ["refused", "after"]


class Collector:
    """Takes posts, or refuses them."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, Any]] = []
        self.refuses = False

    async def __call__(self, url: str, headers: Any, body: bytes, authorities: str = "") -> None:
        if self.refuses:
            raise OutsideError("HTTP 503")
        self.posts.append((url, orjson.loads(body)))

    @property
    def spans(self) -> list[dict[str, Any]]:
        return [
            one
            for _, sent in self.posts
            for one in sent["resourceSpans"][0]["scopeSpans"][0]["spans"]
        ]


def tracer_of(collector: Collector, metrics: Metrics | None = None) -> Tracer:
    return Tracer("collector.ops", collector, ManualClock(NOW), metrics or Metrics(), "replica-0")


async def reviewed(tracer: Tracer | None, traceparent: str = "") -> None:
    """Send one refused and one allowed review over HTTP."""
    async with staged(policy()) as stage:

        async def validate(rest: str, sent: bytes, budget: float) -> bytes:
            answer: bytes = await stage.reviewer.review("validate", rest, sent, budget)
            return answer

        server = WebhookServer(Routes({"validate": validate}), host="127.0.0.1", tracer=tracer)
        await server.start()
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
                headers = {"traceparent": traceparent} if traceparent else {}
                for labels in ({}, {"team": "blue"}):
                    async with session.post(
                        "/validate/fail", data=body(pod(labels=labels)), headers=headers
                    ) as answer:
                        assert answer.status == 200
        finally:
            await server.stop()
    if tracer is not None:
        await tracer.flush()


def about(span: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def test_a_review_is_a_trace_whose_spans_are_what_takes_time() -> None:
    collector = Collector()
    asyncio.run(reviewed(tracer_of(collector)))

    ((url, sent),) = collector.posts
    assert url == "http://collector.ops:4318/v1/traces"
    assert about(sent["resourceSpans"][0]["resource"])["service.name"] == "kpolicy"
    roots = [one for one in collector.spans if "parentSpanId" not in one]
    assert [one["name"] for one in roots] == ["review validate"] * 2
    assert [about(one)["kpolicy.allowed"] for one in roots] == [False, True]
    assert {about(one)["kpolicy.request"] for one in collector.spans} == {UID}
    assert len({one["traceId"] for one in roots}) == 2
    for one in collector.spans:
        if one not in roots:
            (root,) = (root for root in roots if root["traceId"] == one["traceId"])
            assert (one["name"], one["parentSpanId"]) == ("evaluate", root["spanId"])
    assert len(collector.spans) == 4


def test_a_review_belongs_to_the_trace_of_the_api_server_and_is_left_out_where_that_is_not_recorded() -> (
    None
):
    collector = Collector()
    asyncio.run(reviewed(tracer_of(collector), f"00-{ABOVE}-00f067aa0ba902b7-01"))
    assert {one["traceId"] for one in collector.spans} == {ABOVE}
    roots = [one for one in collector.spans if one["name"] == "review validate"]
    assert {one["parentSpanId"] for one in roots} == {"00f067aa0ba902b7"}

    collector = Collector()
    asyncio.run(reviewed(tracer_of(collector), f"00-{ABOVE}-00f067aa0ba902b7-00"))
    assert collector.posts == []
    collector = Collector()
    asyncio.run(reviewed(tracer_of(collector), "00-nonsense-01"))
    assert len(collector.spans) == 4


def test_traces_that_cannot_be_posted_are_dropped_and_counted_and_no_answer_waits() -> None:
    collector, metrics = Collector(), Metrics()
    collector.refuses = True
    tracer = tracer_of(collector, metrics)
    asyncio.run(reviewed(tracer))
    assert metrics.value("kpolicy_trace_spans_dropped", ("not posted",)) == 4

    for _ in range(MOST + 3):
        with tracer.review("validate"):
            pass
    assert metrics.value("kpolicy_trace_spans_dropped", ("too many",)) == 3


def test_a_span_that_raises_is_an_error_and_the_error_goes_on() -> None:
    collector = Collector()
    tracer = tracer_of(collector)
    with pytest.raises(KeyError), tracer.review("validate"):
        raise KeyError
    asyncio.run(tracer.flush())
    assert collector.spans[0]["status"] == {"code": 2}


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("collector.ops", "http://collector.ops:4318/v1/traces"),
        ("collector.ops:4000", "http://collector.ops:4000/v1/traces"),
        ("[fd00::1]", "http://[fd00::1]:4318/v1/traces"),
        ("[fd00::1]:4000", "http://[fd00::1]:4000/v1/traces"),
        ("https://otel.example/base/", "https://otel.example/base/v1/traces"),
        ("https://otel.example/v1/traces", "https://otel.example/v1/traces"),
    ],
)
def test_a_collector_is_named_as_people_name_it(address: str, url: str) -> None:
    assert collector_url(address) == url


def test_nothing_is_traced_unless_it_is_asked_for_and_then_an_address_is_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert read_options(["--tracingAddress=collector.ops"]).tracing_address == ""
    given = ["--enableTracing", "--tracingAddress=collector.ops", "--loggingFormat=json"]
    options = read_options(given)
    assert (options.tracing_address, options.log_format) == ("collector.ops", "json")
    with pytest.raises(SystemExit):
        read_options(["--enableTracing"])
    assert "--tracingAddress" in capsys.readouterr().err
