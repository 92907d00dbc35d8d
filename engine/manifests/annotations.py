"""The signature annotations of an object: the signed bytes and the signatures over them, decoded under caps.

For verification and for signing, which must agree on names. Apart from the reading of documents because everything here
comes from whoever submits the object and is decoded before anything is known about it: a few hundred bytes of
compressed text may stand for gigabytes.
"""

from __future__ import annotations

import binascii
import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.errors import EvaluationError, LimitError
from engine.fields import part
from engine.record import record

if TYPE_CHECKING:
    from engine.model import Json, Object

DEFAULT_DOMAIN = "cosign.sigstore.dev"
FAMILIES = ("message", "signature", "certificate", "bundle", "resourceBundleRef")
MAX_SIGNATURES = 32
LAYER_LIMIT = 4 * 1024 * 1024
"""Bytes that one layer of compression may expand to; a signed manifest has a few thousand."""

_ENCODED_LIMIT = 8 * 1024 * 1024
_GZIP_WINDOW = 31
_MAX_MEMBERS = 16
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/\r\n]")


@record
class SignatureSet:
    """One signature over the message, with what came beside it.

    `certificate` is PEM and `bundle` JSON, both empty where absent; `problem` says why the set cannot be read.
    """

    signature: bytes = b""
    certificate: bytes = b""
    bundle: bytes = b""
    problem: str = ""


@record
class Envelope:
    """The signed bytes of an object and every signature over them."""

    message: bytes
    signatures: tuple[SignatureSet, ...]


def read_envelope(obj: Object, domain: str = DEFAULT_DOMAIN) -> Envelope | None:
    """Return what the annotations of `obj` carry, or None when there is no message.

    Raise EvaluationError when the message cannot be decoded, LimitError when it expands beyond the cap.
    """
    annotations = part(obj, "metadata", "annotations")
    encoded = annotations.get(f"{domain}/message")
    if not isinstance(encoded, str):
        return None
    message = gunzip(decode_base64(encoded, f"{domain}/message"))
    sets: list[SignatureSet] = []
    while len(sets) < MAX_SIGNATURES:
        suffix = f"_{len(sets)}" if sets else ""
        if not isinstance(annotations.get(f"{domain}/signature{suffix}"), str):
            break
        sets.append(_read_set(annotations, domain, suffix))
    return Envelope(message, tuple(sets))


def is_signature_annotation(key: str, domain: str = DEFAULT_DOMAIN) -> bool:
    """Tell whether an annotation belongs to the signatures of `domain`: a bare family name, or one with `_<number>`."""
    return bool(_family_pattern(domain).fullmatch(key))


def decode_base64(text: str, name: str) -> bytes:
    """Return the bytes of standard base64; raise EvaluationError that names the annotation otherwise."""
    if len(text) > _ENCODED_LIMIT:
        raise LimitError(f"annotation `{name}` is too long")
    try:
        return binascii.a2b_base64(
            text.replace("\n", "").replace("\r", "").encode("ascii"), strict_mode=True
        )
    except (ValueError, binascii.Error) as error:
        raise EvaluationError(
            f"failed to decode annotation `{name}`: illegal base64 data at input byte {_bad_byte(text)}"
        ) from error


def gunzip(data: bytes) -> bytes:
    """Return the uncompressed bytes, or `data` itself where it is no gzip stream.

    Raise LimitError when the result would pass the cap: a bomb is refused, never cut.
    """
    parts: list[bytes] = []
    room, rest = LAYER_LIMIT, data
    for _ in range(_MAX_MEMBERS):
        reader = zlib.decompressobj(_GZIP_WINDOW)
        try:
            part = reader.decompress(rest, room + 1)
        except zlib.error:
            return data
        if len(part) > room:
            raise LimitError(f"compressed data expands to more than {LAYER_LIMIT} bytes")
        if not reader.eof:
            return data
        parts.append(part)
        room, rest = room - len(part), reader.unused_data
        if not rest:
            return b"".join(parts)
    raise LimitError("compressed data has too many parts")


def _read_set(annotations: dict[str, Json], domain: str, suffix: str) -> SignatureSet:
    try:
        read = {
            family: decode_base64(text, f"{domain}/{family}{suffix}")
            for family in ("signature", "certificate", "bundle")
            if isinstance(text := annotations.get(f"{domain}/{family}{suffix}"), str)
        }
        return SignatureSet(
            signature=read["signature"],
            certificate=gunzip(read.get("certificate", b"")),
            bundle=gunzip(read.get("bundle", b"")),
        )
    except EvaluationError as error:
        return SignatureSet(problem=error.message)


@lru_cache(maxsize=32)
def _family_pattern(domain: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(domain)}/(?:{'|'.join(FAMILIES)})(?:_[0-9]+)?")


def _bad_byte(text: str) -> int:
    """Where the text stops being base64: the first foreign character, else the padding."""
    body = text.rstrip("=\r\n")
    foreign = _NOT_BASE64.search(body)
    return foreign.start() if foreign else len(body)
