"""URLs as Kubernetes' library reads them: those of Go's `ParseRequestURI`, so an absolute URI or an absolute path."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from engine.errors import EvaluationError
from engine.lang import gourl
from engine.lang.cel.errors import CelError
from engine.lang.cel.values import Message

from .registry import KINDS, Library

LIBRARY: Final = Library(cost=30)


@dataclass(frozen=True, slots=True)
class Url(Message):
    """A parsed URL."""

    read: gourl.Url
    TYPE = "kubernetes.URL"


KINDS["URL"] = (Url,)


@LIBRARY.add("url(string) -> URL")
def _url(text: str) -> Url:
    try:
        gourl.parse(text, is_request=True)
        return Url(gourl.parse(text))
    except EvaluationError as error:
        raise CelError(f"URL parse error during conversion from string: {error.message}") from error


@LIBRARY.add("isURL(string) -> bool")
def is_url(text: str) -> bool:
    """Tell whether a text is an absolute URI or an absolute path."""
    with suppress(EvaluationError):
        return bool(gourl.parse(text, is_request=True))
    return False


@LIBRARY.add("URL.getQuery() -> map")
def _query(value: Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in value.read.query.split("&"):
        if not pair or ";" in pair:
            continue
        name, _, content = pair.replace("+", " ").partition("=")
        with suppress(EvaluationError):
            found.setdefault(gourl.unescaped(name), []).append(gourl.unescaped(content))
    return found


LIBRARY.declare(
    {
        "URL.getScheme() -> string": lambda value: value.read.scheme,
        "URL.getHost() -> string": lambda value: value.read.host,
        "URL.getHostname() -> string": lambda value: value.read.hostname,
        "URL.getPort() -> string": lambda value: value.read.port,
        "URL.getEscapedPath() -> string": lambda value: value.read.path,
    }
)
