"""The console served to a browser: a page and a WebSocket that need a key, on this machine unless somebody consents to more."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

from engine.errors import EngineError
from kubectl_kpolicy.cluster.cache import ClusterCache
from kubectl_kpolicy.cluster.recording import Recorder
from kubectl_kpolicy.tui.serving import Address, address_of, command_of, refusal
from tests.plugin.scene import NOW, report, result

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Address("127.0.0.1", 8000)
KEY = "k" * 32


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8000", "127.0.0.1", 8000),
        ("9000", "127.0.0.1", 9000),
        (":9000", "127.0.0.1", 9000),
        ("localhost", "localhost", 8000),
        ("[::1]:9000", "::1", 9000),
        ("::1", "::1", 8000),
        ("127.8.0.1", "127.8.0.1", 8000),
    ],
)
def test_addresses_of_this_machine_need_no_consent(text: str, host: str, port: int) -> None:
    assert address_of(text, is_allowed=False) == Address(host, port)


@pytest.mark.parametrize("text", ["0.0.0.0:8000", "10.1.2.3", "console.example.com:80", "[::]:8000", "::"])  # fmt: skip
def test_an_address_that_others_reach_needs_consent(text: str) -> None:
    with pytest.raises(EngineError, match="can be reached by others") as raised:
        address_of(text, is_allowed=False)
    assert "--allow-remote" in raised.value.help
    assert not address_of(text, is_allowed=True).is_loopback


@pytest.mark.parametrize(
    "text", ["127.0.0.1:http", "localhost:99999", "127.0.0.1:²", "localhost:-1"]
)
def test_nonsense_is_no_address(text: str) -> None:
    with pytest.raises(EngineError, match="as an address"):
        address_of(text, is_allowed=True)


def test_a_visitor_gets_the_same_console_without_what_is_about_serving() -> None:
    def rest(*words: str) -> str:
        return command_of(list(words)).partition("kubectl_kpolicy ")[2]

    assert rest("tui", "--serve", "grants") == "tui grants"
    assert rest("tui", "--serve", "127.0.0.1:80", "v") == "tui v"
    assert rest("tui", "--serve=0.0.0.0", "--allow-remote", "--where", "a b") == "tui --where 'a b'"
    assert rest("tui", "--serve", "--read-only") == "tui --read-only"


@pytest.mark.parametrize(
    ("headers", "path", "why"),
    [
        ({"Host": "127.0.0.1:8000"}, "/", "holds a key"),
        ({"Host": "127.0.0.1:8000"}, f"/{KEY}", "holds a key"),
        ({"Host": "127.0.0.1:8000"}, f"/{'k' * 31}/", "holds a key"),
        ({"Host": "127.0.0.1:8000"}, f"/{'ü' * 32}/", "holds a key"),
        ({"Host": "127.0.0.1:8000"}, f"//{KEY}/", "holds a key"),
        ({"Host": "127.0.0.1:8000", "Cookie": f"kpolicy-key={KEY}"}, "/ws", "holds a key"),
        ({"Host": "127.0.0.1:8000"}, f"/{KEY}/", ""),
        ({"Host": "localhost:8000"}, f"/{KEY}/ws", ""),
        ({"Host": "localhost:8000", "Origin": "http://localhost:8000"}, f"/{KEY}/ws", ""),
        ({"Host": "localhost:8000", "Origin": "http://localhost:8001"}, f"/{KEY}/ws", "another page"),
        ({"Host": "localhost:8000", "Origin": "http://127.0.0.1:8000"}, f"/{KEY}/ws", "another page"),
        ({"Host": "127.0.0.1:8000", "Origin": "https://127.0.0.1:8000"}, f"/{KEY}/ws", "another page"),
        ({"Host": "127.0.0.1:8000", "Origin": "https://evil.example"}, f"/{KEY}/ws", "another page"),
        ({"Host": "127.0.0.1:8000", "Origin": "null"}, f"/{KEY}/ws", "another page"),
        ({"Host": "rebound.example:8000"}, f"/{KEY}/", "no such name"),
        ({}, f"/{KEY}/", "no such name"),
    ],
)  # fmt: skip
def test_only_the_page_itself_with_the_key_is_let_in(headers, path: str, why: str) -> None:
    found = refusal(headers, path, KEY, HERE)
    assert (why in found) if why else not found


@pytest.fixture
def served(serving: tuple[str, subprocess.Popen[str]]) -> str:
    """Return the address of a console that is served."""
    return serving[0]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start the command on a recording, and yield the address that it prints, and its process."""
    path, made = tmp_path / "r.jsonl", ClusterCache()
    with path.open("w") as out:
        Recorder(made, out, lambda: NOW, "prod-eu")
        made.replace(
            "reports", [report("Pod", "web", "a", result("p", "r", "fail", "high", "no"))], NOW
        )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["tui", "--replay", str(path), "--serve", f"127.0.0.1:{port}"]
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen([sys.executable, "-m", "kubectl_kpolicy", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found
            yield found[0], server
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(10)
            server.kill()


def test_a_browser_sees_the_console_and_its_keys_work(served: str) -> None:
    root = re.sub(r"[^/]+/$", "", served)

    async def visit() -> tuple[int, str, str]:
        jar = aiohttp.CookieJar(unsafe=True)
        async with asyncio.timeout(50), aiohttp.ClientSession(cookie_jar=jar) as browser:
            stranger = await _answered(browser, root)
            for place in ("ws", "static/js/textual.js"):
                async with browser.get(f"{root}{place}") as answer:
                    assert answer.status == 403
            async with browser.get(served) as answer:
                assert answer.status == 200
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                page = await answer.text()
                assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
            assert "kpolicy" in page
            assert not re.findall(r"(?:src|href)=\"?https?://(?!127\.0\.0\.1)", page)
            links = set(re.findall(r"(?:http|ws)://127[^\"]+", page))
            assert links
            assert all(link.partition("://")[2].startswith(served.partition("://")[2]) for link in links)  # fmt: skip
            async with browser.get(f"{served}static/js/textual.js") as answer:
                assert answer.status == 200
            # INVARIANT: nothing is kept by the browser that it would send to another port of this machine.
            assert not list(jar)
            async with browser.ws_connect(f"{served}ws?width=100&height=30") as line:
                first = await _until(line, b"Pod/web")
                await line.send_json(["stdin", ":grants\r"])
                second = await _until(line, b"Grants")
            return stranger, first, second

    stranger, first, second = asyncio.run(visit())
    assert stranger == 403
    assert "REPLAY" in first
    assert "Grants" in second


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_consoles_of_visitors_end_with_their_server(
    serving: tuple[str, subprocess.Popen[str]], end: signal.Signals
) -> None:
    address, server = serving

    async def visit() -> list[int]:
        async with asyncio.timeout(50), aiohttp.ClientSession() as browser:
            await _answered(browser, address)
            async with browser.ws_connect(f"{address}ws?width=100&height=30") as line:
                await _until(line, b"Pod/web")
                children = _children_of(server.pid)
                server.send_signal(end)
                while any(Path(f"/proc/{child}").exists() for child in children):
                    await asyncio.sleep(0.05)
                return children

    assert asyncio.run(visit())


def _children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def _answered(browser: aiohttp.ClientSession, page: str) -> int:
    """Return the status of a page as soon as somebody listens: the address is printed a moment before."""
    while True:
        try:
            async with browser.get(page) as answer:
                return answer.status
        except aiohttp.ClientConnectorError:
            await asyncio.sleep(0.05)


async def _until(line: aiohttp.ClientWebSocketResponse, wanted: bytes) -> str:
    """Return what is drawn up to some words."""
    drawn = b""
    async for message in line:
        drawn += message.data if isinstance(message.data, bytes) else b""
        if wanted in drawn:
            break
    return drawn.decode(errors="replace")


def test_without_the_extra_it_says_what_to_install(monkeypatch) -> None:
    from kubectl_kpolicy.tui import serving

    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    with pytest.raises(EngineError) as raised:
        serving.serve("127.0.0.1:0", ["kpolicy", "tui", "--serve"])
    assert "kubectl-kpolicy[serve]" in raised.value.help
