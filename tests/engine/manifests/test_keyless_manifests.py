"""Keyless signatures: every link of the chain of proof is needed, and none can be swapped."""

from __future__ import annotations

import base64
import gzip
import json
from datetime import timedelta
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from engine.manifests import Trust, compile_manifests
from engine.model import Outcome, Status
from tests.engine.manifests.private_sigstore import (
    DOMAIN,
    ISSUER,
    LATER,
    SIGNED_AT,
    SUBJECT,
    LeafWish,
    PrivateSigstore,
    annotated,
    annotations,
    certificate_pem,
    new_key,
    packed,
    pem_of,
    sign,
)

OBJECT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "shop"},
    "data": {"mode": "safe"},
}
MESSAGE = json.dumps(OBJECT).encode()
IDENTITY = {"subject": SUBJECT, "issuer": ISSUER}


@pytest.fixture(scope="module")
def sigstore() -> PrivateSigstore:
    return PrivateSigstore()


def judge(
    obj: dict[str, Any], trust: Trust | None, keyless: dict[str, Any] | None = None
) -> Outcome:
    block = {"attestors": [{"entries": [{"keyless": keyless or IDENTITY}]}]}
    return compile_manifests(block)(obj, trust, LATER)


def trust_of(sigstore: PrivateSigstore) -> Trust:
    return Trust.from_json(sigstore.trusted_root)


def signed_by(sigstore: PrivateSigstore, **wish: Any) -> dict[str, Any]:
    return annotated(OBJECT, sigstore.keyless(MESSAGE, LeafWish(**wish)))


def changed_bundle(obj: dict[str, Any], **payload: Any) -> dict[str, Any]:
    text = gzip.decompress(base64.b64decode(obj["metadata"]["annotations"][f"{DOMAIN}/bundle"]))
    bundle = json.loads(text)
    bundle["Payload"].update(payload)
    return annotated(obj, {f"{DOMAIN}/bundle": packed(json.dumps(bundle).encode())})


def test_a_certificate_expired_now_but_valid_when_it_signed_passes(
    sigstore: PrivateSigstore,
) -> None:
    outcome = judge(signed_by(sigstore), trust_of(sigstore))

    assert outcome == Outcome(
        Status.PASS,
        "verified manifest signatures; manifest verification succeeded; verifiedCount 1; "
        f"requiredCount 1; message singed by a valid signer: {SUBJECT}",
    )


def test_without_trust_nothing_keyless_verifies(sigstore: PrivateSigstore) -> None:
    outcome = judge(signed_by(sigstore), None)

    assert outcome.status is Status.ERROR
    assert "no trusted root is given" in outcome.message


def test_a_certificate_of_a_rogue_authority_with_a_genuine_log_entry_is_refused(
    sigstore: PrivateSigstore,
) -> None:
    rogue = PrivateSigstore()
    rogue.log_key, rogue.ct_key = sigstore.log_key, sigstore.ct_key

    outcome = judge(signed_by(rogue), trust_of(sigstore))

    assert outcome.status is Status.ERROR
    assert "does not chain to a trusted authority" in outcome.message


def test_an_entry_of_an_unknown_log_is_refused(sigstore: PrivateSigstore) -> None:
    trust = trust_of(sigstore)
    genuine_key, sigstore.log_key = sigstore.log_key, new_key()
    try:
        obj = signed_by(sigstore)
    finally:
        sigstore.log_key = genuine_key

    outcome = judge(obj, trust)

    assert outcome.status is Status.ERROR
    assert "transparency log that is not trusted" in outcome.message


def test_a_certificate_without_a_receipt_is_refused_unless_the_policy_ignores_receipts(
    sigstore: PrivateSigstore,
) -> None:
    obj = signed_by(sigstore, has_receipt=False)

    assert "no signed certificate timestamp" in judge(obj, trust_of(sigstore)).message
    ignoring = {**IDENTITY, "ctlog": {"ignoreSCT": True}}
    assert judge(obj, trust_of(sigstore), ignoring).status is Status.PASS


def test_a_receipt_of_an_unknown_certificate_log_is_refused(sigstore: PrivateSigstore) -> None:
    obj = signed_by(sigstore)
    root = sigstore.trusted_root
    root["ctlogs"] = PrivateSigstore().trusted_root["ctlogs"]

    outcome = judge(obj, Trust.from_json(root))

    assert "no signed certificate timestamp is of a trusted certificate log" in outcome.message


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        ({"purpose": ExtendedKeyUsageOID.SERVER_AUTH}, "not for signing code"),
        ({"digital_signature": False}, "not for signatures"),
        ({"is_authority": True}, "does not chain"),
        ({"from_time": SIGNED_AT - timedelta(minutes=30)}, "was not valid when it signed"),
        ({"from_time": SIGNED_AT + timedelta(minutes=1)}, "was not valid when it signed"),
    ],
)
def test_a_certificate_unfit_for_the_signature_is_refused(
    sigstore: PrivateSigstore, wish: dict[str, Any], text: str
) -> None:
    outcome = judge(signed_by(sigstore, **wish), trust_of(sigstore))

    assert outcome.status is Status.ERROR
    assert text in outcome.message


@pytest.mark.parametrize(
    "changed",
    [
        {"integratedTime": int(SIGNED_AT.timestamp()) + 60},
        {"logIndex": 999},
        {"logID": "00" * 32},
        {"logID": "zz"},
        {"integratedTime": "now"},
        {"integratedTime": True},
        {"integratedTime": 2**70},
        {"body": base64.b64encode(b"{}").decode()},
        {"body": 3},
    ],
)
def test_a_changed_log_entry_is_refused(sigstore: PrivateSigstore, changed: dict[str, Any]) -> None:
    outcome = judge(changed_bundle(signed_by(sigstore), **changed), trust_of(sigstore))

    assert outcome.status is Status.ERROR


def test_a_signature_without_a_log_entry_is_refused(sigstore: PrivateSigstore) -> None:
    obj = signed_by(sigstore)
    del obj["metadata"]["annotations"][f"{DOMAIN}/bundle"]

    outcome = judge(obj, trust_of(sigstore))

    assert "without an entry of a transparency log" in outcome.message


def test_a_signature_without_a_certificate_is_refused(sigstore: PrivateSigstore) -> None:
    obj = signed_by(sigstore)
    del obj["metadata"]["annotations"][f"{DOMAIN}/certificate"]

    assert "came without a certificate" in judge(obj, trust_of(sigstore)).message


def test_the_log_entry_of_another_signature_is_refused(sigstore: PrivateSigstore) -> None:
    mine, other = sigstore.keyless(MESSAGE), sigstore.keyless(MESSAGE)
    swapped = {**mine, f"{DOMAIN}/bundle": other[f"{DOMAIN}/bundle"]}

    outcome = judge(annotated(OBJECT, swapped), trust_of(sigstore))

    assert "about another signature" in outcome.message


def test_the_certificate_of_another_signature_is_refused(sigstore: PrivateSigstore) -> None:
    mine, other = sigstore.keyless(MESSAGE), sigstore.keyless(MESSAGE)
    swapped = {**mine, f"{DOMAIN}/certificate": other[f"{DOMAIN}/certificate"]}

    outcome = judge(annotated(OBJECT, swapped), trust_of(sigstore))

    assert "about another certificate or key" in outcome.message


def test_a_certified_key_that_did_not_sign_is_refused(sigstore: PrivateSigstore) -> None:
    leaf = certificate_pem(sigstore.issue(new_key().public_key()))
    signature = sign(new_key(), MESSAGE)
    bundle = sigstore.record(sigstore.log_body(MESSAGE, signature, leaf), SIGNED_AT)

    outcome = judge(
        annotated(OBJECT, annotations(MESSAGE, signature, leaf, bundle)), trust_of(sigstore)
    )

    assert "does not verify with the certificate's key" in outcome.message


def test_message_and_object_changed_together_are_refused(sigstore: PrivateSigstore) -> None:
    forged = {**OBJECT, "data": {"mode": "open"}}
    added = sigstore.keyless(MESSAGE)
    added[f"{DOMAIN}/message"] = packed(json.dumps(forged).encode())

    outcome = judge(annotated(forged, added), trust_of(sigstore))

    assert outcome.status is Status.ERROR
    assert "about another message" in outcome.message


def test_a_changed_object_is_refused_with_its_path(sigstore: PrivateSigstore) -> None:
    obj = {**signed_by(sigstore), "data": {"mode": "open"}}

    outcome = judge(obj, trust_of(sigstore))

    assert outcome.status is Status.FAIL
    assert outcome.message.endswith(
        ".attestors[0].entries[0].keyless: failed to verify signature. diff found; "
        '{"items":[{"key":"data.mode","values":{"after":"open","before":"safe"}}]}'
    )


@pytest.mark.parametrize(
    "rules",
    [
        {"subject": "https://github.com/other/*", "issuer": ISSUER},
        {"subject": SUBJECT, "issuer": "https://accounts.google.com"},
        {"subject": SUBJECT, "issuerRegExp": "^https://gitlab"},
        {"subjectRegExp": "^myorg", "issuer": ISSUER},
        {"subject": SUBJECT, "issuer": ISSUER, "issuerRegExp": "google"},
        {"subject": "[h]ttps*", "issuer": ISSUER},
        {**IDENTITY, "additionalExtensions": {"githubWorkflowRef": "refs/heads/main"}},
    ],
)
def test_another_identity_is_refused_by_name(
    sigstore: PrivateSigstore, rules: dict[str, Any]
) -> None:
    outcome = judge(signed_by(sigstore), trust_of(sigstore), rules)

    assert outcome == Outcome(
        Status.FAIL,
        "manifest verification failed; verifiedCount 0; requiredCount 1; message "
        ".attestors[0].entries[0].keyless: no signer matches with this resource. "
        f"signed by {SUBJECT}",
    )


@pytest.mark.parametrize(
    "rules",
    [
        {"subject": "https://github.com/myorg/*", "issuer": "https://token.*"},
        {"subject": "nobody", "subjectRegExp": "workflows/sign", "issuer": ISSUER},
        {"subject": SUBJECT, "issuerRegExp": "githubusercontent"},
        {"subject": SUBJECT, "issuer": ISSUER, "issuerRegExp": "^https://token"},
        {**IDENTITY, "additionalExtensions": {"githubWorkflowRepository": "myorg/*"}},
        {**IDENTITY, "additionalExtensions": {"1.3.6.1.4.1.57264.1.12": "https://github.com/*"}},
    ],
)
def test_the_wanted_identity_passes_in_every_form(
    sigstore: PrivateSigstore, rules: dict[str, Any]
) -> None:
    obj = signed_by(sigstore, extra={"5": "myorg/myrepo", "12": "https://github.com/myorg"})

    assert judge(obj, trust_of(sigstore), rules).status is Status.PASS


def test_an_unreadable_regular_expression_is_an_error(sigstore: PrivateSigstore) -> None:
    outcome = judge(signed_by(sigstore), trust_of(sigstore), {"subjectRegExp": "("})

    assert outcome.status is Status.ERROR
    assert "error parsing regexp: missing closing )" in outcome.message


def test_a_certificate_without_an_issuer_fits_no_issuer_rule(sigstore: PrivateSigstore) -> None:
    obj = signed_by(sigstore, issuer="")

    assert judge(obj, trust_of(sigstore)).status is Status.FAIL
    assert judge(obj, trust_of(sigstore), {"subject": SUBJECT}).status is Status.PASS


def test_an_email_is_a_subject_too(sigstore: PrivateSigstore) -> None:
    obj = signed_by(sigstore, subject="dave@example.com")

    outcome = judge(obj, trust_of(sigstore), {"subject": "*@example.com", "issuer": ISSUER})

    assert outcome.message.endswith("singed by a valid signer: dave@example.com")


def test_the_second_of_two_signers_can_be_asked_for(sigstore: PrivateSigstore) -> None:
    first = sigstore.keyless(MESSAGE, LeafWish(subject="a@example.com"))
    second = sigstore.keyless(MESSAGE, LeafWish(subject="b@example.com"))
    both = {**first, **{f"{k}_1": v for k, v in second.items() if not k.endswith("message")}}

    outcome = judge(annotated(OBJECT, both), trust_of(sigstore), {"subject": "b@example.com"})

    assert outcome.status is Status.PASS


def test_roots_of_the_policy_replace_the_trusted_authorities(sigstore: PrivateSigstore) -> None:
    own = PrivateSigstore()
    own.log_key, own.ct_key = sigstore.log_key, sigstore.ct_key
    trust = trust_of(sigstore)
    roots = {**IDENTITY, "roots": certificate_pem(own.middle)}

    assert judge(signed_by(own), trust, roots).status is Status.PASS
    assert judge(signed_by(sigstore), trust, roots).status is Status.ERROR


def test_log_keys_of_the_policy_replace_the_trusted_ones(sigstore: PrivateSigstore) -> None:
    own = PrivateSigstore()
    rules = {
        **IDENTITY,
        "roots": certificate_pem(own.root) + certificate_pem(own.middle),
        "rekor": {"url": "http://rekor", "pubkey": pem_of(own.log_key)},
        "ctlog": {"pubkey": pem_of(own.ct_key)},
    }

    assert judge(signed_by(own), None, rules).status is Status.PASS
    assert judge(signed_by(own), trust_of(sigstore), rules).status is Status.PASS
    assert judge(signed_by(own), trust_of(sigstore)).status is Status.ERROR


@pytest.mark.parametrize("part", ["certificateAuthorities", "tlogs"])
def test_trust_that_ended_before_the_signature_does_not_count(
    sigstore: PrivateSigstore, part: str
) -> None:
    root = sigstore.trusted_root
    holder = root[part][0] if part != "tlogs" else root[part][0]["publicKey"]
    holder["validFor"]["end"] = "2026-02-01T00:00:00.5Z"

    assert judge(signed_by(sigstore), Trust.from_json(root)).status is Status.ERROR


def test_ignoring_the_log_leaves_only_the_present_to_judge_by(sigstore: PrivateSigstore) -> None:
    rules = {**IDENTITY, "rekor": {"url": "http://rekor", "ignoreTlog": True}}
    obj = signed_by(sigstore)
    del obj["metadata"]["annotations"][f"{DOMAIN}/bundle"]
    block = {"attestors": [{"entries": [{"keyless": rules}]}]}
    rule = compile_manifests(block)

    assert rule(obj, trust_of(sigstore), SIGNED_AT).status is Status.PASS
    assert rule(obj, trust_of(sigstore), LATER).status is Status.ERROR
