"""URLs as Kubernetes' library reads them: Go's `ParseRequestURI`, so an absolute URI or an absolute path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.lang.cel.errors import CelError
from engine.lang.cel.values import Message
from engine.lang.goquote import quote

from .registry import KINDS, Library

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARY: Final = Library(cost=30)
_LONGEST_SHOWN: Final = 100
_ABSOLUTE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%25[^\]]+)?\]|[^\[\]:/?#\\ ^`{|}%]*)(?::([0-9]*))?")
_NOT_IN_HOSTS: Final = re.compile(r"[#\\ ^`{|}%]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPES: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9\-._~$&+,/:;=@!'()*%\[\]]")


@dataclass(frozen=True, slots=True)
class Url(Message):
    """A parsed URL; `path` is escaped, `query` is raw."""

    scheme: str
    user: str
    hostname: str
    port: str
    path: str
    query: str
    TYPE = "kubernetes.URL"

    def host(self) -> str:
        """Return host and port as they are written."""
        name = f"[{self.hostname}]" if ":" in self.hostname else self.hostname
        return f"{name}:{self.port}" if self.port else name


KINDS["URL"] = (Url,)


def _unescaped(text: str) -> str:
    return _ESCAPES.sub(
        lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), text
    )


def _escaped(path: str) -> str:
    return _UNSAFE.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), path
    )


def parse(text: str) -> Url | str:
    """Read a URL; for what is none return why, in Go's words."""
    if not text:
        return "empty url"
    if _CONTROL.search(text):
        return "net/url: invalid control character in URL"
    rest, _, query = text.partition("#")[0].partition("?")
    found = _ABSOLUTE.fullmatch(rest)
    scheme = ""
    if found is not None:
        scheme, rest = found[1].lower(), found[2]
    if not rest.startswith("/"):
        return Url(scheme, "", "", "", "", query) if scheme else "invalid URI for request"
    authority, path = "", rest
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
    user, _, host = authority.rpartition("@")
    place = _HOST.fullmatch(host)
    if place is None:
        return _refused(host)
    if wrong := _BAD_ESCAPE.search(path):
        return f"invalid URL escape {quote(path[wrong.start() : wrong.start() + 3])}"
    return Url(scheme, user, place[1].strip("[]"), place[2] or "", _escaped(path), query)


def _refused(host: str) -> str:
    """Return why a host is none."""
    name, colon, port = host.rpartition(":")
    if colon and _HOST.fullmatch(name):
        return f"invalid port {quote(colon + port)} after host"
    wrong = _NOT_IN_HOSTS.search(host)
    return f"invalid character {quote(wrong[0])} in host name" if wrong else "invalid host"


@LIBRARY.add("url(string) -> URL")
def _url(text: str) -> Url:
    found = parse(text)
    if isinstance(found, str):
        shown = quote(text[:_LONGEST_SHOWN])
        raise CelError(f"URL parse error during conversion from string: parse {shown}: {found}")
    return found


@LIBRARY.add("isURL(string) -> bool")
def _is_url(text: str) -> bool:
    return isinstance(parse(text), Url)


@LIBRARY.add("URL.getQuery() -> map")
def _query(value: Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in value.query.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        name, _, content = pair.replace("+", " ").partition("=")
        found.setdefault(_unescaped(name), []).append(_unescaped(content))
    return found


def _part(name: str, read: Callable[[Url], str]) -> None:
    LIBRARY.add(f"URL.{name}() -> string")(read)


_part("getScheme", lambda value: value.scheme)
_part("getHost", Url.host)
_part("getHostname", lambda value: value.hostname)
_part("getPort", lambda value: value.port)
_part("getEscapedPath", lambda value: value.path)
