"""`x509_decode`: certificates and requests as Go's structures, RSA keys only (row F-08).

What upstream returns is Go's `x509.Certificate` written as JSON, so the names and number codes are Go's. The library that
reads certificates is loaded at the first call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError

from .signature import Table
from .values import spend

if TYPE_CHECKING:
    from engine.model import Json

    from .env import Env

table = Table()

_BLOCK: Final = re.compile(
    r"(?:\A|(?<=\n))-----BEGIN (?P<type>[^\n]*?)-----[ \t\r]*\n(?P<body>[A-Za-z0-9+/=\s]*?)"
    r"(?<=\n)-----END (?P=type)-----"
)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_LONGEST: Final = 1 << 18


@table.function(
    "x509_decode(string) object", "the fields of the certificate or certificate request in PEM form"
)
def x509_decode(env: Env, pem: str) -> Json:
    """Decode the first PEM block. Raises EvaluationError."""
    spend(env, len(pem) >> 2)
    if len(pem) > _LONGEST:
        raise EvaluationError("the certificate is too long")
    for block in _BLOCK.finditer(pem):
        if _BASE64.fullmatch("".join(block["body"].split())):
            return _decoded(block["type"], block.group())
    raise EvaluationError("failed to decode PEM block")


def _decoded(kind: str, text: str) -> dict[str, Any]:
    from .x509 import decode_certificate, decode_request

    if kind == "CERTIFICATE":
        return decode_certificate(text)
    if kind == "CERTIFICATE REQUEST":
        return decode_request(text)
    raise EvaluationError("PEM block neither contains a CERTIFICATE or CERTIFICATE REQUEST")
