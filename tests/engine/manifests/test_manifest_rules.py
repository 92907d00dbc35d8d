"""Manifest rules on key-signed objects: texts, counts, nesting, namespaces, and inputs meant to do harm."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import DocumentError, EngineError, PolicyError
from engine.manifests import Trust, compile_manifests
from engine.model import Outcome, Status
from tests.engine.manifests.private_sigstore import (
    DOMAIN,
    SIGNED_AT,
    PrivateSigstore,
    annotated,
    annotations,
    b64,
    certificate_pem,
    key_signed,
    new_key,
    packed,
    pem_of,
    sign,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ALICE, BOB, EVE = new_key(), new_key(), new_key()
OBJECT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "shop"},
    "data": {"mode": "safe"},
}


def keys(*owners: Any, **more: Any) -> dict[str, Any]:
    return {"keys": {"publicKeys": "\n".join(map(pem_of, owners)), **more}}


def judge(obj: Any, *entries: dict[str, Any], count: int | None = None, **block: Any) -> Outcome:
    one_set: dict[str, Any] = {"entries": list(entries)}
    if count is not None:
        one_set["count"] = count
    return compile_manifests({"attestors": [one_set], **block})(obj, None, NOW)


def both_signed(obj: Any) -> Any:
    message = json.dumps(obj).encode()
    first = annotations(message, sign(ALICE, message))
    return annotated(obj, {**first, f"{DOMAIN}/signature_1": b64(sign(BOB, message))})


def test_a_key_signed_object_passes_with_upstreams_text() -> None:
    assert judge(key_signed(OBJECT, ALICE), keys(ALICE)) == Outcome(
        Status.PASS,
        "verified manifest signatures; manifest verification succeeded; verifiedCount 1; "
        "requiredCount 1; message singed by a valid signer: ",
    )


def test_an_unsigned_object_fails_with_upstreams_text() -> None:
    assert judge(OBJECT, keys(ALICE)) == Outcome(
        Status.FAIL,
        "manifest verification failed; verifiedCount 0; requiredCount 1; message "
        ".attestors[0].entries[0].keys: "
        "YAML manifest not found for this resource: message not found",
    )


def test_a_message_without_a_signature_fails_with_upstreams_text() -> None:
    obj = key_signed(OBJECT, ALICE)
    del obj["metadata"]["annotations"][f"{DOMAIN}/signature"]

    outcome = judge(obj, keys(ALICE))

    assert outcome.status is Status.FAIL
    assert outcome.message.endswith("failed to verify signature: signature not found")


def test_a_foreign_signature_is_an_error_with_upstreams_text() -> None:
    assert judge(key_signed(OBJECT, EVE), keys(ALICE)) == Outcome(
        Status.ERROR,
        "error occurred during manifest verification: .attestors[0].entries[0].keys: "
        "failed to verify signature: verification failed for 1 signature. all trials: "
        '["[signature 1/1] the signature does not verify with the key"]',
    )


def test_changed_content_fails_with_every_difference() -> None:
    obj = {**key_signed(OBJECT, ALICE), "data": {"more": "x", "mode": 3}}

    outcome = judge(obj, keys(ALICE))

    assert outcome.status is Status.FAIL
    assert outcome.message.endswith(
        "failed to verify signature. diff found; "
        '{"items":[{"key":"data.mode","values":{"after":"3 (number)",'
        '"before":"\\"safe\\" (string)"}},'
        '{"key":"data.more","values":{"after":"x","before":null}}]}'
    )


def test_changed_content_with_a_foreign_signature_is_an_error() -> None:
    obj = {**key_signed(OBJECT, EVE), "data": {}}

    assert judge(obj, keys(ALICE)).status is Status.ERROR


def test_a_renamed_object_has_no_manifest() -> None:
    obj = key_signed(OBJECT, ALICE)
    renamed = {**obj, "metadata": {**obj["metadata"], "name": "other"}}

    outcome = judge(renamed, keys(ALICE))

    assert outcome.status is Status.FAIL
    assert outcome.message.endswith("this resource: no manifest for this object")


@pytest.mark.parametrize("field", [("kind", "Secret"), ("apiVersion", "v2/v1")])
def test_another_kind_or_group_has_no_manifest(field: tuple[str, str]) -> None:
    obj = {**key_signed(OBJECT, ALICE), field[0]: field[1]}

    assert judge(obj, keys(ALICE)).status is Status.FAIL


def test_another_version_of_the_same_group_is_compared() -> None:
    obj = {**key_signed({**OBJECT, "apiVersion": "a.io/v1"}, ALICE), "apiVersion": "a.io/v2"}

    assert '"key":"apiVersion"' in judge(obj, keys(ALICE)).message


def test_a_generated_name_is_covered_by_its_prefix_only() -> None:
    signed = {**OBJECT, "metadata": {"generateName": "run-"}}
    obj = key_signed(signed, ALICE)

    def named(**metadata: str) -> Any:
        return {**obj, "metadata": {**obj["metadata"], **metadata}}

    assert judge(obj, keys(ALICE)).status is Status.PASS
    assert judge(named(name="run-x7"), keys(ALICE)).status is Status.PASS
    assert judge(named(name="admin"), keys(ALICE)).status is Status.FAIL
    assert judge(named(name="x", generateName="x"), keys(ALICE)).status is Status.FAIL


def test_all_entries_must_agree_unless_a_count_says_otherwise() -> None:
    obj = both_signed(OBJECT)

    assert "verifiedCount 2; requiredCount 2" in judge(obj, keys(ALICE), keys(BOB)).message
    assert judge(obj, keys(ALICE), keys(EVE)).status is Status.ERROR
    assert judge(obj, keys(ALICE), keys(EVE), count=1).status is Status.PASS
    assert judge(obj, keys(EVE), keys(ALICE), count=1).status is Status.PASS
    assert judge(obj, keys(EVE), keys(ALICE), keys(BOB), count=2).status is Status.PASS
    assert judge(obj, keys(EVE), keys(ALICE), keys(EVE), count=2).status is Status.ERROR
    assert judge(obj, keys(ALICE), keys(BOB), count=0).status is Status.PASS
    assert judge(obj, keys(ALICE), keys(EVE), count=0).status is Status.ERROR


def test_several_keys_in_one_text_count_each() -> None:
    obj = both_signed(OBJECT)

    assert judge(obj, keys(ALICE, EVE)).status is Status.ERROR
    assert judge(obj, keys(ALICE, EVE), count=1).status is Status.PASS
    assert "requiredCount 2" in judge(obj, keys(ALICE, BOB)).message


def test_every_set_must_agree() -> None:
    sets = [{"entries": [keys(ALICE)]}, {"entries": [keys(EVE)]}]

    outcome = compile_manifests({"attestors": sets})(both_signed(OBJECT), None, NOW)

    assert outcome.status is Status.ERROR
    assert ".attestors[1].entries[0].keys" in outcome.message


def test_nested_sets_count_as_one_entry_and_keep_their_path() -> None:
    nested = {"attestor": {"count": 1, "entries": [keys(EVE), keys(BOB)]}}
    refused = {"attestor": {"entries": [keys(EVE)]}}

    assert judge(both_signed(OBJECT), keys(ALICE), nested).status is Status.PASS
    outcome = judge(both_signed(OBJECT), keys(ALICE), refused)
    assert outcome.status is Status.ERROR
    assert ".attestors[0].entries[1].attestor.entries[0].keys: " in outcome.message


def test_a_nested_set_that_is_no_set_is_an_error() -> None:
    outcome = judge(both_signed(OBJECT), {"attestor": "x"})

    assert outcome.status is Status.ERROR
    assert "failed to unmarshal nested attestor" in outcome.message


def test_annotations_of_an_entry_must_be_on_the_object() -> None:
    obj = key_signed({**OBJECT, "metadata": {"name": "a", "annotations": {"team": "x"}}}, ALICE)

    assert judge(obj, {**keys(ALICE), "annotations": {"team": "x"}}).status is Status.PASS
    outcome = judge(obj, {**keys(ALICE), "annotations": {"team": "y"}})
    assert outcome == Outcome(
        Status.ERROR,
        "error occurred during manifest verification: annotations mismatch: "
        "x does not match expected value y for key team",
    )


@pytest.mark.parametrize(
    "block",
    [
        {"attestors": []},
        {},
        {"attestors": "x"},
        {"attestors": [{"entries": []}]},
        {"attestors": [{"entries": "x"}]},
        {"attestors": [{"entries": [{}]}]},
        {"attestors": [{"entries": [{**keys(ALICE), "keyless": {}}]}]},
        {"attestors": [{"count": 2, "entries": [keys(ALICE)]}]},
        {"attestors": [{"count": -1, "entries": [keys(ALICE)]}]},
        {"attestors": [{"count": True, "entries": [keys(ALICE)]}]},
        {"attestors": [{"entries": [{"attestor": {"entries": []}}]}]},
        {"attestors": [{"entries": [keys(ALICE)]}], "ignoreFields": [{"fields": "status"}]},
        {"attestors": [{"entries": [keys(ALICE)]}], "ignoreFields": [{"objects": ["x"]}]},
    ],
)
def test_blocks_that_no_object_can_satisfy_are_refused(block: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        compile_manifests(block)


def test_nesting_without_end_is_refused() -> None:
    entry: dict[str, Any] = keys(ALICE)
    for _ in range(2_000):
        entry = {"attestor": {"entries": [entry]}}

    with pytest.raises(EngineError, match="nested deeper"):
        compile_manifests({"attestors": [{"entries": [entry]}]})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no PEM block"),
        ("nonsense", "no PEM block"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "not a readable key"),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----\nx\n-----END PGP PUBLIC KEY BLOCK-----", "PGP"),
        ("awskms:///alias/x", "keys of `awskms` are not supported"),
        ("k8s://ns/cosign", "secret `ns/cosign` is not known"),
        (certificate_pem(PrivateSigstore().root), "use `certificates`"),
    ],
    ids=["empty", "no PEM", "broken PEM", "PGP", "AWS", "Secret", "certificate"],
)
def test_a_bad_key_is_an_error_of_the_rule(text: str, reason: str) -> None:
    outcome = judge(key_signed(OBJECT, ALICE), {"keys": {"publicKeys": text}})

    assert outcome.status is Status.ERROR
    assert reason in outcome.message


def test_keys_in_secrets_come_from_the_caller() -> None:
    by_address = {"keys": {"publicKeys": "k8s://ns/cosign"}}
    by_name = {"keys": {"secret": {"namespace": "ns", "name": "cosign"}}}
    rule = compile_manifests({"attestors": [{"entries": [by_address, by_name]}]})
    obj = key_signed(OBJECT, ALICE)

    assert (
        rule(obj, None, NOW, key_of={"ns/cosign": pem_of(ALICE)}.__getitem__).status is Status.PASS
    )
    assert (
        rule(obj, None, NOW, key_of={"ns/cosign": pem_of(EVE)}.__getitem__).status is Status.ERROR
    )
    assert "secret `ns/cosign` is not known" in rule(obj, None, NOW).message


def test_rsa_ed25519_and_larger_curves_verify() -> None:
    message = json.dumps(OBJECT).encode()
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    edwards = ed25519.Ed25519PrivateKey.generate()
    large = ec.generate_private_key(ec.SECP384R1())
    classic = rsa.generate_private_key(65537, 2048)
    signatures: list[tuple[Any, bytes]] = [
        (edwards, edwards.sign(message)),
        (large, large.sign(message, ec.ECDSA(hashes.SHA256()))),
        (classic, classic.sign(message, padding.PKCS1v15(), hashes.SHA256())),
    ]
    for key, signature in signatures:
        pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        obj = annotated(OBJECT, annotations(message, signature))
        entry = {"keys": {"publicKeys": pem.decode()}}
        assert judge(obj, entry).status is Status.PASS
        assert judge({**obj, "data": {}}, entry).status is Status.FAIL


def test_manifests_are_signed_with_sha256_whatever_the_policy_says() -> None:
    entry = {**keys(ALICE, signatureAlgorithm="sha512"), "signatureAlgorithm": "sha384"}

    assert judge(key_signed(OBJECT, ALICE), entry).status is Status.PASS


def test_dry_run_requests_pass() -> None:
    rule = compile_manifests({"attestors": [{"entries": [keys(ALICE)]}]})

    assert rule(OBJECT, None, NOW, True) == Outcome(
        Status.PASS, "allowed because of DryRun request"
    )


def test_another_annotation_domain_is_read_alone() -> None:
    obj = key_signed(OBJECT, ALICE)
    moved = {
        key.replace(DOMAIN, "sign.example.com"): text
        for key, text in obj["metadata"]["annotations"].items()
    }
    other = annotated(OBJECT, moved)

    assert judge(other, keys(ALICE), annotationDomain="sign.example.com").status is Status.PASS
    assert judge(other, keys(ALICE)).status is Status.FAIL
    assert judge(obj, keys(ALICE), annotationDomain="sign.example.com").status is Status.FAIL


def test_annotations_that_only_look_like_signatures_are_compared() -> None:
    for name in ("messages", "signature_x", "message_", "extra"):
        obj = annotated(key_signed(OBJECT, ALICE), {f"{DOMAIN}/{name}": "x"})
        assert judge(obj, keys(ALICE)).status is Status.FAIL
    obj = annotated(key_signed(OBJECT, ALICE), {"cosignXsigstore.dev/message": "x"})
    assert judge(obj, keys(ALICE)).status is Status.FAIL


EXCEPTION = {
    "apiVersion": "kyverno.io/v2",
    "kind": "PolicyException",
    "metadata": {"name": "x", "namespace": "platform"},
    "spec": {"exceptions": []},
}


def moved(obj: Any, namespace: str) -> Any:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def test_a_signed_exception_cannot_move_to_another_namespace() -> None:
    obj = key_signed(EXCEPTION, ALICE)

    assert judge(obj, keys(ALICE)).status is Status.PASS
    outcome = judge(moved(obj, "prod"), keys(ALICE))
    assert outcome.status is Status.FAIL
    assert '{"key":"metadata.namespace","values":{"after":"prod","before":"platform"}}' in (
        outcome.message
    )


def test_other_kinds_and_exceptions_signed_without_a_namespace_may_move() -> None:
    anywhere = key_signed({**EXCEPTION, "metadata": {"name": "x"}}, ALICE)

    assert judge(moved(anywhere, "prod"), keys(ALICE)).status is Status.PASS
    assert judge(moved(key_signed(OBJECT, ALICE), "prod"), keys(ALICE)).status is Status.PASS


def test_the_policy_may_let_an_exception_move() -> None:
    obj = moved(key_signed(EXCEPTION, ALICE), "prod")
    block = {"attestors": [{"entries": [keys(ALICE)]}]}

    ignoring = judge(obj, keys(ALICE), ignoreFields=[{"fields": ["metadata.namespace"]}])
    assert ignoring.status is Status.PASS
    assert compile_manifests(block)(obj, None, NOW).status is Status.FAIL


def test_the_manifest_of_the_same_namespace_is_preferred() -> None:
    one, two = moved(EXCEPTION, "a"), moved(EXCEPTION, "b")
    message = (json.dumps(one) + "\n---\n" + json.dumps(two)).encode()
    added = annotations(message, sign(ALICE, message))

    assert judge(annotated(one, added), keys(ALICE)).status is Status.PASS
    assert judge(annotated(two, added), keys(ALICE)).status is Status.PASS
    assert judge(annotated(moved(EXCEPTION, "c"), added), keys(ALICE)).status is Status.FAIL


def archive_of(members: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz", format=form) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return target.getvalue()


def archive_signed(obj: Any, message: bytes) -> Any:
    return annotated(obj, annotations(message, sign(ALICE, message)))


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("name", ["a.yaml", "/tmp/" + "d/" * 45 + "settings.yml"])
def test_messages_in_archive_form_are_read(form: int, name: str) -> None:
    message = archive_of({"readme.txt": b"a: [", name: json.dumps(OBJECT).encode()}, form)

    obj = archive_signed(OBJECT, message)

    assert judge(obj, keys(ALICE)).status is Status.PASS
    assert judge({**obj, "data": {"mode": "open"}}, keys(ALICE)).status is Status.FAIL


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"a: [",
        b"\x1f\x8b",
        b"\x1f\x8bnothing",
        gzip.compress(b"no archive"),
        gzip.compress(b"\1" * 2048),
        archive_of({"a.yaml": json.dumps(OBJECT).encode()})[:-30],
        archive_of({"a.txt": json.dumps(OBJECT).encode()}),
        b"- 1\n- 2",
        b"&a [*a]",
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=range(12),
)
def test_unreadable_messages_never_pass_and_never_raise(message: bytes) -> None:
    outcome = judge(archive_signed(OBJECT, message), keys(ALICE))

    assert outcome.status in {Status.FAIL, Status.ERROR}


def test_a_compression_bomb_is_refused_at_every_layer() -> None:
    bomb = gzip.compress(b"a" * 30_000_000)

    for text in (b64(bomb), packed(bomb), b64(bomb + bomb)):
        obj = annotated(OBJECT, {f"{DOMAIN}/message": text, f"{DOMAIN}/signature": "AAAA"})
        outcome = judge(obj, keys(ALICE))
        assert outcome.status is Status.ERROR
        assert "expands to more than" in outcome.message


def test_a_bomb_in_one_signature_does_not_hide_another() -> None:
    message = json.dumps(OBJECT).encode()
    added = annotations(message, sign(EVE, message))
    added[f"{DOMAIN}/bundle"] = b64(gzip.compress(b"a" * 30_000_000))
    added[f"{DOMAIN}/signature_1"] = b64(sign(ALICE, message))

    assert judge(annotated(OBJECT, added), keys(ALICE)).status is Status.PASS


def test_signatures_behind_a_gap_or_beyond_the_cap_do_not_count() -> None:
    message = json.dumps(OBJECT).encode()
    base = annotations(message, sign(EVE, message))
    good = b64(sign(ALICE, message))
    many = {f"{DOMAIN}/signature_{n}": b64(b"x") for n in range(1, 40)}

    assert judge(
        annotated(OBJECT, {**base, f"{DOMAIN}/signature_2": good}), keys(ALICE)
    ).status is (Status.ERROR)
    last = {**base, **many, f"{DOMAIN}/signature_39": good}
    outcome = judge(annotated(OBJECT, last), keys(ALICE))
    assert "verification failed for 32 signature" in outcome.message


def test_an_uncompressed_message_is_taken_as_it_is() -> None:
    message = json.dumps(OBJECT).encode()
    added = annotations(message, sign(ALICE, message)) | {f"{DOMAIN}/message": b64(message)}

    assert judge(annotated(OBJECT, added), keys(ALICE)).status is Status.PASS


def test_a_bundle_beside_a_key_signature_must_hold() -> None:
    sigstore = PrivateSigstore()
    message = json.dumps(OBJECT).encode()
    signature = sign(ALICE, message)
    bundle = sigstore.record(sigstore.log_body(message, signature, pem_of(ALICE)), SIGNED_AT)
    foreign = sigstore.record(sigstore.log_body(message, signature, pem_of(EVE)), SIGNED_AT)
    good = annotated(OBJECT, annotations(message, signature, "", bundle))
    bad = annotated(OBJECT, annotations(message, signature, "", foreign))
    trust = Trust.from_json(sigstore.trusted_root)
    rule = compile_manifests({"attestors": [{"entries": [keys(ALICE)]}]})
    relaxed = keys(ALICE, rekor={"url": "http://r", "ignoreTlog": True})
    pinned = keys(ALICE, rekor={"url": "http://r", "pubkey": pem_of(sigstore.log_key)})

    assert rule(good, trust, NOW).status is Status.PASS
    assert rule(bad, trust, NOW).status is Status.ERROR
    assert rule(good, None, NOW).status is Status.ERROR
    assert judge(bad, relaxed).status is Status.PASS
    assert judge(good, pinned).status is Status.PASS
    assert judge(bad, pinned).status is Status.ERROR


def test_a_key_signature_without_a_bundle_passes_even_where_a_log_is_named() -> None:
    entry = keys(ALICE, rekor={"url": "https://rekor.sigstore.dev"})

    assert judge(key_signed(OBJECT, ALICE), entry).status is Status.PASS


def company() -> tuple[str, str, Any, PrivateSigstore]:
    authority = PrivateSigstore()
    key = new_key()
    leaf = certificate_pem(authority.issue(key.public_key()))
    chain = certificate_pem(authority.middle) + certificate_pem(authority.root)
    return leaf, chain, key, authority


def judge_at(obj: Any, block: dict[str, Any], at: datetime) -> Status:
    rule = compile_manifests({"attestors": [{"entries": [{"certificates": block}]}]})
    return rule(obj, None, at).status


def test_certificates_vouch_with_and_without_a_chain() -> None:
    leaf, chain, key, _ = company()
    message = json.dumps(OBJECT).encode()
    bare = annotated(OBJECT, annotations(message, sign(key, message)))
    beside = annotated(OBJECT, annotations(message, sign(key, message), leaf))
    foreign = annotated(OBJECT, annotations(message, sign(EVE, message), leaf))
    _, other_chain, _, _ = company()

    for block in ({"cert": leaf}, {"cert": leaf, "certChain": chain}):
        assert judge_at(bare, block, SIGNED_AT) is Status.PASS
        assert judge_at(beside, block, SIGNED_AT) is Status.PASS
        assert judge_at(foreign, block, SIGNED_AT) is Status.ERROR
        assert judge_at(bare, block, datetime(2027, 1, 1, tzinfo=UTC)) is Status.ERROR
    assert judge_at(beside, {"certChain": chain}, SIGNED_AT) is Status.PASS
    assert judge_at(bare, {"certChain": chain}, SIGNED_AT) is Status.ERROR
    assert judge_at(beside, {"certChain": other_chain}, SIGNED_AT) is Status.ERROR
    assert judge_at(beside, {"cert": leaf, "certChain": other_chain}, SIGNED_AT) is Status.ERROR


def test_a_certificate_attestor_refuses_authorities_and_other_purposes_as_signers() -> None:
    from tests.engine.manifests.private_sigstore import LeafWish

    _, chain, key, authority = company()
    message = json.dumps(OBJECT).encode()
    for wish in (
        LeafWish(is_authority=True),
        LeafWish(purpose=x509.oid.ExtendedKeyUsageOID.SERVER_AUTH),
        LeafWish(digital_signature=False),
    ):
        leaf = certificate_pem(authority.issue(key.public_key(), wish))
        obj = annotated(OBJECT, annotations(message, sign(key, message), leaf))
        assert judge_at(obj, {"certChain": chain}, SIGNED_AT) is Status.ERROR


@pytest.mark.parametrize("block", [{"cert": "x"}, {"certChain": "x"}, {}])
def test_unreadable_certificates_are_errors(block: dict[str, Any]) -> None:
    assert judge_at(key_signed(OBJECT, ALICE), block, SIGNED_AT) is Status.ERROR


@pytest.mark.parametrize(
    "doc",
    [
        None,
        [],
        {"tlogs": [{}]},
        {"tlogs": 3},
        {"certificateAuthorities": [{"certChain": {"certificates": []}}]},
        {"ctlogs": [{"publicKey": {"rawBytes": "?"}, "logId": {"keyId": "AA=="}}]},
    ],
)
def test_an_unreadable_trusted_root_is_refused(doc: Any) -> None:
    with pytest.raises(DocumentError):
        Trust.from_json(doc)


def test_a_dry_run_that_a_policy_asks_for_excuses_no_difference() -> None:
    rule = compile_manifests(
        {"attestors": [{"entries": [keys(ALICE)]}], "dryRun": {"enable": True}}
    )

    assert rule(moved(key_signed(EXCEPTION, ALICE), "prod"), None, NOW).status is Status.FAIL


@given(
    st.dictionaries(
        st.sampled_from(
            [f"{DOMAIN}/{n}" for n in ("message", "signature", "bundle", "certificate")]
        ),
        st.text(max_size=30) | st.binary(max_size=30).map(packed) | st.none() | st.integers(),
    )
)
def test_no_annotation_makes_the_engine_raise(added: dict[str, Any]) -> None:
    obj = {**OBJECT, "metadata": {"name": "a", "annotations": added}}

    assert judge(obj, keys(ALICE), {"keyless": {}}, count=1).status is not Status.PASS


@pytest.mark.parametrize("metadata", [None, "x", [], {"annotations": []}, {"annotations": "x"}])
def test_odd_metadata_is_refused_without_a_crash(metadata: Any) -> None:
    assert judge({**OBJECT, "metadata": metadata}, keys(ALICE)).status is Status.FAIL
