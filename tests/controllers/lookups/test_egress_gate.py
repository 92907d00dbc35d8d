"""The egress gate against what policies, registries and name servers may try."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket

import pytest
from aiohttp import web

from controllers.lookups.addresses import address_refusal, literal, networks
from controllers.lookups.answering import Lookups
from controllers.lookups.egress import EgressRules, Gate, Request, read_rules
from controllers.lookups.errors import EgressError, OutsideError, UnreachableError
from engine.errors import EngineError
from engine.evaluate import HostLookup
from engine.lang import jmes
from engine.lang.jmes.values import Env
from kubectl_kpolicy.cli import jp
from tests.controllers.kube.apiserver import answering, run, serving

HERE = EgressRules(networks=networks(("127.0.0.1/32",)))

REFUSED = (
    "http://127.0.0.1/", "http://127.0.0.1:8080/x", "http://127.8.9.1/", "http://[::1]/",
    "http://0.0.0.0/", "http://0/", "http://[::]/",
    "http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/", "http://169.254.170.2/",
    "http://100.100.100.200/", "http://168.63.129.16/", "http://192.0.0.192/",
    "http://[fd00:ec2::254]/", "http://[fc00::1]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/",
    "http://[fec0::1]/", "http://[ff02::1]/", "http://224.0.0.1/", "http://255.255.255.255/",
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:a9fe:a9fe]/", "http://[::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b:1::7f00:1]/", "http://[2002:7f00:1::]/",
    "http://2130706433/", "http://0177.0.0.1/", "http://0x7f.0.0.1/", "http://0x7f000001/",
    "http://127.1/", "http://127.0.0.1./", "http://017700000001/", "http://127.0.0.256/",
    "http://１２７.0.0.1/", "http://①②⑦.0.0.1/",
    "http://metadata.google.internal/", "http://METADATA.google.internal./", "http://metadata/",
    "http://instance-data/",
    "http://user@example.com/", "http://user:secret@example.com/", "http://example.com@127.0.0.1/",
    "http://127.0.0.1\\@example.com/", "http://example.com\\.127.0.0.1/",
    "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "unix:///run/x.sock",
    "//example.com/", "example.com/", "", "http://", "http:///x", "http://exa mple.com/",
    "http://example.com/\r\nX: y", "http://example.com/\x00", f"http://example.com/{'a' * 9000}",
)  # fmt: skip


async def nobody(host: str, port: int) -> list[str]:
    raise AssertionError(f"{host} was looked up")


def always(*addresses: str):
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


async def sent(gate: Gate, url: str, **options):
    request = Request("GET", url, options.pop("headers", ()))
    try:
        return await gate.send(request, **options)
    finally:
        await gate.close()


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_is_refused_before_anything_is_looked_up(url: str) -> None:
    with pytest.raises(EgressError):
        run(sent(Gate(resolve=nobody), url))


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1", "fe80::1", "0.0.0.0"],
)
def test_a_name_that_means_a_refused_address_is_refused(address: str) -> None:
    with pytest.raises(EgressError, match=r"`evil\.test` is not called"):
        run(sent(Gate(resolve=always(address)), "http://evil.test/"))


@pytest.mark.parametrize("order", [1, -1])
def test_one_refused_address_spoils_a_name(order: int) -> None:
    addresses = ["127.0.0.1", "169.254.169.254"][::order]

    async def scenario() -> None:
        async with serving(answering((200, {}))) as server:
            url = server.address.replace("127.0.0.1", "evil.test")
            with pytest.raises(EgressError):
                await sent(Gate(HERE, resolve=always(*addresses)), url)
            assert server.requests == []

    run(scenario())


def test_localhost_is_no_way_in() -> None:
    async def scenario() -> None:
        async with serving(answering((200, {}))) as server:
            for name in ("localhost", "LOCALHOST."):
                with pytest.raises(OutsideError):
                    await sent(Gate(), server.address.replace("127.0.0.1", name))
            assert server.requests == []

    run(scenario())


def test_a_name_that_changes_its_mind_is_connected_to_as_it_was_judged() -> None:
    asked = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    async def scenario() -> None:
        async with serving(answering((200, {}))) as server:
            url = server.address.replace("127.0.0.1", "rebind.test")
            assert (await sent(Gate(HERE, resolve=resolve), url)).status == 200
            assert asked == ["rebind.test"]
            with pytest.raises(EgressError):
                await sent(Gate(HERE, resolve=resolve), url)
            assert len(server.requests) == 1

    run(scenario())


def test_no_socket_is_made_for_a_refused_address() -> None:
    info = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))

    with pytest.raises(EgressError):
        Gate(HERE)._socket(info)


def test_only_named_hosts_are_called_where_hosts_are_named() -> None:
    gate = Gate(EgressRules(hosts=("*.example.com",)), resolve=nobody)

    assert gate.checked("https://a.example.com/x").host == "a.example.com"
    with pytest.raises(EgressError, match="not among the allowed hosts"):
        gate.checked("https://example.org/")


def test_operators_write_rules_as_texts() -> None:
    rules = read_rules(networks=["10.0.0.0/8", "::1"], hosts=["*.a"], plain_registries=["r:5000"])

    assert address_refusal(literal("::1"), rules.networks) == ""
    assert rules.is_plain("r:5000")
    assert not rules.is_plain("r:5001")
    assert not rules.is_plain("r.127.0.0.1")
    assert rules.is_plain("localhost:5000")
    with pytest.raises(EngineError, match="cannot read an egress network"):
        read_rules(networks=["10.0.0.1/8"])


def test_private_networks_are_where_services_live() -> None:
    for text in ("10.0.0.1", "172.16.3.4", "192.168.1.1", "8.8.8.8", "2001:4860:4860::8888"):
        assert address_refusal(literal(text)) == ""


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "127.0.0.1",
        "127.9.9.9",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "192.0.2.1",
        "240.0.0.1",
        "::1",
        "::ffff:10.0.0.1",
        "::ffff:8.8.8.8",
        "fd00::1",
        "fe80::1",
        "2001:db8::1",
        "2606:4700::1",
    ],
)
def test_an_address_is_as_external_by_its_name_as_it_is_in_a_url(address: str, monkeypatch) -> None:
    host = f"[{address}]" if ":" in address else address
    written = jmes.compile("is_external_url(@)")(f"http://{host}/", Env())

    class Named:
        async def addresses_of(self, _host: str) -> list[str]:
            return [address]

        async def close(self) -> None:
            return None

    lookup = HostLookup("a.test")
    answers = run(Lookups(gate=Named()).resolve([lookup]))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(0, 0, 0, "", (address, 0))])

    assert answers[lookup].value is written
    by_command = Env(is_external_host=jp._is_external)
    assert jmes.compile("is_external_url(@)")("http://a.test/", by_command) is written


def test_redirections_are_not_followed_unless_asked_for() -> None:
    async def scenario() -> None:
        answer = web.Response(status=302, headers={"Location": "/secret"})
        async with serving(answering(answer)) as server:
            received = await sent(Gate(HERE), server.address + "/a")
            assert received.status == 302
            assert server.paths == ["/a"]

    run(scenario())


@pytest.mark.parametrize(
    "place", ["http://169.254.169.254/", "http://[::1]/", "file:///etc/passwd", "http://user@x/"]
)
def test_a_redirection_is_judged_like_any_address(place: str) -> None:
    async def scenario() -> None:
        answer = web.Response(status=307, headers={"Location": place})
        async with serving(answering(answer)) as server:
            with pytest.raises(EgressError):
                await sent(Gate(HERE), server.address + "/a", hops=3)

    run(scenario())


def test_a_redirection_without_end_ends() -> None:
    async def scenario() -> None:
        answer = web.Response(status=302, headers={"Location": "/again"})
        async with serving(answering(answer)) as server:
            assert (await sent(Gate(HERE), server.address + "/", hops=3)).status == 302
            assert len(server.requests) == 4

    run(scenario())


def test_headers_do_not_follow_to_another_host() -> None:
    async def scenario() -> None:
        async with serving(answering((200, {}))) as other:
            place = other.address + "/blob"
            answer = web.Response(status=307, headers={"Location": place})
            async with serving(answering(answer)) as server:
                headers = (("Authorization", "Bearer canary"), ("X-Key", "canary"))
                await sent(Gate(HERE), server.address + "/", headers=headers, hops=1)
                assert server.requests[0][2]["Authorization"] == "Bearer canary"
                assert "canary" not in str(other.requests)
                assert len(other.requests) == 1

    run(scenario())


def test_headers_follow_within_one_host() -> None:
    async def scenario() -> None:
        answer = web.Response(status=307, headers={"Location": "/b"})
        async with serving(answering(answer, (200, {}))) as server:
            await sent(Gate(HERE), server.address + "/a", headers=(("X-Key", "k"),), hops=1)
            assert [seen[2].get("X-Key") for seen in server.requests] == ["k", "k"]

    run(scenario())


def test_nothing_of_ours_goes_along(monkeypatch) -> None:
    async def scenario() -> None:
        cookie = web.Response(headers={"Set-Cookie": "session=canary"})
        async with serving(answering((200, {}))) as proxy, serving(answering(cookie)) as server:
            monkeypatch.setenv("HTTP_PROXY", proxy.address)
            monkeypatch.setenv("http_proxy", proxy.address)
            gate = Gate(HERE)
            await gate.send(Request("GET", server.address + "/a"))
            await sent(gate, server.address + "/b")
            assert proxy.requests == []
            for _, _, headers, _ in server.requests:
                assert sorted(headers) == ["Accept", "Accept-Encoding", "Host", "User-Agent"]

    run(scenario())


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Connection"])
def test_headers_that_decide_how_a_request_is_read_cannot_be_set(name: str) -> None:
    with pytest.raises(EgressError, match="cannot be set"):
        run(sent(Gate(resolve=nobody), "http://example.com/", headers=((name, "x"),)))


@pytest.mark.parametrize("pair", [("X", "a\r\nY: b"), ("X\r\nY", "b")])
def test_headers_cannot_hold_other_headers(pair: tuple[str, str]) -> None:
    async def scenario() -> None:
        async with serving(answering((200, {}))) as server:
            with pytest.raises(OutsideError):
                await sent(Gate(HERE), server.address, headers=(pair,))
            assert server.requests == []

    run(scenario())


def test_an_answer_beyond_the_limit_is_cut_off() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65536)
        return response

    async def scenario() -> None:
        async with serving(endless) as server:
            with pytest.raises(UnreachableError, match="longer than the 100000 bytes"):
                await sent(Gate(HERE), server.address, limit=100_000)

    run(scenario())


def test_packed_answers_are_not_unpacked() -> None:
    packed = gzip.compress(b"0" * 10_000_000)

    async def scenario() -> None:
        answer = web.Response(body=packed, headers={"Content-Encoding": "gzip"})
        async with serving(answering(answer)) as server:
            received = await sent(Gate(HERE), server.address, limit=100_000)
            assert received.body == packed

    run(scenario())


def test_a_server_that_does_not_answer_is_given_up() -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async def scenario() -> None:
        async with serving(silent) as server:
            with pytest.raises(UnreachableError, match="did not answer in time"):
                await sent(Gate(HERE), server.address, seconds=0.3)

    run(scenario())


def test_a_name_without_address_is_an_error_that_says_so() -> None:
    async def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "canary")

    with pytest.raises(UnreachableError, match=r"^host `a\.test` cannot be looked up$"):
        run(sent(Gate(resolve=unknown), "http://a.test/"))
