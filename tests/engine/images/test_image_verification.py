"""verifyImages over image data: selection, attestors, digests, attestations, and what is written on the object."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from engine.errors import PolicyError
from engine.images import (
    FoundImage,
    ImageData,
    ImageVerdict,
    Layer,
    compile_image_rule,
    parse_reference,
)
from engine.images.data import with_outcomes
from engine.manifests import Circumstances, Trust
from engine.model import RuleResult, RuleType, Status
from engine.model.result import ImageFinding
from tests.engine.manifests.private_sigstore import (
    ISSUER,
    LATER,
    SIGNED_AT,
    SUBJECT,
    PrivateSigstore,
    certificate_pem,
    new_key,
    pem_of,
    sign,
)

DIGEST = "sha256:" + hashlib.sha256(b"image").hexdigest()
OTHER = "sha256:" + hashlib.sha256(b"other").hexdigest()
ALICE, BOB, EVE = new_key(), new_key(), new_key()
NOLOG = {"rekor": {"url": "http://r", "ignoreTlog": True}}
GIVEN = Circumstances(LATER)


def found(text: str = "ghcr.io/acme/app:v1") -> FoundImage:
    return FoundImage("containers", "app", "/spec/containers/0/image", parse_reference(text))


def keys(*owners: Any, **more: Any) -> dict[str, Any]:
    return {"keys": {"publicKeys": "\n".join(map(pem_of, owners)), **NOLOG, **more}}


def rule(*entries: dict[str, Any], **block: Any) -> Any:
    sets = [{"entries": list(entries)}] if entries else []
    return compile_image_rule({"imageReferences": ["ghcr.io/acme/*"], "attestors": sets, **block})


def payload_of(digest: str = DIGEST, **optional: str) -> bytes:
    critical = {
        "identity": {"docker-reference": "ghcr.io/acme/app"},
        "image": {"docker-manifest-digest": digest},
        "type": "cosign container image signature",
    }
    return json.dumps({"critical": critical, "optional": optional}).encode()


def signed(key: Any, payload: bytes | None = None) -> Layer:
    payload = payload or payload_of()
    return Layer(payload, sign(key, payload))


def data(*layers: Layer, digest: str = DIGEST) -> ImageData:
    return ImageData(digest, layers)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("ghcr.io/acme/app:v1", True),
        (f"ghcr.io/acme/app:v1@{DIGEST}", True),
        (f"ghcr.io/acme/app@{DIGEST}", True),
        ("ghcr.io/acme/app:v2", False),
        ("docker.io/acme/app:v1", False),
        ("ghcr.io/acme/app:v1-debug", True),
        ("ghcr.io/acme/skipped:v1", False),
    ],
)
def test_rules_select_images_by_wildcards_in_every_spelling(image: str, expected: bool) -> None:
    one = compile_image_rule(
        {
            "imageReferences": ["ghcr.io/acme/*:v1*", "ghcr.io/acme/app@*"],
            "skipImageReferences": ["*/skipped:*"],
            "attestors": [{"entries": [keys(ALICE)]}],
        }
    )

    assert one.selects(parse_reference(image)) is expected


def test_a_tag_pattern_cannot_be_passed_by_with_a_digest() -> None:
    one = compile_image_rule(
        {"imageReferences": ["ghcr.io/acme/app:*"], "attestors": [{"entries": [keys(ALICE)]}]}
    )

    assert one.selects(parse_reference(f"ghcr.io/acme/app:v1@{DIGEST}"))
    assert one.selects(parse_reference(f"ghcr.io/acme/app@{DIGEST}"))


def test_a_signed_image_passes_and_its_digest_is_pinned() -> None:
    verdict = rule(keys(ALICE)).verify(found(), data(signed(ALICE)), GIVEN)

    assert verdict == ImageVerdict(
        "ghcr.io/acme/app:v1",
        Status.PASS,
        "verified image signatures for ghcr.io/acme/app:v1",
        DIGEST,
        {
            "op": "replace",
            "path": "/spec/containers/0/image",
            "value": f"ghcr.io/acme/app:v1@{DIGEST}",
        },
    )


def test_nothing_is_pinned_where_the_digest_stands_or_the_rule_does_not_want_it() -> None:
    layers = data(signed(ALICE))

    assert rule(keys(ALICE), mutateDigest=False).verify(found(), layers, GIVEN).patch is None
    pinned = found(f"ghcr.io/acme/app@{DIGEST}")
    assert rule(keys(ALICE)).verify(pinned, layers, GIVEN).patch is None


@pytest.mark.parametrize(
    ("image_data", "reason"),
    [
        (data(), ".attestors[0].entries[0].keys: no signatures found"),
        (data(signed(EVE)), "the signature does not verify with the key"),
        (data(signed(ALICE, payload_of(OTHER))), f"the signature is about another image, {OTHER}"),
        (data(signed(ALICE, b"{}")), "the signature's payload names no image"),
        (data(signed(ALICE, b"[")), "a signed payload is not JSON"),
        (data(signed(ALICE, b"[1]")), "the signature's payload names no image"),
        (data(signed(ALICE), digest=""), "the image's digest is not known"),
    ],
)
def test_images_without_a_good_signature_fail(image_data: ImageData, reason: str) -> None:
    verdict = rule(keys(ALICE)).verify(found(), image_data, GIVEN)

    assert verdict.status is Status.FAIL
    assert verdict.message.startswith("failed to verify image ghcr.io/acme/app:v1: ")
    assert verdict.message.endswith(reason)
    assert verdict.patch is None


def test_a_digest_in_the_object_must_be_the_registrys() -> None:
    verdict = rule(keys(ALICE)).verify(
        found(f"ghcr.io/acme/app@{OTHER}"), data(signed(ALICE)), GIVEN
    )

    assert verdict.status is Status.FAIL


def test_a_registry_that_could_not_be_asked_is_an_error() -> None:
    verdict = rule(keys(ALICE)).verify(found(), ImageData(problem="dial tcp: refused"), GIVEN)

    assert verdict.status is Status.ERROR
    assert verdict.message == "failed to verify image ghcr.io/acme/app:v1: dial tcp: refused"


def test_unknown_kinds_of_signatures_are_errors() -> None:
    verdict = rule(keys(ALICE), type="Wax").verify(found(), data(signed(ALICE)), GIVEN)

    assert verdict.status is Status.ERROR


def test_every_entry_and_every_set_must_have_signed() -> None:
    both = data(signed(ALICE), signed(BOB))

    assert rule(keys(ALICE), keys(BOB)).verify(found(), both, GIVEN).status is Status.PASS
    assert rule(keys(ALICE), keys(EVE)).verify(found(), both, GIVEN).status is Status.FAIL
    assert rule(keys(ALICE, BOB)).verify(found(), both, GIVEN).status is Status.PASS
    sets = [{"entries": [keys(ALICE)]}, {"entries": [keys(EVE)]}]
    assert rule(attestors=sets).verify(found(), both, GIVEN).status is Status.FAIL
    counted = [{"count": 1, "entries": [keys(EVE), keys(BOB)]}]
    assert rule(attestors=counted).verify(found(), both, GIVEN).status is Status.PASS


def test_a_key_signature_needs_a_log_entry_unless_the_log_is_ignored() -> None:
    sigstore = PrivateSigstore()
    entry = {"keys": {"publicKeys": pem_of(ALICE)}}
    given = Circumstances(LATER, Trust.from_json(sigstore.trusted_root))
    layer = signed(ALICE)
    bundle = sigstore.record(
        sigstore.log_body(layer.payload, layer.signature, pem_of(ALICE)), SIGNED_AT
    )
    logged = Layer(layer.payload, layer.signature, bundle=json.dumps(bundle).encode())

    assert rule(entry).verify(found(), data(layer), given).status is Status.FAIL
    assert rule(entry).verify(found(), data(logged), given).status is Status.PASS
    assert rule(entry).verify(found(), data(logged), GIVEN).status is Status.FAIL


def test_annotations_of_an_entry_must_be_in_the_payload() -> None:
    entry = {**keys(ALICE), "annotations": {"commit": "abc"}}

    good = data(signed(ALICE, payload_of(commit="abc")))
    assert rule(entry).verify(found(), good, GIVEN).status is Status.PASS
    bad = data(signed(ALICE, payload_of(commit="abd")))
    assert "annotations mismatch" in rule(entry).verify(found(), bad, GIVEN).message


def test_the_policy_chooses_the_hash_of_key_signatures() -> None:
    payload = payload_of()
    layer = Layer(payload, ALICE.sign(payload, ec.ECDSA(hashes.SHA512())))

    def status(**more: Any) -> Status:
        verdict: ImageVerdict = rule(keys(ALICE, **more)).verify(found(), data(layer), GIVEN)
        return verdict.status

    assert status(signatureAlgorithm="sha512") is Status.PASS
    assert status() is Status.FAIL
    assert status(signatureAlgorithm="md5") is Status.FAIL


def test_keyless_images_verify_with_identity_and_log() -> None:
    sigstore = PrivateSigstore()
    key = new_key()
    leaf = certificate_pem(sigstore.issue(key.public_key()))
    payload = payload_of()
    signature = sign(key, payload)
    bundle = sigstore.record(sigstore.log_body(payload, signature, leaf), SIGNED_AT)
    layer = Layer(payload, signature, leaf.encode(), b"", json.dumps(bundle).encode())
    given = Circumstances(LATER, Trust.from_json(sigstore.trusted_root))

    def status(**rules: str) -> Status:
        verdict: ImageVerdict = rule({"keyless": rules}).verify(found(), data(layer), given)
        return verdict.status

    assert status(subject=SUBJECT, issuer=ISSUER) is Status.PASS
    assert status(subject="https://github.com/*", issuer="https://else") is Status.FAIL


SLSA = "https://slsa.dev/provenance/v0.2"


def attested(
    key: Any, predicate: Any = None, *, digest: str = DIGEST, kind: str = SLSA, **change: Any
) -> Layer:
    statement = {
        "_type": "https://in-toto.io/Statement/v0.1",
        "predicateType": kind,
        "subject": [{"name": "app", "digest": {"sha256": digest.partition(":")[2]}}],
        "predicate": predicate,
    }
    body = json.dumps(statement).encode()
    name = "application/vnd.in-toto+json"
    encoded = f"DSSEv1 {len(name)} {name} {len(body)} ".encode() + body
    envelope = {
        "payloadType": name,
        "payload": base64.b64encode(body).decode(),
        "signatures": [{"keyid": "", "sig": base64.b64encode(sign(key, encoded)).decode()}],
        **change,
    }
    return Layer(json.dumps(envelope).encode())


def attesting(*entries: dict[str, Any], **more: Any) -> Any:
    sets = [{"entries": list(entries)}] if entries else []
    return rule(attestations=[{"type": SLSA, "attestors": sets, **more}])


def with_attestations(*layers: Layer) -> ImageData:
    return ImageData(DIGEST, (), layers)


def test_a_signed_attestation_passes() -> None:
    verdict = attesting(keys(ALICE)).verify(found(), with_attestations(attested(ALICE)), GIVEN)

    assert verdict.status is Status.PASS
    assert verdict.message == "verified image attestations for ghcr.io/acme/app:v1"


@pytest.mark.parametrize(
    "layer",
    [
        attested(EVE),
        attested(ALICE, digest=OTHER),
        attested(ALICE, kind="https://other"),
        attested(ALICE, payloadType="text/plain"),
        attested(ALICE, signatures=[]),
        attested(ALICE, payload=base64.b64encode(b"[]").decode()),
        Layer(b"{}"),
        Layer(b""),
    ],
)
def test_attestations_of_others_or_about_others_do_not_count(layer: Layer) -> None:
    verdict = attesting(keys(ALICE)).verify(found(), with_attestations(layer), GIVEN)

    assert verdict.status is Status.FAIL


def test_an_attestation_without_named_attestors_still_has_to_be_certified() -> None:
    verdict = attesting().verify(found(), with_attestations(attested(EVE)), GIVEN)

    assert verdict.status is Status.FAIL


def test_conditions_look_at_trusted_statements_only() -> None:
    def check(conditions: Any, predicate: Any) -> tuple[bool, str]:
        return predicate == conditions, "builder mismatch"

    wanting = attesting(keys(ALICE), conditions=["good"])

    def status(*layers: Layer, how: Any = check) -> Status:
        verdict: ImageVerdict = wanting.verify(found(), with_attestations(*layers), GIVEN, how)
        return verdict.status

    assert status(attested(ALICE, ["good"])) is Status.PASS
    assert status(attested(ALICE, ["bad"])) is Status.FAIL
    assert status(attested(ALICE, ["bad"]), attested(EVE, ["good"])) is Status.FAIL
    assert status(attested(ALICE, ["good"]), attested(EVE, ["bad"])) is Status.PASS
    assert status(attested(ALICE, ["good"]), attested(ALICE, ["bad"])) is Status.FAIL
    assert status(attested(ALICE, ["good"]), how=None) is Status.FAIL


def test_two_signers_may_attest_in_statements_of_their_own() -> None:
    layers = with_attestations(attested(ALICE), attested(BOB))

    assert attesting(keys(ALICE), keys(BOB)).verify(found(), layers, GIVEN).status is Status.PASS


@pytest.mark.parametrize(
    "block",
    [
        {},
        {"imageReferences": []},
        {"imageReferences": "*"},
        {"imageReferences": ["*"]},
        {"imageReferences": ["*"], "attestations": [{}]},
        {"imageReferences": ["*"], "attestations": "x"},
        {"imageReferences": ["*"], "attestors": [{"entries": []}]},
    ],
)
def test_rules_that_verify_nothing_are_refused(block: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        compile_image_rule(block)


def outcome(*statuses: Status, image: str = "ghcr.io/acme/app:v1", **more: Any) -> dict[str, Any]:
    findings = (ImageFinding(image, digest=DIGEST),)
    results = [
        RuleResult("p", "r", RuleType.IMAGE_VERIFY, status, images=findings) for status in statuses
    ]
    return dict(with_outcomes({"kind": "Pod", **more}, results))


def annotation(obj: dict[str, Any]) -> Any:
    return json.loads(obj["metadata"]["annotations"]["kyverno.io/verify-images"])


def test_outcomes_are_written_by_digest_and_take_the_place_of_what_was_there() -> None:
    forged = {"kyverno.io/verify-images": '{"evil":"pass"}', "own": "kept"}

    written = outcome(Status.PASS, metadata={"annotations": forged})

    assert annotation(written) == {f"ghcr.io/acme/app@{DIGEST}": "pass"}
    assert written["metadata"]["annotations"]["own"] == "kept"
    with_port = annotation(outcome(Status.PASS, image="localhost:5000/app"))
    assert with_port == {f"localhost:5000/app@{DIGEST}": "pass"}


def test_an_image_judged_twice_is_verified_only_when_both_agree() -> None:
    for order in ((Status.PASS, Status.FAIL), (Status.FAIL, Status.PASS)):
        assert annotation(outcome(*order)) == {f"ghcr.io/acme/app@{DIGEST}": "fail"}


def test_an_object_without_judged_images_stays_as_it_is() -> None:
    assert outcome() == {"kind": "Pod"}


@pytest.mark.parametrize(
    ("options", "image", "misses"),
    [
        ({}, "ghcr.io/acme/app:v1", False),
        ({"mutateDigest": False}, "ghcr.io/acme/app:v1", True),
        ({"mutateDigest": False, "verifyDigest": False}, "ghcr.io/acme/app:v1", False),
        ({"mutateDigest": False}, f"ghcr.io/acme/app@{DIGEST}", False),
    ],
)
def test_a_digest_is_missed_where_it_is_asked_for_and_nobody_writes_it(
    options: dict[str, Any], image: str, misses: bool
) -> None:
    assert rule(keys(ALICE), **options).misses_digest(parse_reference(image)) is misses
