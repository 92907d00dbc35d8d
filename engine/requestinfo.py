"""What a request to the API server asks for, read from its path as the server itself reads it.

For whoever has to know before a call is made: whether it lies in a namespace, and which right it needs. A path may be one as
policies write it, with variables: what they will be is not known, and stands as `*`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.lang.variables.braces import VARIABLE
from engine.record import record

ANY: Final = "*"
_BELOW_A_NAMESPACE: Final = ("status", "finalize")
_UNCLEAR: Final = "%\\#; "


@record
class RequestInfo:
    """A request as an authorizer sees it; `path` is set for one that is about no resource. `*` stands for anything."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def is_anything(self) -> bool:
        """Whether nothing is known of what is asked for."""
        return self.group == ANY

    def includes(self, other: RequestInfo) -> bool:
        """Tell whether another request is one of those that this one, read with its variables open, can come to."""
        if self.is_anything:
            return True
        if self.verb != other.verb or self.group != other.group or self.path != other.path:
            return False
        if self.resource == ANY:
            return self.namespace in ("", ANY, other.namespace)
        mine = (self.resource, self.subresource, self.namespace, self.name)
        theirs = (other.resource, other.subresource, other.namespace, other.name)
        return all(_fits(*pair) for pair in zip(mine, theirs, strict=True))


def request_info(method: str, url_path: str) -> RequestInfo | None:
    """Return what a call asks for, None for a path that somebody could read in another way.

    Those are paths with escapes, dots, empty segments, backslashes or fragments.
    """
    parts = _segments(url_path)
    if parts is None:
        return None
    if len(parts) > 1 and parts[0] == "api":
        return _of_resource(method, url_path, "", parts[2:])
    if len(parts) > 2 and parts[0] == "apis" and parts[1] != ANY:
        return _of_resource(method, url_path, parts[1], parts[3:])
    if ANY in parts:
        return None
    return RequestInfo(_verb(method), path=url_path.partition("?")[0])


def widest(method: str) -> RequestInfo:
    """Return what a call may ask for of which nothing is known."""
    return RequestInfo(_verb(method), group=ANY, resource=ANY)


def request_info_of_template(method: str, url_path: str) -> RequestInfo:
    """Return what a call can ask for whatever its variables come to."""
    text = url_path
    while (
        opened := VARIABLE.sub(lambda found: found[0].removesuffix(found[1]) + ANY, text)
    ) != text:
        text = opened
    if "{{" in text:
        return widest(method)
    return request_info(method, text) or widest(method)


def _segments(url_path: str) -> list[str] | None:
    path = url_path.partition("?")[0]
    if not path.startswith("/") or not path.isprintable() or any(c in path for c in _UNCLEAR):
        return None
    parts = path[1:].removesuffix("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        return None
    return [ANY if ANY in part else part for part in parts]


def _of_resource(method: str, url_path: str, group: str, rest: Sequence[str]) -> RequestInfo:
    verb = _verb(method)
    if rest and rest[0] == "watch":
        verb, rest = "watch", rest[1:]
    if not rest:
        return RequestInfo(verb, path=url_path.partition("?")[0])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        is_within = len(rest) > 2 and rest[2] not in _BELOW_A_NAMESPACE
        rest = rest[2:] if is_within else rest
    resource, name, subresource = (*rest, "", "")[:3]
    if verb == "get" and not name:
        verb = "list"
    return RequestInfo(verb, group, resource, subresource, namespace, name)


def _verb(method: str) -> str:
    return "create" if method.upper() == "POST" else "get"


def _fits(mine: str, theirs: str) -> bool:
    return mine == theirs or (mine == ANY and bool(theirs))
