"""ImageValidatingPolicy: which images, who signed them, what must be verified, what is pinned, and in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.errors import PolicyError
from engine.evaluate import Answer, ImageLookup, Inputs, PolicySet, SignatureLookup, evaluate
from engine.evaluate.lookups import TrustLookup
from engine.images import ImageData, Layer, Referrer
from engine.manifests import Trust
from engine.model import Review, RuleType, Status
from tests.engine.celpolicies.documents import KYVERNO, document, exception, rule
from tests.engine.images.notaries import Notary
from tests.engine.images.test_bundles_and_notary import bundle, statement
from tests.engine.images.test_image_verification import payload_of, signed
from tests.engine.manifests.private_sigstore import (
    ISSUER,
    LATER,
    SIGNED_AT,
    SUBJECT,
    LeafWish,
    PrivateSigstore,
    certificate_pem,
    new_key,
    pem_of,
    sign,
)

DIGEST = "sha256:" + "ab" * 32
APP = f"ghcr.io/acme/app:v1@{DIGEST}"
KEY, OTHER_KEY = new_key(), new_key()
NOTARY = Notary()
SIGSTORE = PrivateSigstore()
NO_LOG = {"insecureIgnoreTlog": True, "insecureIgnoreSCT": True}
VERIFIED = "images.containers.all(i, verifyImageSignatures(i, [attestors.ada]) > 0)"
OFF = {"mutateDigest": False, "verifyDigest": False, "required": False}


def by_key(key: Any = KEY, **more: Any) -> dict[str, Any]:
    return {"name": "ada", "cosign": {"key": {"data": pem_of(key)}, "ctlog": NO_LOG, **more}}


def policy(expression: str = VERIFIED, *, namespace: str = "", **spec: Any) -> Any:
    from engine.parse.celpolicies import parse_cel_policy

    kind = "NamespacedImageValidatingPolicy" if namespace else "ImageValidatingPolicy"
    body = {
        "matchConstraints": {"resourceRules": [rule("pods")]},
        "attestors": [by_key()],
        "validations": [{"expression": expression, "message": "not signed"}],
        **spec,
    }
    place = {"namespace": namespace} if namespace else {}
    return parse_cel_policy(document(KYVERNO, kind, "p", body, **place))


def pod(*images: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": f"c{number}", "image": one} for number, one in enumerate(images)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "o", "namespace": "dev"},
        "spec": {"containers": containers, **spec},
    }


class Registry:
    """What a registry says: `data` of every image, the reference of each question noted."""

    def __init__(self, data: ImageData | None = None, **answers: Any) -> None:
        self.data = data or ImageData(DIGEST)
        self.answers = answers
        self.asked: list[Any] = []

    def answer(self, lookup: Any) -> Answer:
        self.asked.append(lookup)
        if isinstance(lookup, ImageLookup):
            name = lookup.reference.partition("@")[0]
            return self.answers.get("image") or Answer.found(
                {"resolvedImage": f"{name.rpartition(':')[0]}@{DIGEST}", "configData": {"x": 1}}
            )
        if isinstance(lookup, TrustLookup):
            return Answer.found(SIGSTORE.trusted_root)
        return self.answers.get("signatures") or Answer.found(self.data)


def decide(
    given: Any,
    obj: Any,
    registry: Registry | None = None,
    *exceptions: Any,
    types: Any = None,
    operation: str = "CREATE",
    trust: Trust | None = None,
    payload: str = "",
) -> Any:
    listed = given if isinstance(given, list) else [given]
    policies = PolicySet.compile(listed, exceptions)
    assert not policies.problems, policies.problems[0].error
    if types == "requests":
        policies = PolicySet(
            tuple(type(one)(one.policy, one.for_requests) for one in policies.policies)
        )
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    review = Review(
        obj, operation=operation, group=group, version=version, kind=str(obj.get("kind", "")),
        payload=payload,
    )  # fmt: skip
    registry, answers = registry or Registry(), {}
    for _ in range(20):
        found = evaluate(policies, review, Inputs(now=LATER, answers=answers, trust=trust))
        if not found.missing:
            return found
        answers |= {lookup: registry.answer(lookup) for lookup in found.missing}
    raise AssertionError(found.missing)


def only(*given: Any, **more: Any) -> Any:
    (result,) = decide(*given, **more).results
    return result


GOOD = ImageData(DIGEST, (signed(KEY, payload_of(DIGEST)),))


def test_a_signed_image_passes_under_the_policys_name() -> None:
    result = only(policy(), pod(APP), Registry(GOOD))

    assert (result.rule, result.status, result.message) == ("p", Status.PASS, "success")
    assert result.type is RuleType.VALIDATION


@pytest.mark.parametrize(
    "data", [ImageData(DIGEST), ImageData(DIGEST, (signed(OTHER_KEY, payload_of(DIGEST)),))]
)
def test_an_unsigned_image_fails_in_the_validations_words(data: ImageData) -> None:
    result = only(policy(), pod(APP), Registry(data))

    assert (result.rule, result.status, result.message) == ("p", Status.FAIL, "not signed")
    assert result.properties == {"cel.validationIndex": "0"}
    assert result.enforce


def test_the_message_expression_and_the_usual_words_stand_in_for_a_message() -> None:
    def message(**validation: Any) -> str:
        validations = [{"expression": "false", **validation}]
        return str(only(policy(validations=validations), pod(APP)).message)

    assert message() == "CEL expression validation failed at index 0"
    assert message(messageExpression="'no ' + object.metadata.name") == "no o"
    assert message(messageExpression="object.x").startswith(
        "failed to evaluate message expression:"
    )


def test_an_expression_that_errs_is_an_error_of_the_evaluation() -> None:
    result = only(policy("object.spec.missing == 1"), pod(APP))

    assert (result.rule, result.status) == ("evaluation", Status.ERROR)
    assert result.message == "failed to evaluate policy: no such key: missing"


def test_a_registry_without_an_answer_is_an_error_even_where_no_validation_asks() -> None:
    registry = Registry(image=Answer.failed("connection refused"))

    result = only(policy("true"), pod(APP), registry)

    assert (result.rule, result.status) == ("evaluation", Status.ERROR)
    assert "connection refused" in result.message


@pytest.mark.parametrize("image", ["nginx", "ghcr.io/acme/app:v1"])
def test_an_image_without_a_digest_fails_before_any_registry_is_asked(image: str) -> None:
    registry = Registry()

    result = only(policy(), pod(image), registry)

    assert (result.status, result.message) == (Status.FAIL, f"image {image} does not have a digest")
    assert registry.asked == []


def test_what_is_no_reference_is_an_error() -> None:
    assert only(policy(), pod("UPPER CASE")).status is Status.ERROR


@pytest.mark.parametrize(
    ("references", "asked"),
    [
        ([], {APP, f"docker.io/x/y@{DIGEST}"}),
        ([{"glob": "ghcr.io/*"}], {APP}),
        ([{"glob": "*app*"}, {"glob": "none"}], {APP}),
        ([{"expression": "ref.startsWith('docker.io')"}], {f"docker.io/x/y@{DIGEST}"}),
        ([{"glob": "quay.io/*"}], set()),
    ],
)
def test_references_choose_the_images(references: Any, asked: set[str]) -> None:
    registry = Registry()
    given = policy("true", matchImageReferences=references, validationConfigurations=OFF)

    assert only(given, pod(APP, f"docker.io/x/y@{DIGEST}"), registry).status is Status.PASS
    assert {one.reference for one in registry.asked} == asked


def test_an_image_that_the_policy_is_not_about_counts_nothing_and_is_not_asked_for() -> None:
    registry = Registry(GOOD)
    expression = f"verifyImageSignatures('{APP}', [attestors.ada]) == 0"
    given = policy(expression, matchImageReferences=[{"glob": "quay.io/*"}])

    assert only(given, pod(APP), registry).status is Status.PASS
    assert registry.asked == []


def test_every_list_of_containers_is_there_and_holds_matching_images_only() -> None:
    given = policy(
        f"images.containers == ['{APP}'] && images.initContainers == ['{APP}'] && "
        "images.ephemeralContainers == []",
        matchImageReferences=[{"glob": "ghcr.io/*"}],
        validationConfigurations=OFF,
    )
    obj = pod(APP, "quay.io/x/y:1", initContainers=[{"name": "i", "image": APP}])

    assert only(given, obj).status is Status.PASS


def test_extractors_find_images_in_objects_of_any_kind() -> None:
    constraints = {"resourceRules": [rule("widgets", group="acme.io")]}
    extractors = [{"name": "own", "expression": "[object.spec.image]"}]
    given = policy(
        "images.own.all(i, verifyImageSignatures(i, [attestors.ada]) == 1)",
        matchConstraints=constraints, images=extractors,
    )  # fmt: skip
    obj = {
        "apiVersion": "acme.io/v1", "kind": "Widget",
        "metadata": {"name": "o", "namespace": "dev"}, "spec": {"image": APP},
    }  # fmt: skip

    assert only(given, obj, Registry(GOOD)).status is Status.PASS
    assert only(given, obj).status is Status.FAIL


def test_controllers_of_pods_are_judged_by_their_template() -> None:
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "o", "namespace": "dev"},
        "spec": {"template": {"spec": pod(APP)["spec"]}},
    }

    assert only(policy(), obj, Registry(GOOD)).status is Status.PASS
    assert only(policy(), obj).status is Status.FAIL
    none = {"podControllers": {"controllers": []}}
    assert decide(policy(autogen=none), obj).results == []


def test_all_images_are_asked_about_at_once() -> None:
    two = f"ghcr.io/acme/init:v1@{DIGEST}"
    (compiled,) = PolicySet.compile([policy()]).policies
    review = Review(pod(APP, two), version="v1", kind="Pod")

    found = evaluate(PolicySet((compiled,)), review, Inputs(now=LATER))

    assert found.missing == [ImageLookup(APP), ImageLookup(two)]


def test_an_image_whose_verification_was_not_tried_is_not_verified() -> None:
    result = only(policy("true"), pod(APP))

    assert result.status is Status.FAIL
    assert result.message == (
        f"image {APP} is not verified: no policy performed a signature or attestation check on it"
    )


def test_an_image_whose_verification_failed_is_not_verified() -> None:
    expression = "images.containers.all(i, verifyImageSignatures(i, [attestors.ada]) >= 0)"

    result = only(policy(expression), pod(APP))

    assert result.status is Status.FAIL
    assert result.message == f"image {APP} failed signature or attestation verification"


def test_another_policy_of_the_request_may_have_verified_an_image() -> None:
    lazy, busy = policy("true"), policy()

    results = decide([lazy, busy], pod(APP), Registry(GOOD)).results

    assert [one.status for one in results] == [Status.PASS, Status.PASS]


def test_nothing_is_required_where_the_policy_says_so() -> None:
    config = {"validationConfigurations": {"required": False}}

    assert only(policy("true", **config), pod(APP)).status is Status.PASS


def test_several_attestors_are_counted() -> None:
    attestors = [by_key(), {**by_key(OTHER_KEY), "name": "bob"}, {**by_key(), "name": "again"}]
    expression = "verifyImageSignatures(images.containers[0], [attestors.ada, attestors.bob, attestors.again]) == 2"

    assert (
        only(policy(expression, attestors=attestors), pod(APP), Registry(GOOD)).status
        is Status.PASS
    )


@pytest.mark.parametrize(
    "expression",
    [
        "verifyImageSignatures(images.containers[0], [attestors.nobody]) > 0",
        "verifyImageSignatures(images.containers[0], ['ada']) > 0",
        "verifyImageSignatures(images.containers[0], [{'name': 'eve', 'cosign': ''}]) > 0",
        "verifyAttestationSignatures(images.containers[0], {'name': 'x'}, [attestors.ada]) > 0",
    ],
)
def test_who_is_not_in_the_policy_cannot_be_asked(expression: str) -> None:
    assert only(policy(expression), pod(APP), Registry(GOOD)).status is Status.ERROR


def test_an_attestor_that_is_broken_vouches_for_nothing_and_hinders_no_other() -> None:
    broken = {"name": "bob", "cosign": {"key": {"data": "no key"}, "ctlog": NO_LOG}}
    expression = "verifyImageSignatures(images.containers[0], [attestors.bob, attestors.ada]) == 1"
    given = policy(expression, attestors=[by_key(), broken])

    assert only(given, pod(APP), Registry(GOOD)).status is Status.PASS


@pytest.mark.parametrize(
    ("log", "status"),
    [
        (NO_LOG, Status.PASS),
        ({}, Status.FAIL),
        ({"url": "https://rekor.sigstore.dev"}, Status.FAIL),
        ({"insecureIgnoreSCT": True}, Status.FAIL),
    ],
)
def test_a_key_signature_needs_a_log_entry_unless_the_log_is_ignored(
    log: Any, status: Status
) -> None:
    given = policy(attestors=[by_key(ctlog=log) if log else
                              {"name": "ada", "cosign": {"key": {"data": pem_of(KEY)}}}])  # fmt: skip

    assert only(given, pod(APP), Registry(GOOD)).status is status


def test_a_key_may_be_an_expression_on_the_object() -> None:
    cosign = {"key": {"expression": "object.metadata.annotations.key"}, "ctlog": NO_LOG}
    given, obj = policy(attestors=[{"name": "ada", "cosign": cosign}]), pod(APP)
    obj["metadata"]["annotations"] = {"key": pem_of(KEY)}
    registry = Registry(GOOD)

    assert only(given, obj, registry).status is Status.PASS
    assert [one.confirmation for one in registry.asked if isinstance(one, SignatureLookup)] == [""]


def test_annotations_must_stand_in_what_was_signed() -> None:
    given = policy(attestors=[by_key(annotations={"env": "prod"})])
    good = ImageData(DIGEST, (signed(KEY, payload_of(DIGEST, env="prod")),))

    assert only(given, pod(APP), Registry(good)).status is Status.PASS
    assert only(given, pod(APP), Registry(GOOD)).status is Status.FAIL


def keyless_data(**wish: Any) -> ImageData:
    payload = payload_of(DIGEST)
    key = new_key()
    leaf = certificate_pem(SIGSTORE.issue(key.public_key(), LeafWish(**wish)))
    signature = sign(key, payload)
    log = SIGSTORE.record(SIGSTORE.log_body(payload, signature, leaf), SIGNED_AT)
    layer = Layer(payload, signature, leaf.encode(), b"", json.dumps(log).encode())
    return ImageData(DIGEST, (layer,))


def keyless(*identities: Any, **more: Any) -> Any:
    return policy(
        attestors=[{"name": "ada", "cosign": {"keyless": {"identities": list(identities)}, **more}}]
    )


@pytest.mark.parametrize(
    ("identity", "status"),
    [
        ({"subject": SUBJECT, "issuer": ISSUER}, Status.PASS),
        ({"subjectRegExp": "^https://github.com/myorg/.*", "issuer": ISSUER}, Status.PASS),
        ({"subject": SUBJECT, "issuerRegExp": "githubusercontent"}, Status.PASS),
        ({"subject": "https://github.com/*", "issuer": ISSUER}, Status.FAIL),
        ({"subject": SUBJECT[:-1], "issuer": ISSUER}, Status.FAIL),
        ({"subject": SUBJECT, "issuer": "https://other"}, Status.FAIL),
    ],
)
def test_a_keyless_signer_is_exactly_who_is_named(identity: Any, status: Status) -> None:
    trust = Trust.from_json(SIGSTORE.trusted_root)

    assert only(keyless(identity), pod(APP), Registry(keyless_data()), trust=trust).status is status
    other = {"subject": "nobody", "issuer": "nowhere"}
    both = keyless(other, identity)
    assert only(both, pod(APP), Registry(keyless_data()), trust=trust).status is status


def test_a_policy_may_bring_its_trusted_root_or_the_repository_that_holds_it() -> None:
    wanted = {"subject": SUBJECT, "issuer": ISSUER}
    root = {"trustedRoot": {"value": json.dumps(SIGSTORE.trusted_root)}}
    mirror = {"tuf": {"mirror": "https://tuf.acme.io", "root": {"data": "{}"}}}
    stranger = {"trustedRoot": {"value": json.dumps(PrivateSigstore().trusted_root)}}

    for more, status in ((root, "pass"), (mirror, "pass"), (stranger, "fail"), ({}, "fail")):
        given = keyless(wanted, **more)
        assert only(given, pod(APP), Registry(keyless_data())).status == status, more


def test_a_certificate_signs_with_its_key() -> None:
    notary = Notary(self_signed=True)
    payload = payload_of(DIGEST)
    data = ImageData(DIGEST, (Layer(payload, sign(notary.key, payload)),))
    cosign = {"certificate": {"cert": {"value": notary.root_pem}}, "ctlog": NO_LOG}
    given = policy(attestors=[{"name": "ada", "cosign": cosign}])

    assert only(given, pod(APP), Registry(data)).status is Status.PASS
    assert only(given, pod(APP), Registry(GOOD)).status is Status.FAIL


def notary(pem: str = NOTARY.root_pem) -> dict[str, Any]:
    return {"name": "ada", "notary": {"certs": {"value": pem}}}


def test_a_notary_signs_by_its_certificates() -> None:
    data = ImageData(DIGEST, notations=(NOTARY.sign(DIGEST),))

    assert only(policy(attestors=[notary()]), pod(APP), Registry(data)).status is Status.PASS
    stranger = notary(Notary().root_pem)
    assert only(policy(attestors=[stranger]), pod(APP), Registry(data)).status is Status.FAIL


SLSA = "https://slsa.dev/provenance/v1"
STATED = "verifyAttestationSignatures(images.containers[0], attestations.it, [attestors.ada])"


def attested(
    *validations: str, kind: str = "intoto", attestor: Any = None, type_: str = SLSA
) -> Any:
    return policy(
        attestors=[attestor or by_key()],
        attestations=[{"name": "it", kind: {"type": type_}}],
        validations=[{"expression": text, "message": text} for text in validations],
    )


@pytest.mark.parametrize(
    ("layer", "status"),
    [
        (bundle(KEY, statement(SLSA, DIGEST)), Status.PASS),
        (bundle(KEY, statement("https://other", DIGEST)), Status.FAIL),
        (bundle(OTHER_KEY, statement(SLSA, DIGEST)), Status.FAIL),
        (bundle(KEY, statement(SLSA, "sha256:" + "cd" * 32)), Status.FAIL),
    ],
)
def test_a_statement_is_of_its_type_about_the_image_and_signed(
    layer: Layer, status: Status
) -> None:
    registry = Registry(ImageData(DIGEST, attestations=(layer,)))

    assert only(attested(f"{STATED} == 1"), pod(APP), registry).status is status


def test_the_payload_of_a_statement_is_its_predicate_once_it_is_verified() -> None:
    registry = Registry(ImageData(DIGEST, attestations=(bundle(KEY, statement(SLSA, DIGEST)),)))
    level = "extractPayload(images.containers[0], attestations.it).level == 3"

    assert only(attested(f"{STATED} == 1", level), pod(APP), registry).status is Status.PASS
    early = only(attested(level), pod(APP), registry)
    assert early.status is Status.ERROR
    assert "failed to get payload" in early.message


SBOM = "application/vnd.cyclonedx+json"


def test_a_notary_signs_artifacts_beside_the_image() -> None:
    own = "sha256:" + "cd" * 32
    good = Referrer(own, SBOM, b'{"bomFormat": "CycloneDX"}', (NOTARY.sign(own),))
    bad = Referrer(own, SBOM, b'{"bomFormat": "CycloneDX"}', (Notary().sign(own),))
    read = "extractPayload(images.containers[0], attestations.it).bomFormat == 'CycloneDX'"
    given = attested(f"{STATED} == 1", read, kind="referrer", attestor=notary(), type_=SBOM)

    for one, status in ((good, Status.PASS), (bad, Status.FAIL)):
        registry = Registry(ImageData(DIGEST, referrers=(one,)))
        assert only(given, pod(APP), registry).status is status
        assert registry.asked[-1].artifacts == (SBOM,)


def test_neither_kind_of_attestor_signs_what_is_the_others() -> None:
    data = ImageData(
        DIGEST,
        attestations=(bundle(KEY, statement(SLSA, DIGEST)),),
        referrers=(Referrer(DIGEST, SLSA, b"{}", (NOTARY.sign(DIGEST),)),),
    )

    for kind, attestor in (("intoto", notary()), ("referrer", by_key())):
        given = attested(f"{STATED} == 0", kind=kind, attestor=attestor)
        result = only(given, pod(APP), Registry(data))
        assert result.message == f"image {APP} failed signature or attestation verification"


def test_image_data_is_what_the_registry_says() -> None:
    expression = "getImageData(images.containers[0]).config.x == 1 && getImageData(images.containers[0]).digest == image(images.containers[0]).digest()"

    assert only(policy(expression, validationConfigurations=OFF), pod(APP)).status is Status.PASS


def test_credentials_go_with_every_question_and_those_of_a_source_too() -> None:
    credentials = {"secrets": ["regcred"], "allowInsecureRegistry": True, "providers": ["google"]}
    source = {"repository": "ghcr.io/acme/sigs", "tagPrefix": "v1-", "PullSecrets": [{"name": "s"}]}
    given = policy(credentials=credentials, attestors=[by_key(source=source)])
    registry = Registry(GOOD)
    decide(given, pod(APP), registry)

    image, signatures = registry.asked
    assert image == ImageLookup(APP, ("regcred",), True)
    assert signatures.secrets == ("s", "regcred")
    assert (signatures.repository, signatures.tag_prefix) == ("ghcr.io/acme/sigs", "v1-")
    assert signatures.reference == f"ghcr.io/acme/app@{DIGEST}"


def test_a_namespaced_policy_uses_secrets_of_its_namespace_and_concerns_what_is_there() -> None:
    given = policy(namespace="dev", credentials={"secrets": ["regcred"]})
    registry = Registry(GOOD)

    assert only(given, pod(APP), registry).status is Status.PASS
    assert {one.secrets for one in registry.asked} == {("dev/regcred",)}
    foreign = policy(namespace="dev", credentials={"secrets": ["kyverno/regcred"]})
    assert only(foreign, pod(APP), registry).status is Status.ERROR
    assert decide(policy(namespace="other"), pod(APP), registry).results == []


def test_match_conditions_leave_out_and_their_errors_are_told_unless_ignored() -> None:
    def conditions(text: str) -> list[dict[str, str]]:
        return [{"name": "c", "expression": text}]

    out = policy(matchConditions=conditions("object.metadata.name == 'x'"))
    broken = policy(matchConditions=conditions("object.x == 1"))
    ignored = policy(matchConditions=conditions("object.x == 1"), failurePolicy="Ignore")

    assert decide(out, pod(APP)).results == []
    assert decide(ignored, pod(APP)).results == []
    result = only(broken, pod(APP))
    assert (result.rule, result.status) == ("match", Status.ERROR)
    assert result.message.startswith("failed to execute matching: ")


def waiver(**spec: Any) -> Any:
    return exception(policyRefs=[{"name": "p", "kind": "ImageValidatingPolicy"}], **spec)


def test_an_exception_skips_after_the_conditions_whatever_it_wants_reported() -> None:
    result = only(policy(), pod(APP), None, waiver(reportResult="pass"))

    assert (result.rule, result.status) == ("exception", Status.SKIP)
    assert result.message == "rule is skipped due to policy exception: ops/e"
    assert result.exceptions == ("ops/e",)
    with_values = only(policy(), pod(APP), None, waiver(allowedValues=["x"]))
    assert with_values.status is Status.SKIP


def test_an_exception_for_images_exempts_those_and_no_others() -> None:
    old = f"ghcr.io/acme/old:v1@{DIGEST}"
    images = waiver(images=["ghcr.io/acme/old:*"])

    assert only(policy(), pod(old), None, images).status is Status.SKIP
    both = only(policy(), pod(old, APP), None, images)
    assert (both.status, both.message) == (Status.FAIL, "not signed")
    assert only(policy(), pod(old, APP), Registry(GOOD), images).status is Status.PASS


def test_variables_are_read_by_validations() -> None:
    variables = [{"name": "n", "expression": "images.containers.size()"}]
    given = policy("variables.n == 1", variables=variables, validationConfigurations=OFF)

    assert only(given, pod(APP)).status is Status.PASS


def test_documents_are_judged_by_their_extractors() -> None:
    given = policy(
        "images.own.all(i, verifyImageSignatures(i, [attestors.ada]) > 0)",
        evaluation={"mode": "JSON"},
        images=[{"name": "own", "expression": "[object.image]"}],
    )

    assert only(given, {"image": APP}, Registry(GOOD), payload="JSON").status is Status.PASS
    assert only(given, {"image": APP}, payload="JSON").status is Status.FAIL


@pytest.mark.parametrize(
    "spec",
    [
        {"attestors": [{"name": "a"}]},
        {"attestors": [{"name": "a", "cosign": {}, "notary": {}}]},
        {"attestors": [{"name": "a", "cosign": {}}]},
        {"attestors": [{"name": "a", "cosign": {"keyless": {"identities": []}}}]},
        {"attestations": [{"name": "a"}]},
        {"matchImageReferences": [{"glob": "a", "expression": "true"}]},
        {"validations": [{"expression": "nothing.there"}]},
        {"images": [{"name": "a", "expression": "1 +"}]},
    ],
    ids=str,
)
def test_policies_that_cannot_work_are_refused(spec: Any) -> None:
    try:
        given = policy(**spec)
    except PolicyError:
        return
    assert PolicySet.compile([given]).problems


def pinned(given: Any, obj: Any, registry: Registry | None = None, *exceptions: Any) -> Any:
    return decide(given, obj, registry, *exceptions, types="requests")


def images_of(found: Any) -> list[str]:
    return [one["image"] for one in found.patched["spec"]["containers"]]


def test_tags_are_pinned_by_full_name_and_digests_stay() -> None:
    found = pinned(policy(), pod("nginx", "ghcr.io/acme/app:v1", APP))

    assert images_of(found) == [
        f"index.docker.io/library/nginx:latest@{DIGEST}",
        f"ghcr.io/acme/app:v1@{DIGEST}",
        APP,
    ]


@pytest.mark.parametrize(
    ("spec", "waivers"),
    [
        ({"validationConfigurations": {"mutateDigest": False}}, ()),
        ({"matchImageReferences": [{"glob": "quay.io/*"}]}, ()),
        ({"matchConditions": [{"name": "c", "expression": "false"}]}, ()),
        ({"matchConditions": [{"name": "c", "expression": "object.x"}]}, ()),
        ({}, (waiver(),)),
        ({}, (waiver(images=["ghcr.io/*"]),)),
    ],
    ids=str,
)
def test_what_the_policy_is_not_about_is_not_pinned(spec: Any, waivers: Any) -> None:
    obj = pod("ghcr.io/acme/app:v1")

    assert pinned(policy(**spec), obj, None, *waivers).patched == obj


def test_an_image_without_an_answer_is_an_error_and_the_others_are_pinned() -> None:
    class Half(Registry):
        def answer(self, lookup: Any) -> Answer:
            if "gone" in lookup.reference:
                return Answer.failed("not found")
            return super().answer(lookup)

    found = pinned(policy(), pod("ghcr.io/acme/gone:v1", "ghcr.io/acme/app:v1"), Half())

    assert images_of(found) == ["ghcr.io/acme/gone:v1", f"ghcr.io/acme/app:v1@{DIGEST}"]
    (error,) = [one for one in found.results if one.status is Status.ERROR]
    assert error.rule == "mutateDigest"
    assert error.message == (
        "failed to update digest: failed to resolve digest for image ghcr.io/acme/gone:v1: not found"
    )


def test_objects_as_they_are_stay_as_they_are() -> None:
    obj = pod("ghcr.io/acme/app:v1")

    assert decide(policy(), obj).patched == obj


def test_a_pass_of_the_same_attestor_is_remembered_by_digest() -> None:
    registry = Registry(ImageData(DIGEST, is_confirmed=True))
    result = only(policy(), pod(APP), registry)
    (lookup,) = [one for one in registry.asked if isinstance(one, SignatureLookup)]
    confirmed = [(one.confirmation, one.digest) for one in result.images if one.confirmation]

    assert confirmed == [(lookup.confirmation, DIGEST)]
    other = Registry()
    decide(policy(attestors=[by_key(OTHER_KEY)]), pod(APP), other)
    assert other.asked[-1].confirmation != lookup.confirmation


def test_an_annotation_of_outcomes_changes_nothing() -> None:
    obj = pod(APP)
    outcome = json.dumps({APP: "pass"})
    obj["metadata"]["annotations"] = {
        "kyverno.io/image-verification-outcomes": outcome,
        "kyverno.io/verify-images": outcome,
    }

    assert only(policy(), obj).status is Status.FAIL
