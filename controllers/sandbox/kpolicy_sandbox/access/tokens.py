"""Bearer tokens: signed with the sandbox's own key, for users and for ServiceAccounts, checked without any list of them.

They have the form of a JWT (HS256) because clients look into ServiceAccount tokens. Life is counted in real time, so that moving the
sandbox's clock forward throws nobody out.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Any

import orjson

from kpolicy_sandbox.call import User, service_account

Claims = dict[str, Any]


def issue(key: bytes, user: User, seconds: int = 0, bound: Claims | None = None) -> str:
    """Return a token that makes its bearer a user; `seconds` 0 means for as long as the sandbox lives."""
    now = int(time.time())
    claims: Claims = {"iss": "kpolicy-sandbox", "sub": user.name, "iat": now, "nbf": now}
    if seconds:
        claims["exp"] = now + seconds
    if user.groups:
        claims["groups"] = list(user.groups)
    if user.uid:
        claims["uid"] = user.uid
    claims.update(bound or {})
    signed = f"{_text(orjson.dumps({'alg': 'HS256', 'typ': 'JWT'}))}.{_text(orjson.dumps(claims))}"
    return f"{signed}.{_signature(key, signed)}"


def read(key: bytes, token: str) -> Claims | None:
    """Return what a token claims; None when we did not sign it or its time is over."""
    signed, _, signature = token.rpartition(".")
    if not hmac.compare_digest(_signature(key, signed).encode(), signature.encode()):
        return None
    claims: Claims = orjson.loads(_bytes(signed.partition(".")[2]))
    return claims if claims.get("exp", time.time() + 1) > time.time() else None


def user_of(claims: Claims) -> User:
    """Return the user that a token makes its bearer."""
    if bound := claims.get("kubernetes.io"):
        account = bound["serviceaccount"]
        return service_account(bound["namespace"], account["name"], account["uid"])
    return User(claims["sub"], tuple(claims.get("groups", ())), claims.get("uid", ""))


def _signature(key: bytes, signed: str) -> str:
    return _text(hmac.new(key, signed.encode(), hashlib.sha256).digest())


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
