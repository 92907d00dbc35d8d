"""verifyImages over image data: which images a rule asks about, and whether enough people signed them.

For the evaluation of policies. No registry is asked here: the caller hands in `ImageData` for every image that `selects`
names, and the answer is a verdict per image with Kyverno's texts, plus the patch that pins the digest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine import manifests
from engine.errors import EvaluationError, PolicyError
from engine.lang import wildcard
from engine.manifests.attestors import Attestor, CertificateAttestor
from engine.model import Block, Json, Status
from engine.model.policy import mutates_digest
from engine.record import record, replace

from . import signers
from .claims import payload_of
from .notation import TrustStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .data import ImageData
    from .extract import FoundImage
    from .reference import ImageReference

    CheckConditions = Callable[[Json, Json], tuple[bool, str]]
    """Says whether conditions of an attestation hold on its predicate, and the message that says why."""

COSIGN: Final = "Cosign"
BUNDLE: Final = "SigstoreBundle"
NOTARY: Final = "Notary"
_KINDS: Final = (COSIGN, BUNDLE, NOTARY)
NOWHERE_ELSE: Final[Mapping[str, ImageData]] = {}


@record
class ImageVerdict:
    """What a rule says of one image; `digest` is the verified one, `patch` pins it (None: nothing to change)."""

    image: str
    status: Status
    message: str
    digest: str = ""
    patch: dict[str, str] | None = None


@record
class Attestation:
    """A statement that a rule wants signed, by whom, and what must hold in it."""

    type: str
    sets: tuple[manifests.AttestorSet, ...]
    conditions: Json = None


@record
class ImageRule:
    """One compiled entry of `verifyImages`."""

    references: tuple[str, ...]
    skipped: tuple[str, ...]
    sets: tuple[manifests.AttestorSet, ...]
    attestations: tuple[Attestation, ...]
    kind: str = COSIGN
    mutates_digest: bool = True
    verifies_digest: bool = True

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The kinds of artifacts beside an image that the rule wants to see."""
        return tuple(one.type for one in self.attestations) if self.kind == NOTARY else ()

    @property
    def repositories(self) -> frozenset[str]:
        """The repositories that single attestors keep their signatures in."""
        return frozenset(repository for one in self.sets for repository in _repositories(one))

    def misses_digest(self, image: ImageReference) -> bool:
        """Tell whether an image that a request names lacks the digest that is asked for and that nobody will write."""
        return self.verifies_digest and not self.mutates_digest and not image.digest

    def selects(self, image: ImageReference) -> bool:
        """Tell whether the rule is about an image (row A-88).

        An image with both tag and digest is tested in both spellings: a digest must not lead past a rule for tags.
        """
        spellings = (image.reference, image.reference_with_tag)
        if any(wildcard.match(pattern, image.reference) for pattern in self.skipped):
            return False
        return any(wildcard.match(one, text) for one in self.references for text in spellings)

    def verify(
        self,
        found: FoundImage,
        data: ImageData,
        given: manifests.Circumstances,
        check: CheckConditions | None = None,
        elsewhere: Mapping[str, ImageData] = NOWHERE_ELSE,
    ) -> ImageVerdict:
        """Return the verdict on one selected image (rows A-89, A-90, A-90d).

        `check` evaluates conditions of attestations; without it attestations with conditions are refused. `elsewhere` is
        what the repositories hold that single attestors name.
        """
        image = found.image.reference
        problem = self._problem(found.image, data)
        if problem is not None:
            return problem
        if data.is_confirmed:
            return self._passed(found, data, "verified from cache")
        given = replace(given, needs_log=True)
        for wanted in self.sets:
            question = _SignatureQuestion(self.kind, data, given, elsewhere)
            answer = manifests.ask_set(wanted, question, "image")
            if not answer.agreed:
                return _refused(image, "; ".join(answer.errors) or answer.reason)
        for index, attestation in enumerate(self.attestations):
            ask = _artifact_refusal if self.kind == NOTARY else _statement_refusal
            if reason := ask(attestation, f".attestations[{index}]", data, given, check):
                return _refused(image, reason)
        what = "attestations" if self.attestations else "signatures"
        return self._passed(found, data, f"verified image {what} for {image}")

    def _passed(self, found: FoundImage, data: ImageData, message: str) -> ImageVerdict:
        patch = self._patch(found, data.digest)
        return ImageVerdict(found.image.reference, Status.PASS, message, data.digest, patch)

    def _problem(self, image: ImageReference, data: ImageData) -> ImageVerdict | None:
        shown = image.reference
        if data.problem:
            return _refused(shown, data.problem, Status.ERROR)
        if self.kind not in _KINDS:
            text = f"there is no type `{self.kind}` of signatures"
            return _refused(shown, text, Status.ERROR)
        if not data.digest:
            return _refused(shown, "the image's digest is not known")
        if image.digest and image.digest != data.digest:
            return _refused(shown, f"the registry has another digest, {data.digest}")
        return None

    def _patch(self, found: FoundImage, digest: str) -> dict[str, str] | None:
        if not self.mutates_digest or found.image.digest:
            return None
        value = f"{found.image.reference_with_tag}@{digest}"
        return {"op": "replace", "path": found.pointer, "value": value}


def compile_image_rule(block: Block) -> ImageRule:
    """Compile one entry of `verifyImages`; raise PolicyError when no image could ever satisfy it."""
    references = _texts(block, "imageReferences")
    if not references:
        raise PolicyError("`verifyImages.imageReferences` must not be empty")
    attestations = block.get("attestations") or []
    if not isinstance(attestations, list) or not all(isinstance(one, dict) for one in attestations):
        raise PolicyError("`verifyImages.attestations` must be a list")
    sets = manifests.compile_sets(block.get("attestors") or [], any_hash=True)
    if not sets and not attestations:
        raise PolicyError("`verifyImages` needs `attestors` or `attestations`")
    return ImageRule(
        references=references,
        skipped=_texts(block, "skipImageReferences"),
        sets=sets,
        attestations=tuple(
            _attestation(one, f".attestations[{index}]") for index, one in enumerate(attestations)
        ),
        kind=str(block.get("type") or COSIGN),
        mutates_digest=mutates_digest(block),
        verifies_digest=block.get("verifyDigest") is not False,
    )


def _attestation(block: Block, path: str) -> Attestation:
    kind = str(block.get("type") or block.get("predicateType") or "")
    if not kind:
        raise PolicyError(f"`{path}`: missing type")
    # Nobody named means anybody whom a trusted authority certified, never nobody at all.
    wanted = block.get("attestors") or [{"entries": [{"keyless": {}}]}]
    sets = manifests.compile_sets(wanted, path, any_hash=True)
    return Attestation(kind, sets, block.get("conditions"))


def _repositories(one: manifests.AttestorSet) -> Iterator[str]:
    for entry in one.entries:
        if entry.repository:
            yield entry.repository
        if isinstance(entry.attestor, manifests.AttestorSet):
            yield from _repositories(entry.attestor)


def _texts(block: Block, key: str) -> tuple[str, ...]:
    listed = block.get(key) or ()
    if isinstance(listed, str) or not all(isinstance(one, str) for one in listed):
        raise PolicyError(f"`verifyImages.{key}` must be a list of image patterns")
    return tuple(listed)


@record
class _SignatureQuestion:
    """Asks one attestor about the signatures of an image, in the form that the rule is about."""

    kind: str
    data: ImageData
    given: manifests.Circumstances
    elsewhere: Mapping[str, ImageData]

    def __call__(self, entry: manifests.Entry) -> manifests.Answer:
        data = self.elsewhere.get(entry.repository, self.data)
        try:
            trials = self._trials(entry, data)
        except EvaluationError as error:
            trials = [error.message]
        return _vouched(entry, "" in trials, "; ".join(trials) or "no signatures found")

    def _trials(self, entry: manifests.Entry, data: ImageData) -> list[str]:
        attestor = _attestor_of(entry)
        if self.kind == NOTARY:
            return [
                signers.notary_refusal(
                    _store(attestor), data.notations, data.digest, self.given.now
                )
            ]
        ask = signers.bundle_refusals if self.kind == BUNDLE else signers.signature_refusals
        return ask(attestor, data, entry.annotations, self.given)


def _store(attestor: Attestor) -> TrustStore:
    if not isinstance(attestor, CertificateAttestor):
        raise EvaluationError("signatures of type Notary are verified by `certificates`")
    return TrustStore.from_pem(f"{attestor.certificate}\n{attestor.certificate_chain}")


def _statement_refusal(
    wanted: Attestation,
    path: str,
    data: ImageData,
    given: manifests.Circumstances,
    check: CheckConditions | None,
) -> str:
    """Return why an attestation is missing or not good enough, empty when it is there."""
    about = signers.statements(data, wanted.type)
    if not about:
        return f"{path}: predicate type {wanted.type} not found"
    vouched: dict[int, Json] = {}

    def ask(entry: manifests.Entry) -> manifests.Answer:
        attestor = _attestor_of(entry)
        reasons = [signers.statement_refusal(attestor, *one, given) for one in about]
        good = {
            number: one.predicate for number, (_, one) in enumerate(about) if not reasons[number]
        }
        vouched.update(good)
        return _vouched(entry, bool(good), "; ".join(reasons))

    return _refusal_of_sets(wanted, ask) or _condition_refusal(wanted, path, vouched, check)


def _artifact_refusal(
    wanted: Attestation,
    path: str,
    data: ImageData,
    given: manifests.Circumstances,
    check: CheckConditions | None,
) -> str:
    """Return why an artifact that Notary signed is missing or not good enough, empty when it is there."""
    if not any(one.kind == wanted.type for one in data.referrers):
        return f"{path}: artifact type {wanted.type} not found"
    vouched: dict[int, Json] = {}

    def ask(entry: manifests.Entry) -> manifests.Answer:
        try:
            good = signers.vouched_artifacts(
                _store(_attestor_of(entry)), data, wanted.type, given.now
            )
        except EvaluationError as error:
            return _vouched(entry, False, error.message)
        vouched.update(enumerate(map(payload_of, good)))
        return _vouched(entry, bool(good), "no artifact is signed by those who are trusted")

    return _refusal_of_sets(wanted, ask) or _condition_refusal(wanted, path, vouched, check)


def _vouched(entry: manifests.Entry, is_good: bool, reason: str) -> manifests.Answer:
    if is_good:
        return manifests.Answer(True, "verified")
    return manifests.Answer(False, errors=(f"{entry.path}: {reason}",))


def _refusal_of_sets(
    wanted: Attestation, ask: Callable[[manifests.Entry], manifests.Answer]
) -> str:
    for one_set in wanted.sets:
        answer = manifests.ask_set(one_set, ask, "image attestations")
        if not answer.agreed:
            return "; ".join(answer.errors) or answer.reason
    return ""


def _condition_refusal(
    wanted: Attestation, path: str, trusted: Mapping[int, Json], check: CheckConditions | None
) -> str:
    """Return which trusted statement does not meet the conditions; statements of others are not looked at."""
    if not wanted.conditions:
        return ""
    if check is None:
        return f"{path}: conditions cannot be checked here"
    for predicate in trusted.values():
        holds, message = check(wanted.conditions, predicate)
        if not holds:
            return f"{path}: attestation checks failed for predicate {wanted.type}: {message}"
    return ""


def _attestor_of(entry: manifests.Entry) -> Attestor:
    # INVARIANT: nested sets and broken entries are answered by the counting.
    assert isinstance(entry.attestor, Attestor)
    return entry.attestor


def _refused(image: str, reason: str, status: Status = Status.FAIL) -> ImageVerdict:
    return ImageVerdict(image, status, f"failed to verify image {image}: {reason}")
