"""ImageValidatingPolicies in the webhook: digests written, verdicts, words, evidence that policies share, forged outcomes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from controllers.kube import Discovery
from controllers.kube.kinds import PODS
from controllers.runtime.configuration import read_configuration
from controllers.runtime.policy_cache import PolicyCache
from controllers.webhook.address import Address
from controllers.webhook.author_needs import needs_of_author
from controllers.webhook.configurations import configurations
from engine.evaluate import Answer, ImageLookup, SignatureLookup
from engine.images import ImageData
from engine.parse.celpolicies import parse_cel_policy
from tests.controllers.kube.fake import WELL_KNOWN, FakeClient
from tests.engine.images.test_image_verification import payload_of, signed
from tests.engine.manifests.private_sigstore import new_key, pem_of

from .staging import DEPLOYMENTS, body, patch_of, pod, policy, staged
from .test_cel_policies import RULE

DIGEST = "sha256:" + "ab" * 32
TAG = "ghcr.io/acme/app:v1"
PINNED = f"{TAG}@{DIGEST}"
KEY = new_key()
VERIFIED = "images.containers.all(i, verifyImageSignatures(i, [attestors.ada]) > 0)"
LANE = "fail/ivpol"
SIGNED = ImageData(DIGEST, (signed(KEY, payload_of(DIGEST)),))


def ivpol(name: str = "signed", expression: str = VERIFIED, namespace: str = "", **spec: Any) -> dict[str, Any]:  # fmt: skip
    cosign = {"key": {"data": pem_of(KEY)}, "ctlog": {"insecureIgnoreTlog": True}}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "NamespacedImageValidatingPolicy" if namespace else "ImageValidatingPolicy",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {
            "matchConstraints": {"resourceRules": [RULE]},
            "attestors": [{"name": "ada", "cosign": cosign}],
            "validations": [{"expression": expression, "message": "not signed"}],
            **spec,
        },
    }


def running(image: str) -> dict[str, Any]:
    obj = pod()
    obj["spec"]["containers"][0]["image"] = image
    return obj


class Registry:
    """Answers of a registry with one image."""

    def __init__(self, data: ImageData | None) -> None:
        self.data = data
        self.asked: list[Any] = []

    async def __call__(self, lookups: Any, _tenant: str) -> dict[Any, Answer]:
        self.asked += lookups
        return {one: self._answer(one) for one in lookups}

    def _answer(self, lookup: Any) -> Answer:
        if self.data is None:
            return Answer.failed("connection refused")
        if isinstance(lookup, ImageLookup):
            name = lookup.reference.partition("@")[0].rpartition(":")[0]
            return Answer.found({"resolvedImage": f"{name}@{DIGEST}"})
        assert isinstance(lookup, SignatureLookup)
        return Answer.found(self.data)


def answer(
    stage_name: str, *objects: dict[str, Any], image: str = PINNED, data: ImageData | None = SIGNED,
    route: str = LANE, obj: dict[str, Any] | None = None, **fields: Any,
) -> dict[str, Any]:  # fmt: skip
    async def go() -> dict[str, Any]:
        async with staged(*objects) as stage:
            stage.resolver.resolve = Registry(data)
            response = await stage.ask(stage_name, body(obj or running(image), **fields), route)
            await stage.background_queue.finish()
            response["said"] = [one for _, found, _ in stage.sink.results_ for one in found]
            return response

    return asyncio.run(go())


def test_a_tag_is_pinned_without_a_word_and_a_digest_stays() -> None:
    response = answer("mutate", ivpol(), image=TAG)

    assert patch_of(response) == [
        {"op": "replace", "path": "/spec/containers/0/image", "value": PINNED}
    ]
    assert response["said"] == []
    assert "patch" not in answer("mutate", ivpol())


def test_nothing_is_pinned_where_the_policy_does_not_want_it() -> None:
    off = {"mutateDigest": False}

    assert "patch" not in answer("mutate", ivpol(validationConfigurations=off), image=TAG)


def test_a_digest_that_cannot_be_had_denies_where_the_policy_denies() -> None:
    for spec in ({}, {"failurePolicy": "Ignore"}):
        route = "ignore/ivpol" if spec else LANE
        denied = answer("mutate", ivpol(**spec), image=TAG, data=None, route=route)
        assert denied["status"]["message"] == (
            "Policy signed error: failed to update digest: failed to resolve digest for image "
            f"{TAG}: connection refused"
        )

    audit = answer("mutate", ivpol(validationActions=["Audit"]), image=TAG, data=None)
    assert audit["allowed"] is True
    assert [(one.rule, one.status) for one in audit["said"]] == [("mutateDigest", "error")]


def test_a_pinned_and_signed_image_is_admitted_an_unsigned_one_denied() -> None:
    assert answer("validate", ivpol())["allowed"] is True
    denied = answer("validate", ivpol(), data=ImageData(DIGEST))
    assert denied["status"]["message"] == "Policy signed failed: not signed"


def test_a_tag_that_reaches_the_verdict_is_denied() -> None:
    denied = answer("validate", ivpol(), image=TAG)

    assert (
        denied["status"]["message"] == f"Policy signed failed: image {TAG} does not have a digest"
    )


def test_audit_admits_and_reports_warn_admits_with_the_words() -> None:
    unsigned = ImageData(DIGEST)
    audit = answer("validate", ivpol(validationActions=["Audit"]), data=unsigned)
    warn = answer("validate", ivpol(validationActions=["Warn"]), data=unsigned)

    assert audit["allowed"] is True
    assert [(one.policy, one.rule, one.status) for one in audit["said"]] == [
        ("signed", "signed", "fail")
    ]
    assert (warn["allowed"], warn["warnings"]) == (True, ["Policy signed failed: not signed"])


def test_what_an_audited_policy_verified_counts_for_one_that_denies() -> None:
    lazy, busy = ivpol("lazy", "true"), ivpol("busy", validationActions=["Audit"])

    assert answer("validate", lazy, busy)["allowed"] is True
    alone = answer("validate", lazy)
    assert "no policy performed a signature or attestation check" in alone["status"]["message"]


def test_a_registry_that_is_away_denies() -> None:
    denied = answer("validate", ivpol(), data=None)

    assert denied["status"]["message"] == (
        f"Policy signed error: failed to evaluate policy: image `{PINNED}`: connection refused"
    )


def test_an_outcome_that_the_submitter_wrote_is_worth_nothing() -> None:
    forged = json.dumps({PINNED: "pass", "signed": {"status": "pass"}})
    obj = running(PINNED)
    obj["metadata"]["annotations"] = {
        "kyverno.io/image-verification-outcomes": forged,
        "kyverno.io/verify-images": forged,
    }

    assert answer("validate", ivpol(), obj=obj, data=ImageData(DIGEST))["allowed"] is False


def verifying(**entry: Any) -> dict[str, Any]:
    keys = {"publicKeys": pem_of(KEY), "rekor": {"ignoreTlog": True}}
    made = policy(name="classic")
    made["spec"]["rules"] = [
        {
            "name": "r",
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
            "verifyImages": [
                {"imageReferences": ["*"], "attestors": [{"entries": [{"keys": keys}]}], **entry}
            ],
        }
    ]
    return made


def test_a_classic_rule_writes_its_outcome_over_a_forged_one_and_verifies_again() -> None:
    obj = running(TAG)
    obj["metadata"]["annotations"] = {"kyverno.io/verify-images": '{"evil":"pass"}'}

    mutated = patch_of(answer("mutate", verifying(), obj=obj, route="fail"))
    written = next(one for one in mutated if "annotations" in one["path"])["value"]
    assert "evil" not in str(written)
    assert f"ghcr.io/acme/app@{DIGEST}" in str(written)

    again = answer("validate", verifying(), obj=obj, route="fail", data=ImageData(DIGEST))
    assert again["allowed"] is False


def test_a_classic_rule_asks_for_the_digest_that_nobody_writes() -> None:
    strict = answer("validate", verifying(mutateDigest=False), image=TAG, route="fail")
    lenient = verifying(mutateDigest=False, verifyDigest=False)

    assert f"missing digest for {TAG}" in strict["status"]["message"]
    assert answer("validate", lenient, image=TAG, route="fail")["allowed"] is True


def webhooks(*policies: dict[str, Any]) -> dict[str, Any]:
    cache = PolicyCache()
    for one in policies:
        cache.put_policy(one)
    assert not cache.snapshot.problems
    discovery = Discovery(FakeClient(), (*WELL_KNOWN, PODS, DEPLOYMENTS))
    documents = configurations(
        cache.snapshot.routes, discovery, read_configuration(None), Address(b"CA")
    )
    return {one["name"]: one for document in documents for one in document["webhooks"]}


def test_both_webhooks_are_there_with_the_policys_time_and_pinning_only_where_it_is_wanted() -> (
    None
):
    both = webhooks(ivpol(webhookConfiguration={"timeoutSeconds": 20}))
    one = webhooks(ivpol(validationConfigurations={"mutateDigest": False}))

    own = ivpol()["metadata"]["name"]
    stages = ("mutate", "validate")
    names = {stage: f"ivpol.{stage}.kyverno.svc-fail-finegrained-{own}" for stage in stages}
    assert set(names.values()) <= set(both)
    assert {both[name]["timeoutSeconds"] for name in names.values()} == {20}
    for stage, name in names.items():
        assert both[name]["clientConfig"]["service"]["path"] == f"/ivpol/{stage}/{own}"
    assert {name for name in one if name.startswith("ivpol.")} == {
        "ivpol.validate.kyverno.svc-fail"
    }
    assert "pods" in {rule["resources"][0] for rule in both[names["mutate"]]["rules"]}


def test_who_has_digests_written_must_be_allowed_to_write_what_they_are_written_to() -> None:
    def verbs(**spec: Any) -> set[tuple[str, str]]:
        discovery = Discovery(FakeClient(), (*WELL_KNOWN, PODS, DEPLOYMENTS))
        needs = needs_of_author(parse_cel_policy(ivpol(**spec)), discovery)
        return {(one.request.verb, one.request.resource) for one in needs}

    assert verbs() >= {("create", "pods"), ("update", "pods"), ("update", "deployments")}
    assert verbs(validationConfigurations={"mutateDigest": False}) == set()
