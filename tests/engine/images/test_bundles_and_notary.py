"""verifyImages of the types SigstoreBundle and Notary: statements in bundles, signatures and artifacts of a notary."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
import rfc8785

from engine.images import ImageData, Layer, Referrer, compile_image_rule
from engine.images.signers import SIGNATURE_STATEMENT
from engine.manifests import Circumstances, Trust
from engine.model import Status
from tests.engine.manifests.private_sigstore import (
    ISSUER,
    LATER,
    SIGNED_AT,
    SUBJECT,
    PrivateSigstore,
    b64,
    certificate_pem,
    new_key,
    sign,
)

from .notaries import Notary
from .test_image_verification import DIGEST, OTHER, found, keys

KIND = b"application/vnd.in-toto+json"
SBOM = "application/vnd.cyclonedx+json"
KEY = new_key()
SIGSTORE = PrivateSigstore()


def statement(kind: str = SIGNATURE_STATEMENT, digest: str = DIGEST, **notes: str) -> bytes:
    subject = {"name": "x", "digest": {"sha256": digest.partition(":")[2]}, "annotations": notes}
    text = {"_type": "https://in-toto.io/Statement/v1", "predicateType": kind}
    return json.dumps({**text, "subject": [subject], "predicate": {"level": 3}}).encode()


def encoded(body: bytes) -> bytes:
    return b"DSSEv1 %d %b %d %b" % (len(KIND), KIND, len(body), body)


def bundle(key: Any, body: bytes | None = None, **more: Any) -> Layer:
    body = body or statement()
    signature = base64.b64encode(sign(key, encoded(body))).decode()
    parts = {"payloadType": KIND.decode(), "payload": base64.b64encode(body).decode()}
    envelope = json.dumps({**parts, "signatures": [{"sig": signature}]}).encode()
    return Layer(envelope, is_bundle=True, **more)


def judged(data: ImageData, trust: Trust | None = None, **block: Any) -> Any:
    rule = compile_image_rule({"imageReferences": ["ghcr.io/acme/*"], **block})
    return rule.verify(found(), data, Circumstances(LATER, trust), lambda *_: (True, ""))


def sets(*entries: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"entries": list(entries)}]


@pytest.mark.parametrize(
    ("layer", "status"),
    [
        (bundle(KEY), Status.PASS),
        (bundle(KEY, statement("https://slsa.dev/provenance/v1")), Status.PASS),
        (bundle(new_key()), Status.FAIL),
        (bundle(KEY, statement(digest=OTHER)), Status.FAIL),
    ],
)
def test_a_bundle_is_a_signature_of_who_signed_it(layer: Layer, status: Status) -> None:
    data = ImageData(DIGEST, attestations=(layer,))

    assert judged(data, type="SigstoreBundle", attestors=sets(keys(KEY))).status is status


def test_cosign_takes_bundles_that_are_signatures_and_no_other_statements() -> None:
    signed = ImageData(DIGEST, attestations=(bundle(KEY),))
    stated = ImageData(DIGEST, attestations=(bundle(KEY, statement("https://slsa.dev/x")),))

    assert judged(signed, attestors=sets(keys(KEY))).status is Status.PASS
    assert judged(stated, attestors=sets(keys(KEY))).status is Status.FAIL


def test_annotations_of_a_bundle_stand_at_its_subject() -> None:
    entry = {**keys(KEY), "annotations": {"env": "prod"}}
    good = ImageData(DIGEST, attestations=(bundle(KEY, statement(env="prod")),))
    bad = ImageData(DIGEST, attestations=(bundle(KEY, statement(env="dev")),))

    assert judged(good, type="SigstoreBundle", attestors=sets(entry)).status is Status.PASS
    assert judged(bad, type="SigstoreBundle", attestors=sets(entry)).status is Status.FAIL


def test_a_layer_that_is_no_bundle_is_none_for_this_type() -> None:
    layer = bundle(KEY)
    data = ImageData(DIGEST, attestations=(Layer(layer.payload),))

    assert judged(data, type="SigstoreBundle", attestors=sets(keys(KEY))).status is Status.FAIL


def _entry(kind: str, body: bytes, signature: bytes, pem: str) -> bytes:
    digest = {"algorithm": "sha256", "value": hashlib.sha256(body).hexdigest()}
    if kind == "dsse":
        signer = {"signature": b64(signature), "verifier": b64(pem.encode())}
        spec: Any = {"payloadHash": digest, "signatures": [signer]}
        return rfc8785.dumps({"apiVersion": "0.0.1", "kind": kind, "spec": spec})
    signer = {"sig": b64(b64(signature).encode()), "publicKey": b64(pem.encode())}
    spec = {"content": {"payloadHash": digest, "envelope": {"signatures": [signer]}}}
    return rfc8785.dumps({"apiVersion": "0.0.2", "kind": kind, "spec": spec})


@pytest.mark.parametrize("kind", ["dsse", "intoto"])
@pytest.mark.parametrize("logged", [statement(), statement("https://other")], ids=["own", "other"])
def test_keyless_bundles_prove_themselves_by_the_log_of_their_statement(
    kind: str, logged: bytes
) -> None:
    key = new_key()
    pem = certificate_pem(SIGSTORE.issue(key.public_key()))
    signed = bundle(key)
    signature = base64.b64decode(json.loads(signed.payload)["signatures"][0]["sig"])
    log = SIGSTORE.record(_entry(kind, logged, signature, pem), SIGNED_AT)
    layer = Layer(
        signed.payload, certificate=pem.encode(), bundle=json.dumps(log).encode(), is_bundle=True
    )
    trust = Trust.from_json(SIGSTORE.trusted_root)
    entry = {"keyless": {"subject": SUBJECT, "issuer": ISSUER}}

    verdict = judged(
        ImageData(DIGEST, attestations=(layer,)),
        trust,
        type="SigstoreBundle",
        attestors=sets(entry),
    )

    expected = Status.PASS if logged == statement() else Status.FAIL
    assert verdict.status is expected, verdict.message


NOTARY = Notary()
TRUSTED = {"certificates": {"cert": NOTARY.root_pem}}


def artifact(signer: Notary, kind: str = SBOM, about: str = OTHER) -> Referrer:
    return Referrer(OTHER, kind, b'{"level": 3}', (signer.sign(about),))


def test_a_notary_signature_counts_by_the_certificates_of_the_entry() -> None:
    data = ImageData(DIGEST, notations=(Notary().sign(DIGEST), NOTARY.sign(DIGEST)))
    stranger = ImageData(DIGEST, notations=(Notary().sign(DIGEST),))

    assert judged(data, type="Notary", attestors=sets(TRUSTED)).status is Status.PASS
    assert judged(stranger, type="Notary", attestors=sets(TRUSTED)).status is Status.FAIL
    assert judged(ImageData(DIGEST), type="Notary", attestors=sets(TRUSTED)).status is Status.FAIL


def test_a_notary_is_no_key() -> None:
    data = ImageData(DIGEST, notations=(NOTARY.sign(DIGEST),))

    verdict = judged(data, type="Notary", attestors=sets(keys(KEY)))

    assert "are verified by `certificates`" in verdict.message


@pytest.mark.parametrize(
    ("one", "status"),
    [
        (artifact(NOTARY), Status.PASS),
        (artifact(Notary()), Status.FAIL),
        (artifact(NOTARY, about=DIGEST), Status.FAIL),
        (artifact(NOTARY, kind="application/other"), Status.FAIL),
    ],
)
def test_an_attestation_of_a_notary_is_an_artifact_that_it_signed(
    one: Referrer, status: Status
) -> None:
    wanted = [{"type": SBOM, "attestors": sets(TRUSTED), "conditions": [{"all": []}]}]
    data = ImageData(DIGEST, referrers=(one,))

    assert judged(data, type="Notary", attestations=wanted).status is status


def test_who_keeps_signatures_elsewhere_is_asked_there() -> None:
    entry = {**keys(KEY), "repository": "ghcr.io/acme/sigs"}
    rule = compile_image_rule({"imageReferences": ["*"], "attestors": sets(entry)})
    there = {"ghcr.io/acme/sigs": ImageData(DIGEST, attestations=(bundle(KEY),))}

    assert rule.repositories == {"ghcr.io/acme/sigs"}
    here = rule.verify(found(), ImageData(DIGEST), Circumstances(LATER))
    both = rule.verify(found(), ImageData(DIGEST), Circumstances(LATER), None, there)
    assert (here.status, both.status) == (Status.FAIL, Status.PASS)
