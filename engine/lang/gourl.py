"""URLs as Go's `net/url` reads them, which is what JMESPath's and CEL's functions on URLs promise."""

from __future__ import annotations

from typing import Final

from engine.errors import EvaluationError
from engine.lang.goquote import quote
from engine.lang.lazy_regex import regex
from engine.record import record

_CONTROL: Final = regex(r"[\x00-\x1f\x7f]")
_SCHEME: Final = regex(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_USER: Final = regex(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_PORT: Final = regex(r"(?::[0-9]*)?")
_LITERAL: Final = regex(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%25[^ #/?@\\^`{|}]+)?")
_BAD_ESCAPE: Final = regex(r"%(?![0-9a-fA-F]{2})")
_BAD_IN_HOST: Final = regex(r"%(?!25|[89a-fA-F][0-9a-fA-F])|[ #/?@\\^`{|}]")
_ESCAPES: Final = regex(r"(?:%[0-9a-fA-F]{2})+")
_RESERVED: Final = regex(r"[^A-Za-z0-9\-._~$&+,/:;=@]")
_REWRITTEN: Final = regex(r"[^A-Za-z0-9\-._~$&+,/:;=@!'()*%\[\]]")


@record
class Url:
    """A URL in parts: `host` with its port, `path` escaped, `query` raw."""

    scheme: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    query: str = ""

    @property
    def hostname(self) -> str:
        """The host without its port, an address of IPv6 without its brackets."""
        bare = self._split()[0]
        return bare[1:-1] if bare[:1] == "[" and bare[-1:] == "]" else bare

    @property
    def port(self) -> str:
        """The port; empty where none is written."""
        return self._split()[1]

    def _split(self) -> tuple[str, str]:
        name, colon, port = self.host.rpartition(":")
        return (name, port) if colon and _PORT.fullmatch(colon + port) else (self.host, "")


def parse(text: str, *, is_request: bool = False) -> Url:
    """Read a URL, its fragment left out, as `Parse` does, or `ParseRequestURI`, which takes absolute ones and paths and knows no fragments.

    Raises EvaluationError with Go's words.
    """
    shown, _, fragment = (text, "", "") if is_request else text.partition("#")
    try:
        found = _parse(shown, is_request=is_request)
        shown = text
        _check_escapes(fragment)
    except EvaluationError as error:
        raise EvaluationError(f"parse {quote(shown)}: {error.message}") from error
    return found


def _parse(text: str, *, is_request: bool) -> Url:
    if _CONTROL.search(text):
        raise EvaluationError("net/url: invalid control character in URL")
    if is_request and not text:
        raise EvaluationError("empty url")
    if text.startswith(":"):
        raise EvaluationError("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    path, _, query = text[found.end() if found else 0 :].partition("?")
    if not path.startswith("/"):
        if scheme:
            return Url(scheme, query=query)
        if is_request and text != "*":
            raise EvaluationError("invalid URI for request")
        if ":" in path.partition("/")[0]:
            raise EvaluationError("first path segment in URL cannot contain colon")
    user = host = ""
    if path.startswith("//") and (scheme or (not is_request and not path.startswith("///"))):
        authority, slash, rest = path[2:].partition("/")
        path = slash + rest
        user, _, host = authority.rpartition("@")
        host = _host(host)
        if not _USER.fullmatch(user):
            raise EvaluationError("net/url: invalid userinfo")
        user = unescaped(user)
    _check_escapes(path)
    return Url(scheme, user, host, _escaped(path), query)


def _check_escapes(text: str) -> None:
    if wrong := _BAD_ESCAPE.search(text):
        raise _bad_escape(text, wrong.start())


def _bad_escape(text: str, at: int) -> EvaluationError:
    shown = text[at : at + 3]
    return EvaluationError(f"invalid URL escape {quote(shown)}")


def _host(text: str) -> str:
    """Return a host and its port without escapes; raises EvaluationError."""
    if text.rfind("[") > 0:
        raise EvaluationError("invalid IP-literal")
    literal, bracket, port = text.rpartition("]") if text.startswith("[") else ("", "]", text)
    if not bracket:
        raise EvaluationError("missing ']' in host")
    if not literal:
        port = text[text.rfind(":") :] if ":" in text else ""
    if not _PORT.fullmatch(port):
        raise EvaluationError(f"invalid port {quote(port)} after host")
    name = text.partition("%25")[0] if literal else text
    if wrong := _BAD_IN_HOST.search(name):
        if wrong[0] == "%":
            raise _bad_escape(name, wrong.start())
        raise EvaluationError(f"invalid character {quote(wrong[0])} in host name")
    if literal and not _LITERAL.fullmatch(literal[1:]):
        raise EvaluationError(f"invalid host: ParseAddr({quote(literal[1:])}): unable to parse IP")
    return unescaped(text)


def _escaped(path: str) -> str:
    """Return a path as it is written where Go's writer may have written it so, and as that would write it elsewhere."""
    if not _REWRITTEN.search(path):
        return path
    return _RESERVED.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")),
        unescaped(path),
    )


def unescaped(text: str) -> str:
    """Return a text without its escapes; raises EvaluationError where a `%` is not followed by two hexadecimal digits."""
    _check_escapes(text)
    return _ESCAPES.sub(
        lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), text
    )
