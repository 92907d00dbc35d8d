"""Policies on images against a real registry: signed, bundled, notarized, attested, and everything that is none of it.

Every image and signature is made here and pushed before the cluster is asked. What kubectl is told is compared with the words of the
policies, and what is stored with the digests of the registry.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric import ec

from tests.engine.images.notaries import FORMS, Notary
from tests.engine.manifests.private_sigstore import pem_of

from . import engine
from .scenario import ScenarioError
from .server.registry import Registry, registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from .tiers import Tier

_SBOM = "application/vnd.cyclonedx+json"
_SLSA = "https://slsa.dev/provenance/v1"
_NO_LOG = {"insecureIgnoreTlog": True, "insecureIgnoreSCT": True}
_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
_VERIFIED = "images.containers.all(i, verifyImageSignatures(i, [attestors.ada]) > 0)"
_STATED = (
    "images.containers.all(i, verifyAttestationSignatures(i, attestations.it, [attestors.ada]) > 0)"
)
_READY = 30.0


@dataclass(frozen=True)
class Signers:
    """Who signs what is good, and somebody else."""

    ada: ec.EllipticCurvePrivateKey
    eve: ec.EllipticCurvePrivateKey
    notary: Notary
    stranger: Notary


def run(tier: Tier, say: Callable[[str], None]) -> None:
    """Play everything on a server that has what is shipped installed; raises ScenarioError when something is not as it must be."""
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    keys = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    signers = Signers(*keys, Notary(start=now), Notary(start=now))
    with ExitStack() as stack:
        began = time.monotonic()
        there = stack.enter_context(registry(tier.folder))
        pushed = _pushed(there, signers)
        say(f"{time.monotonic() - began:6.1f} s  a registry with {len(pushed)} images")
        stack.enter_context(engine.engine(tier, "--egress-network=127.0.0.0/8"))
        policies = list(_policies(there, signers))
        tier.kubectl("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": policies}))  # fmt: skip
        player = _Player(tier, there, pushed, say)
        player.waits_until_denied("lazy", "good")
        for step in _STEPS:
            player.plays(*step)
        player.forgets_nothing(signers)


def _pushed(there: Registry, signers: Signers) -> dict[tuple[str, str], str]:
    """Push all images with what belongs beside them; return their digests by repository and tag."""
    found: dict[tuple[str, str], str] = {}

    def image(repository: str, tag: str) -> str:
        made = there.image(repository, tag, Env=[f"WHAT={repository}:{tag}"])
        found[repository, tag] = made
        return made

    for repository in ("cosign", "audit", "classic-key"):
        image(repository, "bare")
        there.sign(repository, image(repository, "good"), signers.ada)
        there.sign(repository, image(repository, "other"), signers.eve)
        there.sign(
            repository, image(repository, "copied"), signers.ada, about=found[repository, "good"]
        )
    for repository in ("bundle", "classic-bundle"):
        image(repository, "bare")
        there.bundle(repository, image(repository, "good"), signers.ada)
        there.bundle(repository, image(repository, "other"), signers.eve)
    for repository in ("notary", "classic-notary"):
        image(repository, "bare")
        for form, tag in zip(FORMS, ("good", "cose"), strict=True):
            there.notarize(repository, image(repository, tag), signers.notary, form=form)
        there.notarize(repository, image(repository, "other"), signers.stranger)
    image("slsa", "bare")
    there.bundle("slsa", image("slsa", "good"), signers.ada, _SLSA, {"level": 3})
    there.bundle("slsa", image("slsa", "low"), signers.ada, _SLSA, {"level": 1})
    there.bundle("slsa", image("slsa", "other"), signers.eve, _SLSA, {"level": 3})
    for tag, signer in (("good", signers.notary), ("other", signers.stranger)):
        digest = image("sbom", tag)
        made = there.artifact("sbom", digest, _SBOM, {"bomFormat": "CycloneDX"})
        there.notarize("sbom", made, signer)
    image("lazy", "good")
    return found


def _policies(there: Registry, signers: Signers) -> Any:
    cosign = {"name": "ada", "cosign": {"key": {"data": pem_of(signers.ada)}, "ctlog": _NO_LOG}}
    notary = {"name": "ada", "notary": {"certs": {"value": signers.notary.root_pem}}}
    slsa = {"name": "it", "intoto": {"type": _SLSA}}
    sbom = {"name": "it", "referrer": {"type": _SBOM}}
    level = "images.containers.all(i, extractPayload(i, attestations.it).level == 3)"
    cyclone = (
        "images.containers.all(i, extractPayload(i, attestations.it).bomFormat == 'CycloneDX')"
    )
    yield _policy(there, "cosign", cosign, _VERIFIED)
    yield _policy(there, "audit", cosign, _VERIFIED, validationActions=["Audit"])
    yield _policy(there, "bundle", cosign, _VERIFIED)
    yield _policy(there, "notary", notary, _VERIFIED)
    yield _policy(there, "slsa", cosign, _STATED, level, attestations=[slsa])
    yield _policy(there, "sbom", notary, _STATED, cyclone, attestations=[sbom])
    yield _policy(there, "lazy", cosign, "true")
    keys = {"publicKeys": pem_of(signers.ada), "rekor": {"ignoreTlog": True}}
    yield _classic(there, "classic-key", {"keys": keys})
    yield _classic(there, "classic-bundle", {"keys": keys}, type="SigstoreBundle")
    certificates = {"cert": signers.notary.root_pem}
    yield _classic(there, "classic-notary", {"certificates": certificates}, type="Notary")


def _policy(there: Registry, name: str, attestor: Any, *validations: str, **spec: Any) -> Any:
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ImageValidatingPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [_RULE]},
            "matchImageReferences": [{"glob": f"{there.host}/{name}:*"}],
            "attestors": [attestor],
            "validations": [
                {"expression": text, "message": f"{name}: rule {number}"}
                for number, text in enumerate(validations)
            ],
            **spec,
        },
    }


def _classic(there: Registry, name: str, entry: Any, **more: Any) -> Any:
    verified = {
        "imageReferences": [f"{there.host}/{name}:*"],
        "attestors": [{"entries": [entry]}],
        **more,
    }
    rule = {
        "name": "signed",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "verifyImages": [verified],
    }
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {
            "validationFailureAction": "Enforce",
            "webhookTimeoutSeconds": 20,
            "rules": [rule],
        },
    }


_STEPS: tuple[tuple[str, str, str], ...] = (
    ("cosign", "good", ""),
    ("cosign", "bare", "Policy cosign failed: cosign: rule 0"),
    ("cosign", "other", "Policy cosign failed: cosign: rule 0"),
    ("cosign", "copied", "Policy cosign failed: cosign: rule 0"),
    ("cosign", "missing", "Policy cosign error: failed to update digest: failed to resolve digest"),
    ("audit", "bare", ""),
    ("bundle", "good", ""),
    ("bundle", "bare", "Policy bundle failed: bundle: rule 0"),
    ("bundle", "other", "Policy bundle failed: bundle: rule 0"),
    ("notary", "good", ""),
    ("notary", "cose", ""),
    ("notary", "bare", "Policy notary failed: notary: rule 0"),
    ("notary", "other", "Policy notary failed: notary: rule 0"),
    ("slsa", "good", ""),
    ("slsa", "low", "Policy slsa failed: slsa: rule 1"),
    ("slsa", "other", "Policy slsa failed: slsa: rule 0"),
    ("slsa", "bare", "Policy slsa failed: slsa: rule 0"),
    ("sbom", "good", ""),
    ("sbom", "other", "Policy sbom failed: sbom: rule 0"),
    ("lazy", "good", "no policy performed a signature or attestation check on it"),
    ("classic-key", "good", ""),
    ("classic-key", "bare", "no signatures found"),
    ("classic-key", "copied", "the signature is about another image"),
    ("classic-bundle", "good", ""),
    ("classic-bundle", "bare", "no signatures found"),
    ("classic-notary", "good", ""),
    ("classic-notary", "cose", ""),
    ("classic-notary", "other", "nobody whom the policy trusts"),
)
"""Repository and tag of an image, and what is said of a Pod that runs it; nothing where it is let in, with its digest."""


@dataclass(frozen=True)
class _Player:
    tier: Tier
    there: Registry
    pushed: dict[tuple[str, str], str]
    say: Callable[[str], None]

    def plays(self, repository: str, tag: str, words: str) -> None:
        """Create a Pod with an image and compare what comes of it."""
        began = time.monotonic()
        said = self._created(repository, tag)
        if (words not in said) if words else said:
            raise ScenarioError(
                f"{repository}:{tag}: expected {words or 'to be let in'!r}, got {said}"
            )
        if not words:
            pod = self.tier.read("pod", _name(repository, tag))
            (image,) = (one["image"] for one in pod["spec"]["containers"])
            wanted = f"{self.there.host}/{repository}:{tag}@{self.pushed[repository, tag]}"
            if image != wanted:
                raise ScenarioError(f"stored {image}, expected {wanted}")
        outcome = words or "let in by its digest"
        self.say(f"{time.monotonic() - began:6.1f} s  {repository}:{tag}: {outcome}")

    def waits_until_denied(self, repository: str, tag: str) -> None:
        """Wait until the policies are asked."""
        end = time.monotonic() + _READY
        while "failed" not in self._created(repository, tag, "--dry-run=server"):
            if time.monotonic() > end:
                raise ScenarioError("the policies on images are not in force")
            time.sleep(0.3)

    def forgets_nothing(self, signers: Signers) -> None:
        """See what is remembered end with the policy that it was asked for, and a forged outcome change nothing."""
        key = {"key": {"data": pem_of(signers.eve)}, "ctlog": _NO_LOG}
        changed = _policy(self.there, "cosign", {"name": "ada", "cosign": key}, _VERIFIED)
        self.tier.kubectl("apply", "-f", "-", given=json.dumps(changed))
        self.tier.kubectl("delete", "pod", _name("cosign", "good"), "--now")
        end = time.monotonic() + _READY
        while "cosign: rule 0" not in (said := self._created("cosign", "good", "--dry-run=server")):
            if time.monotonic() > end:
                raise ScenarioError(f"a changed policy still lets in what it let in before: {said}")
            time.sleep(0.3)
        outcome = json.dumps({f"{self.there.host}/cosign:good": "pass"})
        forged = {"kyverno.io/image-verification-outcomes": outcome, "kyverno.io/verify-images": outcome}  # fmt: skip
        said = self._created("cosign", "good", annotations=forged)
        if "cosign: rule 0" not in said:
            raise ScenarioError(f"a forged outcome lets an image in: {said}")
        self.say("          what was verified for a policy that changed is verified again")

    def _created(
        self, repository: str, tag: str, *flags: str, annotations: dict[str, str] | None = None
    ) -> str:
        """Create a Pod; return what was said against it."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": _name(repository, tag), "annotations": annotations or {}},
            "spec": {
                "containers": [{"name": "c", "image": f"{self.there.host}/{repository}:{tag}"}]
            },
        }
        try:
            self.tier.kubectl("create", "-f", "-", *flags, given=json.dumps(pod))
        except RuntimeError as error:
            return str(error)
        return ""


def _name(repository: str, tag: str) -> str:
    return f"{repository}-{tag}"
