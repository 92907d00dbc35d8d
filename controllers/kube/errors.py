"""What goes wrong between us and an API server, as this project's own errors.

For everybody who uses a `Client`. Exceptions of the transport and of the `kubernetes` package are translated where they
arise, so that no caller has to know which library speaks; foreign text is capped, because a server may answer anything.
"""

# ruff: noqa: N818 - named after what the API server says, as people know it
from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from engine.errors import EngineError
from engine.fields import part

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_FOREIGN_TEXT = 1024
"""Characters of a foreign message that are shown; an admission denial of many rules fits."""


class KubeError(EngineError):
    """An API server refused or could not be asked.

    `status` is the HTTP status (0: there was none), `reason` the server's machine-readable word, `details` those of its
    Status object, `retry_after` the seconds it asked us to wait. Who says neither status nor reason means the `usual` ones.
    """

    usual: ClassVar[tuple[int, str]] = (0, "")

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        help: str = "",  # noqa: A002 - the field's name in every front end
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, help=help)
        self.status, self.reason = (status, reason) if status else self.usual
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after


class Unreachable(KubeError):
    """There was no answer: no connection, no trust, or no word within the time allowed."""


class AccessError(KubeError):
    """The kubeconfig or the credentials cannot be used."""


class Unauthorized(KubeError):
    """The server does not know who we are (401)."""


class Forbidden(KubeError):
    """We may not do this (403)."""

    usual = (403, "Forbidden")


class NotFound(KubeError):
    """The object or the kind does not exist (404)."""

    usual = (404, "NotFound")


class NotServed(NotFound):
    """The server has no such kind, as before its definition is installed (404). `group` is the kind's."""

    group = ""


class Conflict(KubeError):
    """Somebody changed the object meanwhile, or a precondition does not hold (409)."""

    usual = (409, "Conflict")


class AlreadyExists(KubeError):
    """An object of that name is there already (409)."""

    usual = (409, "AlreadyExists")


class Gone(KubeError):
    """The resource version or the continue token is too old (410): list again."""

    usual = (410, "Expired")


class Invalid(KubeError):
    """The server refuses the object as it is written (400, 422), or a webhook denied it."""

    usual = (400, "BadRequest")


class TooManyRequests(KubeError):
    """The server is overloaded and asked for a pause (429)."""


_BY_STATUS: dict[int, type[KubeError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def capped(text: str, limit: int = LONGEST_FOREIGN_TEXT) -> str:
    """Return foreign text on our terms: no control characters but line ends, and not longer than `limit`."""
    clean = "".join(char for char in text[: limit + 1] if char.isprintable() or char == "\n")
    return clean if len(text) <= limit else clean[:limit] + "…"


def error_of(code: int, body: Any, *, retry_after: float | None = None) -> KubeError:
    """Make the error for an HTTP status and what came with it, a decoded Status object where there was one."""
    status = part(body)
    number = status.get("code")
    code = number if isinstance(number, int) and number >= 400 else code
    reason = str(status.get("reason") or "")
    kind = AlreadyExists if reason == "AlreadyExists" else _BY_STATUS.get(code, KubeError)
    details = part(status, "details")
    if retry_after is None and isinstance(details.get("retryAfterSeconds"), int):
        retry_after = float(details["retryAfterSeconds"]) or None
    text = str(status.get("message") or "") or f"the server answered with HTTP status {code}"
    if text == "Unauthorized":
        # all that API servers say; whose fault it is they do not tell
        text = "the server does not accept these credentials"
    return kind(
        capped(text),
        status=code,
        reason=reason,
        help=_HELP.get(code, ""),
        details=details,
        retry_after=retry_after,
    )


def misses_object(error: NotFound, path: str) -> bool:
    """Tell whether a 404 for the path of a kind is about an object, which the server names then, and not about the kind."""
    parts = path.strip("/").split("/")
    return bool(error.details.get("name")) or parts[0] != "apis" or len(parts) < _OF_A_KIND


def not_served(error: NotFound, path: str) -> NotServed:
    """Return the error for a 404 that is about the kind at a path."""
    _, group, _, *below = path.strip("/").split("/")
    plural = below[2] if below[0] == "namespaces" and len(below) > 2 else below[0]
    made = NotServed(
        f"the server has no {plural}.{group}",
        status=error.status,
        reason=error.reason,
        help="its definition is not installed",
    )
    made.group = group
    return made


_OF_A_KIND = 4
_HELP = {
    401: "check the credentials of the kubeconfig's user",
    403: "see what you may do with `kubectl auth can-i --list`",
}
