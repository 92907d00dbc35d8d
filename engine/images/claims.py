"""What signed bytes claim about an image: simple-signing payloads and in-toto statements in DSSE envelopes.

For image verification only. A signature that verifies says nothing by itself: it must be about this digest, or the
signature of any other image would do.
"""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Json

    from .data import Referrer

_MAX_PAYLOAD = 16 * 1024 * 1024
_MAX_SIGNATURES = 32
_STATEMENT = "application/vnd.in-toto+json"


@record
class Envelope:
    """A DSSE envelope: the bytes that were signed, the signatures, the statement inside, and its own bytes."""

    signed: bytes
    signatures: tuple[bytes, ...]
    statement: Mapping[str, Json]
    payload: bytes = b""

    @property
    def predicate_type(self) -> str:
        """What kind of statement it is."""
        return str(self.statement.get("predicateType") or "")

    @property
    def predicate(self) -> Json:
        """What is stated."""
        return self.statement.get("predicate")

    def is_about(self, digest: str) -> bool:
        """Tell whether the image of `digest` is among the statement's subjects."""
        return bool(self._subjects(digest))

    def is_annotated(self, digest: str, annotations: Mapping[str, str]) -> bool:
        """Tell whether a subject with the image's digest carries all `annotations`."""
        return any(
            all(
                (one.get("annotations") or {}).get(key) == text for key, text in annotations.items()
            )
            for one in self._subjects(digest)
        )

    def _subjects(self, digest: str) -> list[Mapping[str, Json]]:
        algorithm, _, value = digest.partition(":")
        subjects = self.statement.get("subject")
        if not value or not isinstance(subjects, list):
            return []
        return [
            one
            for one in subjects
            if isinstance(one, dict)
            and isinstance(one.get("digest"), dict)
            and one["digest"].get(algorithm) == value
            and isinstance(one.get("annotations") or {}, dict)
        ]


def check_claim(payload: bytes, digest: str, annotations: Mapping[str, str]) -> None:
    """Accept a simple-signing payload about `digest` with the wanted annotations; else raise EvaluationError."""
    document = _json(payload)
    try:
        claimed = document["critical"]["image"]["docker-manifest-digest"]
    except (KeyError, TypeError) as error:
        raise EvaluationError("the signature's payload names no image") from error
    if not digest or claimed != digest:
        raise EvaluationError(f"the signature is about another image, {claimed}")
    optional = document.get("optional")
    stated = optional if isinstance(optional, dict) else {}
    for key, wanted in annotations.items():
        if stated.get(key) != wanted:
            raise EvaluationError(
                f"annotations mismatch: {stated.get(key, '')} does not match expected value "
                f"{wanted} for key {key}"
            )


def read_envelope(data: bytes) -> Envelope:
    """Return the DSSE envelope of an attestation layer; raise EvaluationError when it is none."""
    document = _json(data)
    try:
        kind = document["payloadType"]
        payload = _bytes(document["payload"])
        signatures = tuple(_bytes(one["sig"]) for one in document["signatures"][:_MAX_SIGNATURES])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EvaluationError("the attestation is not a readable envelope") from error
    if kind != _STATEMENT:
        raise EvaluationError("the attestation is not an in-toto statement")
    statement = _json(payload)
    if not isinstance(statement, dict):
        raise EvaluationError("the attestation is not an in-toto statement")
    return Envelope(_encoded(kind, payload), signatures, statement, payload)


def payload_of(artifact: Referrer) -> Json:
    """Return what an artifact holds where that is JSON, else nothing."""
    try:
        return _json(artifact.payload)
    except EvaluationError:
        return None


def _encoded(kind: str, payload: bytes) -> bytes:
    """Return what DSSE signs: type and payload with their lengths in front."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def _json(data: bytes) -> Json:
    import orjson

    if len(data) > _MAX_PAYLOAD:
        raise EvaluationError("a signed payload of more than 16 MiB")
    try:
        return orjson.loads(data)
    except ValueError as error:
        raise EvaluationError("a signed payload is not JSON") from error


def _bytes(text: str) -> bytes:
    return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
