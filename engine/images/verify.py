"""verifyImages over image data: which images a rule asks about, and whether enough people signed them (section 1.9).

For the evaluation of policies. No registry is asked here: the caller hands in `ImageData` for every image that `selects`
names, and the answer is a verdict per image with Kyverno's texts, plus the patch that pins the digest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from engine.errors import EvaluationError, PolicyError
from engine.lang import wildcard
from engine.manifests import (
    Answer,
    AttestorSet,
    Circumstances,
    Entry,
    Signed,
    ask_set,
    compile_sets,
)
from engine.model import Status
from engine.record import record

from .claims import Envelope, check_claim, read_envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.manifests.attestors import Attestor
    from engine.model import Block, Json

    from .data import ImageData, Layer
    from .extract import FoundImage
    from .reference import ImageReference

_SUPPORTED = "Cosign"


class CheckConditions(Protocol):
    """How the caller evaluates an attestation's conditions on its predicate."""

    def __call__(self, conditions: Json, predicate: Json, /) -> tuple[bool, str]:
        """Return whether the conditions hold, and the message that says why."""


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
    sets: tuple[AttestorSet, ...]
    conditions: Json = None


@record
class ImageRule:
    """One compiled entry of `verifyImages`."""

    references: tuple[str, ...]
    skipped: tuple[str, ...]
    sets: tuple[AttestorSet, ...]
    attestations: tuple[Attestation, ...]
    kind: str = _SUPPORTED
    mutates_digest: bool = True
    verifies_digest: bool = True
    is_required: bool = True

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
        given: Circumstances,
        check: CheckConditions | None = None,
    ) -> ImageVerdict:
        """Return the verdict on one selected image (rows A-89, A-90, A-90d).

        `check` evaluates conditions of attestations; without it attestations with conditions are refused.
        """
        image = found.image.reference
        problem = self._problem(found.image, data)
        if problem is not None:
            return problem
        given = Circumstances(given.now, given.trust, given.secrets, needs_log=True)
        for wanted in self.sets:
            answer = ask_set(wanted, _SignatureQuestion(data, given), "image")
            if not answer.agreed:
                return _refused(image, "; ".join(answer.errors) or answer.reason)
        for index, attestation in enumerate(self.attestations):
            reason = _attestation_refusal(
                attestation, f".attestations[{index}]", data, given, check
            )
            if reason:
                return _refused(image, reason)
        what = "attestations" if self.attestations else "signatures"
        return ImageVerdict(
            image,
            Status.PASS,
            f"verified image {what} for {image}",
            data.digest,
            self._patch(found, data.digest),
        )

    def _problem(self, image: ImageReference, data: ImageData) -> ImageVerdict | None:
        shown = image.reference
        if data.problem:
            text = f"failed to verify image {shown}: {data.problem}"
            return ImageVerdict(shown, Status.ERROR, text)
        if self.kind != _SUPPORTED:
            text = (
                f"failed to verify image {shown}: signatures of type {self.kind} are not supported"
            )
            return ImageVerdict(shown, Status.ERROR, text)
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
    sets = compile_sets(block.get("attestors") or [], any_hash=True)
    if not sets and not attestations:
        raise PolicyError("`verifyImages` needs `attestors` or `attestations`")
    return ImageRule(
        references=references,
        skipped=_texts(block, "skipImageReferences"),
        sets=sets,
        attestations=tuple(
            _attestation(one, f".attestations[{index}]") for index, one in enumerate(attestations)
        ),
        kind=str(block.get("type") or _SUPPORTED),
        mutates_digest=block.get("mutateDigest") is not False,
        verifies_digest=block.get("verifyDigest") is not False,
        is_required=block.get("required") is not False,
    )


def _attestation(block: Block, path: str) -> Attestation:
    kind = str(block.get("type") or block.get("predicateType") or "")
    if not kind:
        raise PolicyError(f"`{path}`: missing type")
    # Nobody named means anybody whom a trusted authority certified, never nobody at all.
    wanted = block.get("attestors") or [{"entries": [{"keyless": {}}]}]
    sets = compile_sets(wanted, path, any_hash=True)
    return Attestation(kind, sets, block.get("conditions"))


def _texts(block: Block, key: str) -> tuple[str, ...]:
    listed = block.get(key) or ()
    if isinstance(listed, str) or not all(isinstance(one, str) for one in listed):
        raise PolicyError(f"`verifyImages.{key}` must be a list of image patterns")
    return tuple(listed)


@record
class _SignatureQuestion:
    """Asks one attestor about the signature layers of an image."""

    data: ImageData
    given: Circumstances

    def __call__(self, entry: Entry) -> Answer:
        attestor = _attestor_of(entry)
        trials = [
            _trial(attestor, layer, self.data.digest, entry, self.given)
            for layer in self.data.signatures
        ]
        if "" in trials:
            return Answer(True, "verified")
        reason = "; ".join(trials) or "no signatures found"
        return Answer(False, errors=(f"{entry.path}: {reason}",))


def _trial(
    attestor: Attestor, layer: Layer, digest: str, entry: Entry, given: Circumstances
) -> str:
    """Return why a signature layer is not the attestor's about this image, empty when it is."""
    signed = Signed(layer.payload, layer.signature, layer.certificate, layer.chain, layer.bundle)
    try:
        mismatch = attestor.verdict(signed, given).mismatch
        if not mismatch:
            check_claim(layer.payload, digest, entry.annotations)
    except EvaluationError as error:
        return error.message
    return mismatch


def _attestation_refusal(
    wanted: Attestation,
    path: str,
    data: ImageData,
    given: Circumstances,
    check: CheckConditions | None,
) -> str:
    """Return why an attestation is missing or not good enough, empty when it is there."""
    envelopes = [one for one in map(_opened, data.attestations) if one is not None]
    about = [
        (layer, envelope)
        for layer, envelope in envelopes
        if envelope.predicate_type == wanted.type and envelope.is_about(data.digest)
    ]
    if not about:
        return f"{path}: predicate type {wanted.type} not found"
    vouched: dict[int, Envelope] = {}
    for one_set in wanted.sets:
        question = _statement_question(about, given, vouched)
        answer = ask_set(one_set, question, "image attestations")
        if not answer.agreed:
            return "; ".join(answer.errors) or answer.reason
    return _condition_refusal(wanted, path, list(vouched.values()), check)


def _opened(layer: Layer) -> tuple[Layer, Envelope] | None:
    try:
        return layer, read_envelope(layer.payload)
    except EvaluationError:
        return None


def _statement_question(
    about: Sequence[tuple[Layer, Envelope]], given: Circumstances, vouched: dict[int, Envelope]
) -> Callable[[Entry], Answer]:
    """Ask attestors about statements; `vouched` gathers those that any of them signed."""

    def ask(entry: Entry) -> Answer:
        attestor = _attestor_of(entry)
        reasons = [_statement_trial(attestor, *one, given) for one in about]
        good = {number: one[1] for number, one in enumerate(about) if not reasons[number]}
        vouched.update(good)
        if good:
            return Answer(True, "verified")
        return Answer(False, errors=(f"{entry.path}: {'; '.join(reasons)}",))

    return ask


def _statement_trial(
    attestor: Attestor, layer: Layer, envelope: Envelope, given: Circumstances
) -> str:
    reason = "the attestation carries no signature"
    for signature in envelope.signatures:
        signed = Signed(envelope.signed, signature, layer.certificate, layer.chain, layer.bundle)
        try:
            reason = attestor.verdict(signed, given).mismatch
        except EvaluationError as error:
            reason = error.message
        if not reason:
            return ""
    return reason


def _condition_refusal(
    wanted: Attestation, path: str, trusted: Sequence[Envelope], check: CheckConditions | None
) -> str:
    """Return which trusted statement does not meet the conditions; statements of others are not looked at."""
    if not wanted.conditions:
        return ""
    if check is None:
        return f"{path}: conditions cannot be checked here"
    for envelope in trusted:
        holds, message = check(wanted.conditions, envelope.predicate)
        if not holds:
            return f"{path}: attestation checks failed for predicate {wanted.type}: {message}"
    return ""


def _attestor_of(entry: Entry) -> Attestor:
    # INVARIANT: nested sets and broken entries are answered by the counting.
    assert entry.attestor is not None
    assert not isinstance(entry.attestor, AttestorSet)
    return entry.attestor


def _refused(image: str, reason: str) -> ImageVerdict:
    return ImageVerdict(image, Status.FAIL, f"failed to verify image {image}: {reason}")
