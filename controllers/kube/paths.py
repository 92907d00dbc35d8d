"""Paths of API servers that policies write: checked, so that they stay paths of that server.

For `Client.raw` and for whoever judges what a policy may ask. A path goes out beside our credentials; nothing in it may
name another host, climb, or read differently to us than to the server.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from .errors import Invalid

_LONGEST = 8192
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\#]")
_SAFE = "/%:@!$&'()*+,;=~?-._"


def checked_path(text: str) -> str:
    """Return a path and query ready to be sent; raise Invalid for what is not plainly a path of the API server.

    Refused are other hosts (`//host`, `http://…`), `.` and `..` in any spelling, empty segments, encoded slashes,
    fragments, backslashes and control characters.
    """
    path, _, query = text.partition("?")
    if not path.startswith("/") or len(text) > _LONGEST or _FORBIDDEN.search(text):
        raise _refused(text)
    for part in path[1:].removesuffix("/").split("/"):
        plain = unquote(part)
        if plain in ("", ".", "..") and path != "/":
            raise _refused(text)
        if "/" in plain or "%" in plain or _FORBIDDEN.search(plain):
            raise _refused(text)
    sent = quote(path, safe=_SAFE)
    return f"{sent}?{quote(query, safe=_SAFE)}" if query else sent


def segments(text: str) -> list[str]:
    """Return the decoded segments of a path; raise Invalid as `checked_path` does."""
    path = checked_path(text).partition("?")[0]
    return [unquote(part) for part in path.strip("/").split("/") if part]


def _refused(text: str) -> Invalid:
    shown = "".join(char if char.isprintable() else "?" for char in text[:200])
    return Invalid(f"`{shown}` is not a path of the API server", status=400)
