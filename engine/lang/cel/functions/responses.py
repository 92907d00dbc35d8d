"""Functions of policies that judge HTTP and Envoy requests: the responses they give, and the tokens they read.

A policy says `http.Denied("no").Response()` or `envoy.Denied(403).WithBody("no").Response()`; whoever evaluates it reads the
`Verdict`. Tokens are checked with a shared secret (RFC 7515, RFC 7519: HS256, HS384, HS512); keys of other kinds are refused.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DocumentError
from engine.lang.cel.errors import CelError
from engine.lang.cel.values import Message
from engine.lang.json import load

from .registry import KINDS, Library

if TYPE_CHECKING:
    from engine.lang.cel.env import CelEnv

LIBRARY: Final = Library()
_DIGESTS: Final = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}


@dataclass(frozen=True, slots=True)
class Draft(Message):
    """A response that is being made."""

    allowed: bool
    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    TYPE = "kyverno.Response"


@dataclass(frozen=True, slots=True)
class Verdict(Message):
    """A response that is made: whether the request may pass, and what is answered where it may not."""

    draft: Draft
    TYPE = "kyverno.Verdict"


KINDS["Draft"] = (Draft,)
KINDS["Verdict"] = (Verdict,)


@LIBRARY.add("jwt.Decode(string, string) -> dyn", env=True)
def _decode_token(env: CelEnv, token: str, secret: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        raise CelError("token is malformed: it must have three parts")
    header, claims = _part(parts[0]), _part(parts[1])
    signed = _is_signed(f"{parts[0]}.{parts[1]}", parts[2], secret, str(header.get("alg")))
    return {"Header": header, "Claims": claims, "Valid": signed and _is_current(claims, env)}


def _part(text: str) -> dict[str, Any]:
    try:
        found = load(_bytes(text))
    except DocumentError as error:
        raise CelError("token is malformed: a part is not JSON") from error
    if not isinstance(found, dict):
        raise CelError("token is malformed: a part is not a map")
    return found


def _bytes(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise CelError("token is malformed: a part is not base64") from error


def _is_signed(signed: str, signature: str, secret: str, algorithm: str) -> bool:
    """Tell whether the secret made the signature; the header's algorithm counts only among those for secrets."""
    import hmac

    digest = _DIGESTS.get(algorithm)
    if digest is None:
        raise CelError(f"tokens signed with {algorithm[:16]} cannot be checked with a secret")
    made = hmac.new(secret.encode(), signed.encode(), digest).digest()
    return hmac.compare_digest(made, _bytes(signature))


def _is_current(claims: dict[str, Any], env: CelEnv) -> bool:
    """Tell whether now is from `nbf` on and before `exp`; bounds that are no numbers are not kept."""
    now = env.now.timestamp()
    ends, begins = claims.get("exp"), claims.get("nbf")
    return (ends is None or (_is_number(ends) and now < ends)) and (
        begins is None or (_is_number(begins) and now >= begins)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


LIBRARY.declare(
    {
        ("http.Allowed() -> Draft", "envoy.Allowed() -> Draft"): lambda: Draft(allowed=True),
        "http.Denied(string) -> Draft": lambda reason: Draft(False, 403, reason),
        "envoy.Denied(int) -> Draft": lambda status: Draft(False, status),
        "Draft.WithBody(string) -> Draft": lambda draft, body: replace(draft, body=body),
        "Draft.WithHeader(string, string) -> Draft": (
            lambda draft, name, value: replace(draft, headers={**draft.headers, name: value})
        ),
        "Draft.Response() -> Verdict": Verdict,
    }
)
