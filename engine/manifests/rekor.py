"""Transparency log entries: what the log promised to have seen, checked offline against the log's key.

For keyless signatures, where the log's time is the only trusted one, and for key signatures that bring a bundle. Nothing
is ever looked up: the bundle beside the signature must prove itself.
"""

from __future__ import annotations

import binascii
import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.record import record

from . import keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Json

    from .trust import LogKey

_LATEST = 253402300799
_KINDS = {("hashedrekord", "0.0.1"), ("rekord", "0.0.1"), ("dsse", "0.0.1"), ("intoto", "0.0.2")}


_OF_MESSAGES = ("hashedrekord", "rekord")
"""Kinds of entries about bytes; the others are about envelopes with a statement inside."""


@record
class LogEntry:
    """A log entry and the log's signed promise about it, as the bundle states them."""

    body: str
    integrated_time: int
    log_index: int
    log_id: str
    promise: bytes


def read_bundle(text: bytes) -> LogEntry:
    """Return the entry of a Rekor bundle (JSON); raise EvaluationError when it is none."""
    bundle = _json(text, "the bundle")
    try:
        payload = bundle["Payload"]
        entry = LogEntry(
            body=payload["body"],
            integrated_time=payload["integratedTime"],
            log_index=payload["logIndex"],
            log_id=payload["logID"],
            promise=_unbase64(bundle["SignedEntryTimestamp"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EvaluationError("the bundle is not a readable log entry") from error
    is_typed = (
        isinstance(entry.body, str)
        and isinstance(entry.log_id, str)
        and type(entry.integrated_time) is int
        and type(entry.log_index) is int
    )
    if not is_typed or not 0 < entry.integrated_time <= _LATEST:
        raise EvaluationError("the bundle is not a readable log entry")
    return entry


def verify_entry(
    entry: LogEntry,
    logs: Sequence[LogKey],
    payload: bytes,
    signature: bytes,
    signer_der: bytes,
    statement: bytes = b"",
) -> datetime:
    """Return the instant at which a trusted log saw exactly this signature of exactly this payload.

    `signer_der` is the DER of the certificate, or of the public key where there is none; `statement` is what stands in the
    DSSE envelope whose encoding `payload` is, which is what logs of envelopes note. Raise EvaluationError that says which
    link is missing.
    """
    instant = datetime.fromtimestamp(entry.integrated_time, UTC)
    _verify_promise(entry, _log_key(entry, logs, instant))
    kind, spec = _spec(entry)
    digest, signers = _claims(kind, spec)
    about = payload if kind in _OF_MESSAGES else statement
    if digest != hashlib.sha256(about).hexdigest():
        raise EvaluationError("the log entry is about another message")
    pems = [pem for content, pem in signers if content == signature]
    if not pems:
        raise EvaluationError("the log entry is about another signature")
    if not any(signer_der in _ders(pem) for pem in pems):
        raise EvaluationError("the log entry is about another certificate or key")
    return instant


def _log_key(entry: LogEntry, logs: Sequence[LogKey], instant: datetime) -> LogKey:
    try:
        log_id = bytes.fromhex(entry.log_id)
    except ValueError as error:
        raise EvaluationError("the log entry names no readable log") from error
    known = [log for log in logs if log.log_id == log_id]
    if not known:
        raise EvaluationError("the log entry is of a transparency log that is not trusted")
    valid = [log for log in known if log.is_valid_at(instant)]
    if not valid:
        raise EvaluationError("the log entry is from a time when the log's key was not valid")
    return valid[0]


def _verify_promise(entry: LogEntry, log: LogKey) -> None:
    import rfc8785

    signed: Json = {
        "body": entry.body,
        "integratedTime": entry.integrated_time,
        "logID": entry.log_id,
        "logIndex": entry.log_index,
    }
    try:
        canonical = rfc8785.dumps(signed)
    except (rfc8785.CanonicalizationError, ValueError) as error:
        raise EvaluationError("the bundle is not a readable log entry") from error
    if not keys.is_signed_by(keys.load_der_key(log.der), entry.promise, canonical):
        raise EvaluationError("the log's signed entry timestamp does not verify")


def _spec(entry: LogEntry) -> tuple[str, Json]:
    try:
        body = _json(_unbase64(entry.body), "the log entry")
        if (body["kind"], body["apiVersion"]) not in _KINDS:
            raise EvaluationError("the log entry is of an unknown kind")
        return body["kind"], body["spec"]
    except (KeyError, TypeError, ValueError) as error:
        raise EvaluationError("the log entry is not readable") from error


def _claims(kind: str, spec: Json) -> tuple[str, list[tuple[bytes, str]]]:
    """Return the digest that the entry is about, that of an envelope's statement, and signatures with their signers (PEM)."""
    try:
        if kind in _OF_MESSAGES:
            signature, digest = spec["signature"], _sha256(spec["data"]["hash"])
            content = _unbase64(signature["content"])
            return digest, [(content, _text(signature["publicKey"]["content"]))]
        if kind == "dsse":
            signers = [
                (_unbase64(one["signature"]), _text(one["verifier"])) for one in spec["signatures"]
            ]
            return _sha256(spec["payloadHash"]), signers
        content = spec["content"]
        # in this kind of entry the signature is base64 of base64
        signers = [
            (_unbase64(_text(one["sig"])), _text(one["publicKey"]))
            for one in content["envelope"]["signatures"]
        ]
        return _sha256(content["payloadHash"]), signers
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EvaluationError("the log entry is not readable") from error


def _sha256(stated: Json) -> str:
    if stated["algorithm"] != "sha256":
        raise EvaluationError("the log entry uses an unknown hash")
    return str(stated["value"])


def _text(encoded: str) -> str:
    return _unbase64(encoded).decode("utf-8")


def _ders(pem: str) -> list[bytes]:
    labels = [label for label, _ in keys.pem_blocks(pem)]
    if labels == ["CERTIFICATE"]:
        return keys.certificates_from_pem(pem)
    return [keys.der_of_key(keys.load_public_key(pem))]


def _json(text: bytes, what: str) -> Json:
    import orjson

    try:
        return orjson.loads(text)
    except ValueError as error:
        raise EvaluationError(f"{what} is not JSON") from error


def _unbase64(text: str) -> bytes:
    return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
