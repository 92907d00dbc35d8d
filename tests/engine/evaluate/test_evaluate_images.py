"""Rules that verify images: which are asked about, and what a missing or unsigned one means."""

from __future__ import annotations

from base64 import b64encode

import pytest

from engine.evaluate import Answer, ObjectLookup, SignatureLookup
from engine.images import ImageData
from engine.model import Status
from tests.engine.evaluate.builders import decide, policy
from tests.engine.images.test_image_verification import payload_of, signed
from tests.engine.manifests.private_sigstore import new_key, pem_of

DIGEST = "sha256:" + "b" * 64


def _pod(image="ghcr.io/org/app:1"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "dev"},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def _rule(**entry):
    keys = {"entries": [{"keys": {"publicKeys": KEY, "rekor": {"ignoreTlog": True}}}]}
    return policy(
        {
            "name": "r",
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
            "verifyImages": [
                {
                    "imageReferences": ["ghcr.io/org/*"],
                    "attestors": [keys],
                    "useCache": False,
                    **entry,
                }
            ],
        }
    )


def _public_key() -> str:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


KEY = _public_key()
LOOKUP = SignatureLookup("ghcr.io/org/app:1")


def test_the_registry_is_asked_about_selected_images_only() -> None:
    assert decide(_rule(), _pod()).missing == [LOOKUP]

    other = decide(_rule(), _pod("docker.io/library/nginx:1"))
    assert other.missing == []
    assert other.results[0].status is Status.SKIP


@pytest.mark.parametrize(
    "keys", [{"publicKeys": "k8s://ops/cosign"}, {"secret": {"namespace": "ops", "name": "cosign"}}]
)
def test_a_public_key_may_be_kept_in_a_secret(keys) -> None:
    keys |= {"rekor": {"ignoreTlog": True}}
    rule = _rule(attestors=[{"entries": [{"keys": keys}]}], mutateDigest=False, verifyDigest=False)
    secret = ObjectLookup("v1", "Secret", "ops", "cosign")
    private = new_key()
    data = ImageData(DIGEST, (signed(private, payload_of(DIGEST)),))
    image = {LOOKUP: Answer.found(data)}

    def said(pem: str | None) -> tuple[Status, str]:
        kept = {} if pem is None else {"cosign.pub": b64encode(pem.encode()).decode()}
        answers = {**image, secret: Answer.found({"data": kept})}
        (result,) = decide(rule, _pod(), answers=answers).results
        return result.status, result.message

    assert decide(rule, _pod(), answers=image).missing == [secret]
    assert said(pem_of(private))[0] is Status.PASS
    assert said(KEY)[0] is Status.FAIL
    assert "secret `ops/cosign` has no key `cosign.pub`" in said(None)[1]
    (result,) = decide(rule, _pod(), answers={**image, secret: Answer.absent()}).results
    assert "secret `ops/cosign` is not known" in result.message


def test_images_that_are_skipped_are_not_asked_about() -> None:
    assert decide(_rule(skipImageReferences=["*app*"]), _pod()).missing == []


def test_an_unsigned_image_fails() -> None:
    answers = {LOOKUP: Answer.found(ImageData(digest=DIGEST))}

    (result,) = decide(_rule(), _pod(), answers=answers).results

    assert result.status is Status.FAIL
    assert "ghcr.io/org/app:1" in result.message


def test_a_registry_that_cannot_be_asked_is_an_error_not_a_failure() -> None:
    for answer in (Answer.failed("connection refused"), Answer.absent()):
        (result,) = decide(_rule(), _pod(), answers={LOOKUP: answer}).results

        assert result.status is Status.ERROR


def test_nothing_is_pinned_when_verification_fails() -> None:
    answers = {LOOKUP: Answer.found(ImageData(digest=DIGEST))}

    assert decide(_rule(), _pod(), answers=answers).patched == _pod()


def _confirmed(lookup):
    return Answer.found(ImageData(digest=DIGEST, is_confirmed=True))


def test_all_images_are_asked_about_at_once_and_all_are_pinned() -> None:
    pod = _pod()
    pod["spec"]["initContainers"] = [{"name": "i", "image": "ghcr.io/org/init:2"}]
    missing = decide(_rule(), pod).missing

    found = decide(_rule(), pod, answers={one: _confirmed(one) for one in missing})

    assert {one.reference for one in missing} == {"ghcr.io/org/app:1", "ghcr.io/org/init:2"}
    assert found.patched["spec"]["containers"][0]["image"] == f"ghcr.io/org/app:1@{DIGEST}"
    assert found.patched["spec"]["initContainers"][0]["image"] == f"ghcr.io/org/init:2@{DIGEST}"


def _asked(**entry):
    (lookup,) = decide(_rule(useCache=True, **entry), _pod()).missing
    return lookup


def test_a_pass_is_remembered_under_everything_that_the_entry_says() -> None:
    first, again, changed = _asked(), _asked(), _asked(required=False)

    assert first.confirmation
    assert first == again
    assert first.confirmation != changed.confirmation

    (result,) = decide(_rule(useCache=True), _pod(), answers={first: _confirmed(first)}).results
    assert (result.status, result.message) == (Status.PASS, "verified from cache")
    (finding,) = result.images
    assert (finding.confirmation, finding.digest) == (first.confirmation, DIGEST)


def test_what_failed_is_not_remembered() -> None:
    lookup = _asked()
    answers = {lookup: Answer.found(ImageData(digest=DIGEST))}

    (result,) = decide(_rule(useCache=True), _pod(), answers=answers).results

    assert result.status is Status.FAIL
    assert [one.confirmation for one in result.images] == [""]


def test_what_depends_on_the_object_or_must_not_be_cached_has_nothing_to_remember_it_by() -> None:
    conditions = [{"all": [{"key": "{{ x }}", "operator": "Equals", "value": 1}]}]

    assert _asked(attestations=[{"type": "t", "conditions": conditions}]).confirmation == ""
    assert decide(_rule(), _pod()).missing[0].confirmation == ""
