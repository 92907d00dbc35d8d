"""Notary envelopes judged by the certificates that a policy trusts: both forms, and everything that must be refused."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from engine.errors import EvaluationError
from engine.images.cbor import read_cbor
from engine.images.notation import COSE, JWS, NotarySignature, TrustStore
from tests.engine.manifests.private_sigstore import LATER

from .notaries import FORMS, Notary, cbor

DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32


def store(notary: Notary) -> TrustStore:
    return TrustStore.from_pem(notary.root_pem)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [{}, {"is_rsa": True}, {"self_signed": True}], ids=str)
def test_a_signature_of_a_trusted_chain_is_accepted(form: str, kind: dict[str, Any]) -> None:
    notary = Notary(**kind)

    store(notary).verify(notary.sign(DIGEST, form=form), DIGEST, LATER)


@pytest.mark.parametrize("form", FORMS)
def test_a_signature_is_good_for_one_artifact(form: str) -> None:
    notary = Notary()

    with pytest.raises(EvaluationError, match="about another artifact"):
        store(notary).verify(notary.sign(OTHER, form=form), DIGEST, LATER)


@pytest.mark.parametrize("form", FORMS)
def test_nobody_else_signs(form: str) -> None:
    with pytest.raises(EvaluationError, match="nobody whom the policy trusts"):
        store(Notary()).verify(Notary().sign(DIGEST, form=form), DIGEST, LATER)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ({"days": 5}, "not valid now"),
        ({"start": LATER + timedelta(days=1)}, "not valid now"),
        ({"purpose": ExtendedKeyUsageOID.SERVER_AUTH}, "not for signing code"),
        ({"leaf_is_authority": True}, "an authority's, not a signer's"),
        ({"root_is_authority": False}, "no authority's"),
    ],
)
def test_certificates_must_be_valid_now_and_for_signing(kind: dict[str, Any], reason: str) -> None:
    notary = Notary(**kind)

    with pytest.raises(EvaluationError, match=reason):
        store(notary).verify(notary.sign(DIGEST), DIGEST, LATER)


def test_a_leaf_that_another_key_issued_is_no_chain() -> None:
    notary, rogue = Notary(), Notary()
    notary.chain = [rogue.chain[0], notary.chain[1]]
    notary.key = rogue.key

    with pytest.raises(EvaluationError, match="are no chain"):
        store(notary).verify(notary.sign(DIGEST), DIGEST, LATER)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"io.cncf.notary.expiry": "2026-03-02T00:00:00Z"}, "has expired"),
        ({"io.cncf.notary.signingScheme": "notary.x509.signingAuthority"}, "another signing scheme"),
        ({"crit": ["io.cncf.notary.signingScheme", "x"], 2: ["io.cncf.notary.signingScheme", "x"]},
         "critical attributes"),
        ({"crit": [], 2: []}, "critical attributes"),
        ({"crit": ["io.cncf.notary.signingScheme", ["x"]], 2: ["io.cncf.notary.signingScheme", ["x"]]},
         "critical attributes"),
        ({"cty": "text/plain", 3: "text/plain"}, "payload of another type"),
        ({"alg": "none", 1: -99}, "an algorithm that its key is not for"),
        ({"alg": "ES384", 1: -35}, "an algorithm that its key is not for"),
    ],
)  # fmt: skip
def test_attributes_are_held_to_what_they_say(
    form: str, changes: dict[Any, Any], reason: str
) -> None:
    notary = Notary()
    named = {JWS: str, COSE: (int, str)}[form]
    kept = {key: one for key, one in changes.items() if isinstance(key, named)}
    if form == COSE:
        kept = {key: one for key, one in kept.items() if key not in ("crit", "cty", "alg")}

    with pytest.raises(EvaluationError, match=reason):
        store(notary).verify(notary.sign(DIGEST, form=form, changes=kept), DIGEST, LATER)


def test_a_payload_that_was_exchanged_does_not_verify() -> None:
    notary = Notary()
    document = json.loads(notary.sign(OTHER).envelope)
    document["payload"] = json.loads(notary.sign(DIGEST).envelope)["payload"]

    with pytest.raises(EvaluationError, match="does not verify"):
        store(notary).verify(NotarySignature(JWS, json.dumps(document).encode()), DIGEST, LATER)


@pytest.mark.parametrize(
    "envelope",
    [
        b"",
        b"{}",
        b"[]",
        b'{"protected": 1}',
        b"\xff",
        cbor([1]),
        b"\xd2\x9f",
        b"\x9a\xff\xff\xff\xff",
    ],
)
@pytest.mark.parametrize("form", [*FORMS, "text/plain"])
def test_what_is_no_envelope_is_refused(form: str, envelope: bytes) -> None:
    with pytest.raises(EvaluationError):
        store(Notary()).verify(NotarySignature(form, envelope), DIGEST, LATER)


def test_a_store_without_certificates_trusts_nobody() -> None:
    with pytest.raises(EvaluationError, match="no certificate found"):
        TrustStore.from_pem("")


@pytest.mark.parametrize("value", [0, 23, 24, 255, 65536, -1, -40, "é", b"\0", [1, [2]], {"a": 1}])
def test_cbor_reads_what_an_encoder_wrote(value: Any) -> None:
    assert read_cbor(cbor(value)) == value


@pytest.mark.parametrize(
    "data",
    [
        b"\x81" * 20 + b"\0",
        b"\0\0",
        b"\x43ab",
        b"\x62\xff\xff",
        b"\xa2\0\0\0\0",
        b"\xfb" + b"\0" * 8,
        b"\x18",
    ],
)
def test_cbor_refuses_what_is_deep_long_broken_or_unknown(data: bytes) -> None:
    with pytest.raises(EvaluationError):
        read_cbor(data)


def test_base64_of_another_alphabet_is_no_envelope() -> None:
    document = json.loads(Notary().sign(DIGEST).envelope)
    document["payload"] = base64.b64encode(b"\xfb\xff\xfe").decode()

    with pytest.raises(EvaluationError):
        store(Notary()).verify(NotarySignature(JWS, json.dumps(document).encode()), DIGEST, LATER)
