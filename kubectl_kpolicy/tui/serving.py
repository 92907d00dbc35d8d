"""The console in a browser: Textual's own server, let in only with a key, from this machine unless somebody consents to more.

Whoever reaches the page acts with the credentials of whoever started it. Textual's server asks nobody anything, and a browser
lets any page open a WebSocket to loopback; so everything lies below a path that only the printed address has, and requests must
come from the page itself. The path is the whole credential: a cookie would be sent to whoever listens on another port, too.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import secrets
import shlex
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.record import record
from kubectl_kpolicy.output.misuse import Misuse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

PORT = 8000
_ELSEWHERE = re.compile(r'<link\b[^>]*\bhref="https?://(?!127\.0\.0\.1|localhost)[^>]*>')
"""What the library's page would load from other sites, which would learn who works here and when."""

_FROM_HERE = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self' ws:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_LOOK = 1.0
"""Seconds between two looks for the server that a visitor's console belongs to."""
_CONSENT = "allow-remote"


@record
class Address:
    """Where the page is to be found."""

    host: str
    port: int

    @property
    def name(self) -> str:
        """Host and port as a browser writes them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether nobody else's machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def address_of(text: str, *, is_allowed: bool) -> Address:
    """Return the address of `HOST:PORT`, `HOST`, `:PORT` or `PORT`; raises EngineError for another, or one that needs consent."""
    host, port = _parts(text)
    if not port.isascii() or not port.isdigit() or not 0 <= int(port) < 65_536:
        raise Misuse(f"cannot read `{text}` as an address", help="write it as 127.0.0.1:8000")
    found = Address(host.strip("[]") or "127.0.0.1", int(port))
    if not found.is_loopback and not is_allowed:
        raise EngineError(
            f"`{found.host}` can be reached by others, who would act with your credentials",
            help=f"leave the address out to serve this machine only, or consent with --{_CONSENT}; there is no TLS",
        )
    return found


def _parts(text: str) -> tuple[str, str]:
    if text.isdigit():
        return "", text
    if text.count(":") > 1 and not text.startswith("["):
        return text, str(PORT)
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text, str(PORT)
    return host, port


def command_of(words: list[str]) -> str:
    """Return the command line that a visitor's console is started by: the same, without what is about serving."""
    rest: list[str] = []
    before = ""
    for word in words:
        is_told = before == "--serve" and not word.startswith("-") and _is_address(word)
        if not is_told and word.partition("=")[0] != "--serve" and word != f"--{_CONSENT}":
            rest.append(word)
        before = word
    # In place of the shell that starts it, so that its parent is the server and it notices when that ends.
    return "exec " + shlex.join([sys.executable, "-m", "kubectl_kpolicy", *rest])


def _is_address(word: str) -> bool:
    return word.isdigit() or ":" in word or "." in word or word == "localhost"


def refusal(headers: Mapping[str, str], path: str, key: str, address: Address) -> str:
    """Return why a request is turned away, empty when it is let in.

    The key is the first part of the path; a name that is not ours means that some other site's name was pointed here, an origin
    that is not ours that another page asks.
    """
    host = headers.get("Host", "")
    known = {f"{name}:{address.port}" for name in ("127.0.0.1", "localhost", "[::1]")}
    if address.is_loopback and host not in known:
        return "this address is served under no such name"
    origin = headers.get("Origin", "")
    if origin and origin != f"http://{host}":
        return "another page may not use the console"
    given, slash, _ = path.removeprefix("/").partition("/")
    is_key = hmac.compare_digest(given.encode("utf-8", "surrogatepass"), key.encode())
    if not (is_key and slash):
        return "open the address that was printed when the server began; it holds a key"
    return ""


def serve(where: str, words: list[str], *, is_remote_allowed: bool = False) -> int:
    """Serve until somebody presses Ctrl-C; raises EngineError without the extra, and for an address that needs consent."""
    address = address_of(where, is_allowed=is_remote_allowed)
    server_of = _server_class()
    server_of(command_of(words[1:]), address, secrets.token_urlsafe(24)).serve()
    return 0


def _server_class() -> Any:
    """Return Textual's server with a door; made here, for its library is an extra that need not be installed."""
    try:
        from aiohttp import web
        from textual_serve.server import Server
    except ModuleNotFoundError as error:
        raise EngineError("the browser needs the extra `serve`", help="pip install 'kubectl-kpolicy[serve]'") from error  # fmt: skip

    class Guarded(Server):
        """Textual's server behind a key."""

        def __init__(self, command: str, address: Address, key: str) -> None:
            super().__init__(command, host=address.host, port=address.port, title="kpolicy", public_url=f"http://{address.name}")  # fmt: skip
            self._address, self._key = address, key

        def initialize_logging(self) -> None:
            """Log nothing: requests hold the key, and a traceback with its locals would, too."""

        async def on_startup(self, app: Any) -> None:  # noqa: ARG002 - the library's interface
            """Print the one line that matters."""
            print(f"the console is at {self.public_url}/{self._key}/", flush=True)
            print("whoever has this address acts as you; Ctrl-C ends it", file=sys.stderr, flush=True)  # fmt: skip

        async def _make_app(self) -> Any:
            address, key = self._address, self._key

            @web.middleware
            async def guard(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
                why = refusal(request.headers, request.rel_url.path, key, address)
                if why:
                    return web.Response(status=403, text=f"{why}\n")
                response = await handler(request)
                if not response.prepared:
                    response.headers["Referrer-Policy"] = "no-referrer"
                    response.headers["Cache-Control"] = "no-store"
                    response.headers["Content-Security-Policy"] = _FROM_HERE
                if isinstance(response, web.Response) and response.content_type == "text/html":
                    response.text = _ELSEWHERE.sub("", response.text or "")
                return response

            made = web.Application(middlewares=[guard])
            made.add_subapp(f"/{key}/", await super()._make_app())
            return made

    return Guarded


def is_served() -> bool:
    """Tell whether this process draws for a browser instead of a terminal."""
    return "WebDriver" in os.environ.get("TEXTUAL_DRIVER", "")


def end_with_server() -> None:
    """Let a visitor's console end when its server does, however that ended: nobody else would tell it."""
    server = os.getppid()

    def look() -> None:
        gone = threading.Event()
        while os.getppid() == server:
            gone.wait(_LOOK)
        signal.raise_signal(signal.SIGTERM)
        gone.wait(3 * _LOOK)
        os._exit(1)

    threading.Thread(target=look, daemon=True, name="server").start()
