"""Signatures gathered from a registry, in every form they are kept in, judged by the engine."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controllers.lookups.registry.images import layer_of_bundle
from engine.evaluate import SignatureLookup
from engine.images import FoundImage, compile_image_rule, parse_reference
from engine.manifests import Circumstances
from engine.model import Status
from tests.controllers.kube.apiserver import run
from tests.engine.manifests.private_sigstore import LATER

from .fake_registry import INDEX, MANIFEST, FakeRegistry, registry

KEY = ec.generate_private_key(ec.SECP256R1())
SIGNED = "application/vnd.dev.cosign.simplesigning.v1+json"
ENVELOPE = "application/vnd.dsse.envelope.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PREDICATE = "https://slsa.dev/provenance/v1"


def public_key() -> str:
    return KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def sign(data: bytes) -> str:
    return base64.b64encode(KEY.sign(data, ec.ECDSA(hashes.SHA256()))).decode()


def payload_of(digest: str) -> bytes:
    critical = {
        "identity": {"docker-reference": "x"},
        "image": {"docker-manifest-digest": digest},
        "type": "cosign container image signature",
    }
    return json.dumps({"critical": critical, "optional": None}).encode()


def envelope_of(digest: str) -> dict[str, Any]:
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "predicateType": PREDICATE,
        "subject": [{"name": "x", "digest": {"sha256": digest.partition(":")[2]}}],
        "predicate": {},
    }
    body = json.dumps(statement).encode()
    kind = b"application/vnd.in-toto+json"
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)
    return {
        "payloadType": kind.decode(),
        "payload": base64.b64encode(body).decode(),
        "signatures": [{"sig": sign(signed)}],
    }


def signature(fake: FakeRegistry, digest: str) -> dict[str, Any]:
    payload = payload_of(digest)
    notes = {"dev.cosignproject.cosign/signature": sign(payload)}
    layer = {"mediaType": SIGNED, **fake.blob(payload), "annotations": notes}
    return {"mediaType": MANIFEST, "layers": [layer]}


def attestation(fake: FakeRegistry, digest: str) -> dict[str, Any]:
    layer = {"mediaType": ENVELOPE, **fake.blob(envelope_of(digest))}
    return {"mediaType": MANIFEST, "layers": [layer]}


def verdict(fake: FakeRegistry, data: Any, **block: Any) -> Any:
    entry = {"keys": {"publicKeys": public_key(), "rekor": {"url": "http://r", "ignoreTlog": True}}}
    sets = [{"entries": [entry]}]
    about = block or {"attestors": sets}
    if "attestations" in about:
        about["attestations"][0]["attestors"] = sets
    rule = compile_image_rule({"imageReferences": ["*"], **about})
    image = parse_reference(f"{fake.host}/acme/app:v1")
    return rule.verify(FoundImage("containers", "c", "/spec/x", image), data, Circumstances(LATER))


async def gathered(fake: FakeRegistry, images: Any, **options: Any) -> Any:
    return await images.signatures(SignatureLookup(f"{fake.host}/acme/app:v1", **options))


@pytest.mark.parametrize("form", ["tag", "referrer", "fallback"])
def test_a_signature_is_found_in_every_place(form: str) -> None:
    async def scenario() -> None:
        fake = FakeRegistry(has_referrers=form != "fallback")
        async with registry(fake) as images:
            digest = fake.image("v1")
            stem = digest.replace(":", "-")
            if form == "tag":
                fake.push(signature(fake, digest), f"{stem}.sig")
            else:
                made = fake.push(signature(fake, digest))
                kind = "application/vnd.dev.cosign.artifact.sig.v1+json"
                listed = [{"digest": made, "artifactType": kind}]
                fake.referring[digest] = listed
                fake.push({"mediaType": INDEX, "manifests": listed}, stem, kind=INDEX)
            data = await gathered(fake, images)
            assert data.digest == digest
            assert verdict(fake, data).status is Status.PASS

    run(scenario())


@pytest.mark.parametrize("form", ["tag", "bundle"])
def test_an_attestation_is_found_in_every_form(form: str) -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake) as images:
            digest = fake.image("v1")
            if form == "tag":
                fake.push(attestation(fake, digest), f"{digest.replace(':', '-')}.att")
            else:
                bundle = {"mediaType": BUNDLE, "dsseEnvelope": envelope_of(digest)}
                layer = {"mediaType": BUNDLE, **fake.blob(bundle)}
                made = fake.push({"mediaType": MANIFEST, "layers": [layer]})
                fake.referring[digest] = [{"digest": made, "artifactType": BUNDLE}]
            data = await gathered(fake, images)
            found = verdict(fake, data, attestations=[{"type": PREDICATE}])
            assert found.status is Status.PASS, found.message

    run(scenario())


def test_a_signature_of_another_image_is_gathered_and_refused() -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake) as images:
            digest = fake.image("v1")
            other = f"sha256:{'0' * 64}"
            fake.push(signature(fake, other), f"{digest.replace(':', '-')}.sig")
            assert verdict(fake, await gathered(fake, images)).status is Status.FAIL

    run(scenario())


def test_an_unsigned_image_fails_and_an_unknown_one_too() -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake) as images:
            missing = await gathered(fake, images)
            assert (missing.digest, missing.problem) == ("", "")
            assert verdict(fake, missing).status is Status.FAIL
            fake.image("v1")
            assert verdict(fake, await gathered(fake, images)).status is Status.FAIL

    run(scenario())


def test_a_registry_that_cannot_be_asked_is_a_problem_and_no_failure() -> None:
    async def scenario() -> None:
        fake = FakeRegistry(user="a:b")
        async with registry(fake) as images:
            data = await gathered(fake, images)
            assert data.problem
            assert verdict(fake, data).status is Status.ERROR

    run(scenario())


def test_signatures_may_be_kept_in_another_repository() -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake) as images:
            digest = fake.image("v1")
            made = signature(fake, digest)
            for path in [path for path in fake.stored if "/blobs/" in path]:
                fake.stored[path.replace("acme/app", "acme/sigs")] = fake.stored[path]
            fake.push(made, f"{digest.replace(':', '-')}.sig", repository="acme/sigs")
            here = await gathered(fake, images)
            there = await gathered(fake, images, repository=f"{fake.host}/acme/sigs")
            assert verdict(fake, here).status is Status.FAIL
            assert verdict(fake, there).status is Status.PASS

    run(scenario())


@pytest.mark.parametrize(
    "layer",
    [
        {"mediaType": SIGNED},
        {"mediaType": SIGNED, "digest": 5},
        {"mediaType": "text/plain", "digest": "sha256:0"},
        {"mediaType": SIGNED, "digest": "sha256:0", "size": 10**12},
        5,
        None,
    ],
    ids=str,
)
def test_layers_that_are_none_are_left_out_or_a_problem(layer: Any) -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake) as images:
            digest = fake.image("v1")
            fake.push({"layers": [layer]}, f"{digest.replace(':', '-')}.sig")
            data = await gathered(fake, images)
            assert data.signatures == ()
            assert verdict(fake, data).status is not Status.PASS

    run(scenario())


def test_a_bundle_gives_certificate_and_log_entry_as_the_engine_reads_them() -> None:
    raw = base64.b64encode(b"certificate" * 9).decode()
    entry = {
        "logIndex": "5",
        "logId": {"keyId": base64.b64encode(b"\x01\xff").decode()},
        "integratedTime": "1700000000",
        "inclusionPromise": {"signedEntryTimestamp": "c2V0"},
        "canonicalizedBody": "e30=",
    }
    material = {"certificate": {"rawBytes": raw}, "tlogEntries": [entry]}
    bundle = {"dsseEnvelope": {"payload": ""}, "verificationMaterial": material}

    is_statement, layer = layer_of_bundle(bundle)

    assert is_statement
    lines = layer.certificate.decode().splitlines()
    assert lines[0] == "-----BEGIN CERTIFICATE-----"
    assert "".join(lines[1:-1]) == raw
    assert max(map(len, lines)) <= 64
    assert json.loads(layer.bundle) == {
        "SignedEntryTimestamp": "c2V0",
        "Payload": {"body": "e30=", "integratedTime": 1700000000, "logIndex": 5, "logID": "01ff"},
    }


@pytest.mark.parametrize("bundle", [None, [], {}, {"messageSignature": {}}, {"dsseEnvelope": 5}])
def test_bundles_without_an_envelope_are_none(bundle: Any) -> None:
    assert layer_of_bundle(bundle) is None
