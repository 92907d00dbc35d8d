"""Sigstore bundles rewritten as the layers that the engine verifies: one form for what signers store in several.

Only bundles over DSSE envelopes are rewritten: those over messages do not say what they are about, and cosign keeps the
claim apart. Field names: Sigstore's `bundle.v0.3` and before.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import orjson

from engine.images import Layer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Json

BUNDLE = "application/vnd.dev.sigstore.bundle"
_PEM_WIDTH = 64


def layer_of_bundle(bundle: Json) -> tuple[bool, Layer] | None:
    """Return whether a bundle is an attestation, and its layer; None for one without an envelope."""
    envelope = bundle.get("dsseEnvelope") if isinstance(bundle, dict) else None
    if not isinstance(envelope, dict):
        return None
    material = _map(bundle.get("verificationMaterial"))
    certificates = _certificates(material)
    return True, Layer(
        orjson.dumps(envelope),
        certificate=certificates[0] if certificates else b"",
        chain=b"".join(certificates[1:]),
        bundle=_log_entry(material),
        is_bundle=True,
    )


def _certificates(material: Mapping[str, Any]) -> list[bytes]:
    """Return the signer's certificate and its chain, PEM."""
    one = _map(material.get("certificate")).get("rawBytes")
    chain = _map(material.get("x509CertificateChain")).get("certificates")
    items = chain if isinstance(chain, list) else ()
    listed = [one] if one else [_map(item).get("rawBytes") for item in items]
    return [_pem(text) for text in listed if isinstance(text, str)]


def _pem(text: str) -> bytes:
    lines = [text[start : start + _PEM_WIDTH] for start in range(0, len(text), _PEM_WIDTH)]
    middle = "\n".join(lines)
    return f"-----BEGIN CERTIFICATE-----\n{middle}\n-----END CERTIFICATE-----\n".encode()


def _log_entry(material: Mapping[str, Any]) -> bytes:
    """Return the first log entry in the form that cosign writes beside signatures; empty where there is none."""
    entries = material.get("tlogEntries")
    entry = _map(entries[0]) if isinstance(entries, list) and entries else {}
    promise = _map(entry.get("inclusionPromise")).get("signedEntryTimestamp")
    if not promise:
        return b""
    try:
        key_id = base64.b64decode(str(_map(entry.get("logId")).get("keyId"))).hex()
        payload = {
            "body": str(entry.get("canonicalizedBody") or ""),
            "integratedTime": int(entry.get("integratedTime") or 0),
            "logIndex": int(entry.get("logIndex") or 0),
            "logID": key_id,
        }
        return orjson.dumps({"SignedEntryTimestamp": str(promise), "Payload": payload})
    except (binascii.Error, ValueError, TypeError):
        return b""


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
