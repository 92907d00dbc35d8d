"""Calls of services: what is sent, what comes back, and what never does (row A-53)."""

from __future__ import annotations

import pytest
from aiohttp import web

from controllers.lookups.addresses import networks
from controllers.lookups.egress import EgressRules, Gate
from controllers.lookups.errors import EgressError, OutsideError
from controllers.lookups.services import ServiceSource
from engine.evaluate import ServiceLookup
from tests.controllers.kube.apiserver import answering, run, serving

from .authority import self_signed

HERE = EgressRules(networks=networks(("127.0.0.0/8",)))


async def called(lookup: ServiceLookup, rules: EgressRules = HERE):
    gate = Gate(rules)
    try:
        return await ServiceSource(gate, most_bytes=1000).call(lookup)
    finally:
        await gate.close()


def test_the_answer_is_decoded_and_the_request_is_the_policys() -> None:
    async def scenario() -> None:
        async with serving(answering((200, {"ok": [1]}))) as server:
            lookup = ServiceLookup(
                "POST", f"{server.address}/check?a=b", (("X-Team", "blue"),), '{"image":"x"}'
            )
            assert await called(lookup) == {"ok": [1]}
            method, path, headers, body = server.requests[0]
            assert (method, path, body) == ("POST", "/check?a=b", b'{"image":"x"}')
            assert headers["X-Team"] == "blue"
            assert headers["Content-Type"] == "application/json"
            assert "Authorization" not in headers

    run(scenario())


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_an_error_tells_the_status_and_nothing_of_the_answer(status: int) -> None:
    async def scenario() -> None:
        async with serving(answering((status, {"secret": "canary"}))) as server:
            with pytest.raises(OutsideError) as caught:
                await called(ServiceLookup("GET", server.address))
            assert caught.value.message.startswith(f"HTTP {status} ")
            assert "canary" not in str(caught.value)

    run(scenario())


def test_a_redirection_is_an_error() -> None:
    async def scenario() -> None:
        answer = web.Response(status=302, headers={"Location": "/canary"})
        async with serving(answering(answer)) as server:
            with pytest.raises(OutsideError, match=r"302 Found .redirections are not followed"):
                await called(ServiceLookup("GET", server.address))
            assert server.paths == ["/"]

    run(scenario())


@pytest.mark.parametrize("body", [b"canary", b"", b'{"a":', b"{} {}", b"[" * 400 + b"]" * 400])
def test_an_answer_that_is_not_json_is_an_error_without_it(body: bytes) -> None:
    async def scenario() -> None:
        async with serving(answering(web.Response(body=body))) as server:
            with pytest.raises(OutsideError, match=r"^the answer is not readable as JSON$"):
                await called(ServiceLookup("GET", server.address))

    run(scenario())


def test_an_answer_that_is_too_long_is_an_error() -> None:
    async def scenario() -> None:
        async with serving(answering((200, "x" * 2000))) as server:
            with pytest.raises(OutsideError, match="longer than the 1000 bytes"):
                await called(ServiceLookup("GET", server.address))

    run(scenario())


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "CONNECT", ""])
def test_a_call_is_get_or_post(method: str) -> None:
    with pytest.raises(OutsideError, match="a call is GET or POST"):
        run(called(ServiceLookup(method, "http://example.com/")))


def test_policies_of_namespaces_do_not_call_unless_they_may() -> None:
    async def scenario() -> None:
        async with serving(answering((200, {}))) as server:
            lookup = ServiceLookup("GET", server.address, within="dev")
            with pytest.raises(EgressError, match="policies of namespaces"):
                await called(lookup)
            assert server.requests == []
            allowed = EgressRules(networks=HERE.networks, namespaced_services=True)
            assert await called(lookup, allowed) == {}

    run(scenario())


def test_a_ca_bundle_is_trusted_and_nothing_else_then(tmp_path) -> None:
    certificate, context = self_signed(tmp_path)
    (tmp_path / "other").mkdir()
    other, _ = self_signed(tmp_path / "other")

    async def scenario() -> None:
        async with serving(answering((200, {"ok": True})), ssl_context=context) as server:
            good = ServiceLookup("GET", server.address, ca_bundle=certificate)
            assert await called(good) == {"ok": True}
            for bundle in ("", other):
                with pytest.raises(
                    OutsideError, match=r"certificate of `127\.0\.0\.1` is not trusted"
                ):
                    await called(ServiceLookup("GET", server.address, ca_bundle=bundle))

    run(scenario())


def test_a_ca_bundle_that_is_none_is_an_error() -> None:
    with pytest.raises(Exception, match="the CA bundle cannot be read"):
        run(called(ServiceLookup("GET", "https://127.0.0.1:1/", ca_bundle="canary")))
