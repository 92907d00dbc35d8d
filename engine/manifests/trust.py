"""Whom to believe: certificate authorities, transparency logs and certificate logs, as one value.

Read from a trusted-root document that the caller has loaded; the engine neither fetches nor refreshes it. Apart from
verification so that a policy's own keys (`rekor.pubkey`, `ctlog.pubkey`, `roots`) can stand in for parts of it.
"""

from __future__ import annotations

import binascii
import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.errors import DocumentError, EvaluationError
from engine.lang import rfc3339
from engine.record import record, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Json

_ALWAYS = datetime(1, 1, 1, tzinfo=UTC)
_FOREVER = datetime(9999, 12, 31, tzinfo=UTC)


@record
class LogKey:
    """A log's public key: DER, the id it signs under, and when its statements count."""

    log_id: bytes
    der: bytes
    start: datetime = _ALWAYS
    end: datetime = _FOREVER

    def is_valid_at(self, instant: datetime) -> bool:
        """Tell whether statements made at `instant` count."""
        return self.start <= instant <= self.end


@record
class Authority:
    """A certificate authority: DER of its anchors and intermediates, and when its certificates count."""

    anchors: tuple[bytes, ...]
    intermediates: tuple[bytes, ...] = ()
    start: datetime = _ALWAYS
    end: datetime = _FOREVER

    def is_valid_at(self, instant: datetime) -> bool:
        """Tell whether certificates used at `instant` count."""
        return self.start <= instant <= self.end


@record
class Trust:
    """Trust material for keyless signatures and transparency logs."""

    authorities: tuple[Authority, ...] = ()
    logs: tuple[LogKey, ...] = ()
    certificate_logs: tuple[LogKey, ...] = ()

    @staticmethod
    def from_json(doc: Json) -> Trust:
        """Return the trust that a trusted-root document (`trustedroot+json`) states.

        Raise DocumentError when it is not one: half a trusted root would silently refuse or, worse, accept.
        """
        try:
            return Trust(
                authorities=tuple(map(_authority, doc.get("certificateAuthorities") or ())),
                logs=tuple(map(_log, doc.get("tlogs") or ())),
                certificate_logs=tuple(map(_log, doc.get("ctlogs") or ())),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DocumentError(
                "the trusted root is not readable",
                help="it must be a document of type `application/vnd.dev.sigstore.trustedroot+json`",
            ) from error

    def with_own(
        self,
        *,
        roots: Authority | None = None,
        log: LogKey | None = None,
        certificate_log: LogKey | None = None,
    ) -> Trust:
        """Return this trust with the parts replaced that a policy brings itself."""
        changed = self
        if roots is not None:
            changed = replace(changed, authorities=(roots,))
        if log is not None:
            changed = replace(changed, logs=(log,))
        if certificate_log is not None:
            changed = replace(changed, certificate_logs=(certificate_log,))
        return changed


NO_TRUST = Trust()


def log_key_from_pem(pem: str) -> LogKey:
    """Return a log key from PEM, its id computed (SHA-256 over the DER); raise EvaluationError when unreadable."""
    from .keys import der_of_key, load_public_key

    der = der_of_key(load_public_key(pem))
    return LogKey(hashlib.sha256(der).digest(), der)


def authority_of(anchors: Sequence[bytes], intermediates: Sequence[bytes] = ()) -> Authority:
    """Return an authority without limits of time, as policies state them; raise EvaluationError without anchors."""
    if not anchors:
        raise EvaluationError("no certificate found where a root certificate is expected")
    return Authority(tuple(anchors), tuple(intermediates))


def _authority(block: Json) -> Authority:
    chain = [_bytes(one["rawBytes"]) for one in block["certChain"]["certificates"]]
    if not chain:
        raise ValueError("an authority without certificates")
    start, end = _validity(block)
    return Authority((chain[-1],), tuple(chain[:-1]), start, end)


def _log(block: Json) -> LogKey:
    key = block["publicKey"]
    start, end = _validity(key)
    return LogKey(_bytes(block["logId"]["keyId"]), _bytes(key["rawBytes"]), start, end)


def _validity(block: Json) -> tuple[datetime, datetime]:
    valid = block.get("validFor") or {}
    start, end = valid.get("start"), valid.get("end")
    return (_instant(start) if start else _ALWAYS, _instant(end) if end else _FOREVER)


def _instant(text: str) -> datetime:
    instant = rfc3339.read(text)
    if instant is None:
        raise ValueError("no instant with a zone")
    return instant


def _bytes(text: str) -> bytes:
    return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
