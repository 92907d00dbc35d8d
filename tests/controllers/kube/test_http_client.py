import asyncio
import gc
import json
import weakref

import pytest
from aiohttp import web

from controllers.kube import (
    Access,
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Unreachable,
    connect,
)
from controllers.kube.access import Impersonation
from controllers.kube.credentials import Presented, TokenFile, bearer
from controllers.kube.errors import error_of, misses_object, not_served
from controllers.kube.http import HttpClient
from controllers.kube.kinds import GRANTS, PODS, Kind, segment
from controllers.kube.transport import _LastUsedFirst
from tests.clock import ManualClock

from .apiserver import answering, run, serving

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "dev"}}


def status(code, reason="", message="no"):
    return (code, {"kind": "Status", "code": code, "reason": reason, "message": message})


def test_an_object_is_fetched_with_the_token():
    async def scenario():
        async with (
            serving(answering((200, POD))) as server,
            connect(Access(server.address, bearer("secret"))) as client,
        ):
            assert await client.get(PODS, "web", "dev") == POD
            [(method, path, headers, _)] = server.requests
            assert (method, path) == ("GET", "/api/v1/namespaces/dev/pods/web")
            assert headers["Authorization"] == "Bearer secret"

    run(scenario())


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (404, "NotFound", NotFound),
        (403, "Forbidden", Forbidden),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (400, "", Invalid),
        (500, "InternalError", KubeError),
    ],
)
def test_a_status_becomes_an_error_of_its_kind(code, reason, kind):
    async def scenario():
        async with (
            serving(answering(status(code, reason, "told so"))) as server,
            connect(Access(server.address)) as client,
        ):
            with pytest.raises(kind) as caught:
                await client.get(PODS, "web", "dev")
            assert type(caught.value) is kind
            assert caught.value.message == "told so"
            assert (caught.value.status, caught.value.reason) == (code, reason)

    run(scenario())


def test_a_log_in_that_is_refused_is_said_in_a_sentence_with_what_to_do():
    said = error_of(*status(401, "Unauthorized", "Unauthorized"))
    assert said.message == "the server does not accept these credentials"
    assert "kubeconfig" in said.help


def test_a_foreign_text_is_capped_and_cleaned():
    async def scenario():
        async with (
            serving(answering(status(422, "Invalid", "a\x1b[31m\nb" + "x" * 5000))) as server,
            connect(Access(server.address)) as client,
        ):
            with pytest.raises(Invalid) as caught:
                await client.get(PODS, "web", "dev")
            assert caught.value.message.startswith("a[31m\nbx")
            assert len(caught.value.message) < 1100

    run(scenario())


def test_an_answer_that_is_not_json_is_an_own_error():
    async def scenario():
        async with (
            serving(answering(web.Response(text="<html>"))) as server,
            connect(Access(server.address)) as client,
        ):
            with pytest.raises(KubeError, match="not readable as JSON"):
                await client.get(PODS, "web", "dev")

    run(scenario())


def test_a_server_that_is_not_there_is_unreachable():
    async def scenario():
        clock = ManualClock()
        async with connect(Access("http://127.0.0.1:1"), clock=clock) as client:
            task = asyncio.ensure_future(client.create(PODS, POD))
            with pytest.raises(Unreachable, match="cannot be reached"):
                await task

    run(scenario())


def test_reading_is_tried_again_after_a_lost_connection_and_writing_is_not():
    async def scenario():
        clock = ManualClock()
        async with connect(Access("http://127.0.0.1:1"), clock=clock) as client:
            task = asyncio.ensure_future(client.get(PODS, "web", "dev"))
            while not clock.sleeping:
                await asyncio.sleep(0)
            await clock.advance(10)
            while not task.done():
                await asyncio.sleep(0)
                await clock.advance(10)
            with pytest.raises(Unreachable):
                await task

    run(scenario())


def test_a_redirect_is_not_followed():
    async def scenario():
        async with serving(answering((200, {}))) as other:
            moved = web.Response(status=302, headers={"Location": other.address + "/x"})
            async with (
                serving(answering(moved)) as server,
                connect(Access(server.address, bearer("canary"))) as client,
            ):
                with pytest.raises(KubeError):
                    await client.get(PODS, "web", "dev")
            assert other.requests == []

    run(scenario())


def test_a_pause_that_the_server_asks_for_is_kept_also_for_writing():
    async def scenario():
        clock = ManualClock()
        busy = web.Response(status=429, headers={"Retry-After": "7"}, text="{}")
        async with (
            serving(answering(busy, (201, POD))) as server,
            connect(Access(server.address), clock=clock) as client,
        ):
            task = asyncio.ensure_future(client.create(PODS, POD))
            while not clock.sleeping:
                await asyncio.sleep(0.001)
            await clock.advance(6.9)
            assert not task.done()
            await clock.advance(0.2)
            assert await task == POD
            assert len(server.requests) == 2

    run(scenario())


def test_a_failed_write_without_a_named_pause_is_not_repeated():
    async def scenario():
        async with (
            serving(answering(status(503), (201, POD))) as server,
            connect(Access(server.address)) as client,
        ):
            with pytest.raises(KubeError):
                await client.create(PODS, POD)
            assert len(server.requests) == 1

    run(scenario())


def test_a_renewed_token_is_read_after_a_refusal(tmp_path):
    async def scenario():
        token = tmp_path / "token"
        token.write_text("old\n")

        async def handle(request):
            known = request.headers["Authorization"] == "Bearer new"
            return web.json_response(POD) if known else web.json_response({}, status=401)

        async with (
            serving(handle) as server,
            connect(Access(server.address, TokenFile(token))) as client,
        ):
            with pytest.raises(KubeError):
                await client.get(PODS, "web", "dev")
            token.write_text("new")
            assert await client.get(PODS, "web", "dev") == POD

    run(scenario())


def test_lists_are_fetched_page_by_page_and_items_carry_their_kind():
    async def handle(request):
        assert request.query["limit"] == "500"
        if "continue" not in request.query:
            return web.json_response(
                {
                    "metadata": {"resourceVersion": "9", "continue": "next"},
                    "items": [{"metadata": {"name": "a"}}],
                }
            )
        assert request.query["continue"] == "next"
        return web.json_response(
            {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "b"}}]}
        )

    async def scenario():
        async with serving(handle) as server, connect(Access(server.address)) as client:
            page = await client.list_all(PODS)
            assert [item["metadata"]["name"] for item in page.items] == ["a", "b"]
            assert {(item["apiVersion"], item["kind"]) for item in page.items} == {("v1", "Pod")}
            assert page.resource_version == "9"

    run(scenario())


def test_selectors_stand_in_the_query():
    async def scenario():
        async with (
            serving(answering((200, {"items": []}))) as server,
            connect(Access(server.address)) as client,
        ):
            await client.list(
                PODS, "dev", label_selector="a in (b,c)", field_selector="metadata.name=x"
            )
            assert server.paths == [
                "/api/v1/namespaces/dev/pods?labelSelector=a+in+(b,c)&fieldSelector=metadata.name%3Dx"
            ]

    run(scenario())


def test_metadata_alone_keeps_the_kind_of_the_objects():
    async def scenario():
        item = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"name": "a"},
        }
        async with (
            serving(answering((200, {"items": [item]}))) as server,
            connect(Access(server.address)) as client,
        ):
            page = await client.list(PODS, metadata_only=True)
            assert page.items[0]["kind"] == "Pod"
            assert "as=PartialObjectMetadataList" in server.requests[0][2]["Accept"]

    run(scenario())


def streaming(*lines, hold=False):
    async def handle(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(
                line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            )
        if hold:
            await asyncio.sleep(30)
        return response

    return handle


def test_a_watch_yields_events_that_arrive_in_pieces():
    async def scenario():
        first = json.dumps({"type": "ADDED", "object": POD}).encode()
        lines = (
            first[:20],
            first[20:] + b"\n" + first + b"\n",
            b"\n",
            {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}},
        )
        async with serving(streaming(*lines)) as server, connect(Access(server.address)) as client:
            seen = [event async for event in client.watch(PODS, "3", namespace="dev")]
            assert [event.type for event in seen] == ["ADDED", "ADDED", "BOOKMARK"]
            assert seen[0].object == POD
            assert "allowWatchBookmarks=true" in server.paths[0]
            assert "resourceVersion=3" in server.paths[0]

    run(scenario())


def test_an_expired_version_inside_the_stream_is_gone():
    async def scenario():
        error = {
            "type": "ERROR",
            "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"},
        }
        async with serving(streaming(error)) as server, connect(Access(server.address)) as client:
            with pytest.raises(Gone):
                _ = [event async for event in client.watch(PODS, "3")]

    run(scenario())


def test_a_watch_that_stays_silent_is_unreachable():
    async def scenario():
        async with (
            serving(streaming({"type": "ADDED", "object": POD}, hold=True)) as server,
            HttpClient(Access(server.address), silence_seconds=0.05) as client,
        ):
            with pytest.raises(Unreachable, match="in time"):
                _ = [event async for event in client.watch(PODS, "3", timeout_seconds=0)]

    run(scenario())


@pytest.mark.parametrize("line", [b"{nonsense\n", b"[]\n", b'{"type":"ADDED"}\n'])
def test_a_watch_event_that_is_none_is_an_own_error(line):
    async def scenario():
        async with serving(streaming(line)) as server, connect(Access(server.address)) as client:
            with pytest.raises(KubeError):
                _ = [event async for event in client.watch(PODS, "3")]

    run(scenario())


def test_deleting_names_the_one_object_that_is_meant():
    async def scenario():
        async with (
            serving(answering((200, {}))) as server,
            connect(Access(server.address)) as client,
        ):
            await client.delete(PODS, "web", "dev", uid="u1", propagation="Background")
            body = json.loads(server.requests[0][3])
            assert body["preconditions"] == {"uid": "u1"}
            assert body["propagationPolicy"] == "Background"

    run(scenario())


def test_patches_carry_their_type_and_writes_their_manager():
    async def scenario():
        async with (
            serving(answering((200, POD))) as server,
            connect(Access(server.address)) as client,
        ):
            await client.patch(PODS, "web", "dev", {"a": 1})
            await client.patch(
                PODS, "web", "dev", {}, content_type="application/apply-patch+yaml",
                field_manager="kyverno-generate", force=True, dry_run=True,
            )  # fmt: skip
            await client.update(PODS, POD, subresource="status")
            first, second, third = server.requests
            assert first[2]["Content-Type"] == "application/merge-patch+json"
            assert first[1].endswith("?fieldManager=kpolicy&fieldValidation=Ignore")
            assert second[1].endswith(
                "?fieldManager=kyverno-generate&fieldValidation=Ignore&dryRun=All&force=true"
            )
            assert third[:2] == (
                "PUT",
                "/api/v1/namespaces/dev/pods/web/status?fieldManager=kpolicy&fieldValidation=Ignore",
            )

    run(scenario())


def test_impersonation_stands_in_the_headers():
    seen = []

    async def handle(request):
        seen.append(request.headers.getall("Impersonate-Group"))
        return web.json_response({})

    async def scenario():
        async with serving(handle) as server:
            access = Access(server.address, impersonate=Impersonation("jane", ("a", "b"), "7"))
            async with connect(access) as client:
                await client.get(PODS, "x", "dev")
            assert server.requests[0][2]["Impersonate-User"] == "jane"
            assert server.requests[0][2]["Impersonate-Uid"] == "7"
        assert seen == [["a", "b"]]

    run(scenario())


def test_a_review_gives_its_status():
    async def scenario():
        kind = Kind(
            "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False
        )
        async with (
            serving(answering((201, {"status": {"allowed": True}}))) as server,
            connect(Access(server.address)) as client,
        ):
            assert await client.review(kind, {"user": "jane"}) == {"allowed": True}
            assert json.loads(server.requests[0][3])["kind"] == "SubjectAccessReview"

    run(scenario())


def test_raw_answers_may_be_text_and_are_bounded():
    async def scenario():
        async with (
            serving(answering(web.Response(text="ok"))) as server,
            connect(Access(server.address)) as client,
        ):
            assert await client.raw("GET", "/healthz") == "ok"
        async with (
            serving(answering((200, {"a": "x" * 500}))) as server,
            connect(Access(server.address)) as client,
        ):
            with pytest.raises(Invalid, match="100 bytes"):
                await client.raw("GET", "/x", limit=100)

    run(scenario())


def test_an_answer_nested_without_end_is_an_own_error():
    async def scenario():
        async with (
            serving(answering(web.Response(text="[" * 500 + "]" * 500))) as server,
            connect(Access(server.address)) as client,
        ):
            with pytest.raises(KubeError, match="not readable"):
                await client.raw("GET", "/x")

    run(scenario())


@pytest.mark.parametrize(
    "path",
    [
        "", "api", "http://evil/", "//evil/x", "/api/../x", "/api/%2e%2e/x", "/api/./x", "/api//x", "/a%2fb", "/a%5cb",
        "/a\\b", "/a#b", "/a\r\nHost: evil", "/a%00b", "/a%252e", "/" + "a" * 9000, "/api/%2E%2e",
    ],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_never_sent(path):
    async def scenario():
        async with (
            serving(answering((200, {}))) as server,
            connect(Access(server.address, bearer("canary"))) as client,
        ):
            with pytest.raises(Invalid):
                await client.raw("GET", path)
            assert server.requests == []

    run(scenario())


def test_spaces_in_a_query_are_escaped_and_escapes_stay():
    async def scenario():
        async with (
            serving(answering((200, {}))) as server,
            connect(Access(server.address)) as client,
        ):
            await client.raw("GET", "/api/v1/pods?labelSelector=a in (b)&x=%3D")
            assert server.paths == ["/api/v1/pods?labelSelector=a%20in%20(b)&x=%3D"]

    run(scenario())


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "a%2fb"])
def test_a_name_that_is_no_path_segment_is_never_sent(name):
    with pytest.raises(Invalid):
        segment(name)


def test_secrets_are_in_no_repr():
    access = Access("https://x", bearer("canary"))
    assert "canary" not in repr(access)
    assert "canary" not in repr(Presented("Bearer canary", b"canary", b"canary"))


@pytest.mark.parametrize(
    ("path", "details", "missed"),
    [
        ("/apis/kpolicy.io/v1alpha1/namespaces/default/grants/x", {}, "grants.kpolicy.io"),
        ("/apis/kpolicy.io/v1alpha1/grants", {}, "grants.kpolicy.io"),
        ("/apis/kpolicy.io/v1alpha1/namespaces/default/grants/x", {"name": "x"}, ""),
        ("/api/v1/namespaces/default/pods/x", {}, ""),
    ],
)
def test_a_kind_that_is_not_there_is_told_from_an_object_that_is_not_there(path, details, missed):
    error = NotFound("gone", status=404, details=details)
    assert misses_object(error, path) is (not missed)
    if missed:
        assert not_served(error, path).message == f"the server has no {missed}"


@pytest.mark.parametrize("code", [403, 404, 409, 422, 500])
def test_a_refusal_is_freed_as_soon_as_it_was_dealt_with(code):
    async def scenario():
        async with (
            serving(answering(*[status(code)] * 20)) as server,
            connect(Access(server.address, bearer("secret")), clock=ManualClock()) as client,
        ):
            for kind in (PODS, GRANTS, PODS):
                try:
                    await client.get(kind, "web", "dev")
                except KubeError as error:
                    seen.append(weakref.ref(error))

    seen = []
    gc.disable()
    try:
        run(scenario())
        assert [one() for one in seen] == [None, None, None]
    finally:
        gc.enable()


def test_connections_that_a_rush_needed_come_to_rest_after_it():
    ports: list[int] = []
    all_here = asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        ports.append(request.transport.get_extra_info("peername")[1])
        if len(ports) == 5:
            all_here.set()
        await all_here.wait()
        return web.json_response(POD)

    async def scenario():
        async with serving(handle) as server, connect(Access(server.address)) as client:
            await asyncio.gather(*(client.get(PODS, "web", "dev") for _ in range(5)))
            for _ in range(5):
                await client.get(PODS, "web", "dev")
            assert len(set(ports[:5])) == 5
            assert len(set(ports[5:])) == 1

    run(scenario())


def test_the_connection_of_a_watch_is_not_used_again():
    ports: list[int] = []
    is_read = asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        ports.append(request.transport.get_extra_info("peername")[1])
        if "watch" not in request.query:
            return web.json_response(POD)
        stream = web.StreamResponse()
        await stream.prepare(request)
        await stream.write(json.dumps({"type": "ADDED", "object": POD}).encode() + b"\n")
        await is_read.wait()
        return stream

    async def scenario():
        async with serving(handle) as server, connect(Access(server.address)) as client:
            async for _ in client.watch(PODS, "1"):
                is_read.set()
            await client.get(PODS, "web", "dev")
            assert len(set(ports)) == 2

    run(scenario())


@pytest.mark.parametrize(("longest", "connections"), [(0.0, 3), (300.0, 1)])
def test_a_connection_is_used_for_some_time_and_then_made_anew(monkeypatch, longest, connections):
    monkeypatch.setattr(_LastUsedFirst, "LONGEST_SECONDS", longest)
    ports: set[int] = set()

    async def handle(request: web.Request) -> web.StreamResponse:
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.json_response(POD)

    async def scenario():
        async with serving(handle) as server, connect(Access(server.address)) as client:
            for _ in range(3):
                await client.get(PODS, "web", "dev")
            assert len(ports) == connections

    run(scenario())
