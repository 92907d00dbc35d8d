"""What expressions ask about images, and what came out: the functions of ImageValidatingPolicies (row IP-05).

Signatures and attestations are counted by attestor. What was verified is kept for the end of the request, where every image
that a policy requires must have been verified by some policy (row IP-06).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from engine.errors import EvaluationError
from engine.evaluate.images import fingerprint
from engine.evaluate.lookups import Answer, ImageLookup, SignatureLookup
from engine.images import ImageData
from engine.lang.cel import CelError, Program, lookups
from engine.model.result import ImageFinding
from engine.record import record, replace

from .asking import as_read
from .bindings import Bindings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.evaluate.inputs import Inputs
    from engine.evaluate.state import Trace
    from engine.model import Block, Json, Review

    from .imageattestors import Attestation, Cosign, ImageAttestor, Notary

    Judge = Callable[[Cosign | Notary, ImageData], list[Any]]
    """What an attestor vouches for in what a registry holds; nothing where it is not his."""


T = TypeVar("T")


@record
class Access:
    """How registries are asked: names of pull secrets, and whether a certificate may be any."""

    secrets: tuple[str, ...] = ()
    is_insecure: bool = False


def access_of(credentials: Block, namespace: str) -> Access:
    """Read `spec.credentials`; providers are accepted by name, and credentials of the environment are not read for them.

    A namespaced policy means secrets of its own namespace, so that its author reads nobody else's.
    """
    names = (str(name) for name in credentials.get("secrets") or ())
    return Access(
        tuple(f"{namespace}/{name}" if namespace and "/" not in name else name for name in names),
        credentials.get("allowInsecureRegistry") is True,
    )


class ImageBindings(Bindings):
    """Variables of one policy on one review, with what it may ask about images and what was found of them."""

    __slots__ = (
        "_access",
        "_attestations",
        "_attestors",
        "_confirmed",
        "_payloads",
        "_tried",
        "_verified",
        "matching",
    )

    def __init__(
        self,
        review: Review,
        inputs: Inputs,
        variables: Mapping[str, Program],
        *,
        attestors: Mapping[str, ImageAttestor],
        attestations: Mapping[str, Attestation],
        access: Access,
        trace: Trace | None,
    ) -> None:
        super().__init__(review, inputs, variables, trace=trace)
        self._attestors, self._attestations, self._access = attestors, attestations, access
        self["attestors"] = {name: one.block for name, one in attestors.items()}
        self["attestations"] = {
            name: {"name": name, "referrer" if one.is_referrer else "intoto": {"type": one.type}}
            for name, one in attestations.items()
        }
        self.matching: dict[str, str] = {}
        """The images that the policy is about, each with the reference that its registry resolved it to."""
        self._tried: set[str] = set()
        self._verified: set[str] = set()
        self._payloads: dict[tuple[str, str], Json] = {}
        self._confirmed: list[ImageFinding] = []

    def metadata(self, images: Sequence[str]) -> tuple[Answer, ...]:
        """Return what registries say of images, all asked at once."""
        access = self._access
        return self.inputs.ask_all(
            [ImageLookup(image, access.secrets, access.is_insecure) for image in images]
        )

    def load(self, images: Iterable[str]) -> None:
        """Take note of the images that the policy is about; raises EvaluationError where a registry has no answer."""
        wanted = tuple(dict.fromkeys(images))
        for image, answer in zip(wanted, self.metadata(wanted), strict=True):
            if not isinstance(answer.value, dict):
                raise EvaluationError(_unanswered(image, answer))
            resolved = str(answer.value.get("resolvedImage") or "")
            self.matching[image] = resolved if "@" in resolved else image

    def findings(self, *, required: bool) -> tuple[ImageFinding, ...]:
        """Return what was found of every image that the policy is about."""
        found = (
            ImageFinding(image, image in self._verified, image in self._tried, required)
            for image in self.matching
        )
        return (*found, *self._confirmed)

    def ask(self, question: Any) -> Any:
        """Answer what an expression asks of the world outside, registries with the policy's credentials."""
        match question:
            case lookups.ImageMetadata():
                return self._data(question, question.reference)
            case lookups.ImageVerification(what="getImageData"):
                try:
                    return self._data(lookups.ImageMetadata(question.reference), question.reference)
                except CelError as error:
                    raise CelError(f"failed to get imagedata: {error.message}") from error
            case lookups.ImageVerification(what="extractPayload"):
                return self._payload(question.reference, question.arguments[0])
            case lookups.ImageVerification(what="verifyImageSignatures"):
                return self._signatures(question.reference, question.arguments)
            case lookups.ImageVerification():
                attestation, *attestors = question.arguments
                return self._statements(question.reference, attestation, attestors)
        return super().ask(question)

    def _data(self, question: lookups.ImageMetadata, reference: str) -> Any:
        (answer,) = self.metadata((reference,))
        if not isinstance(answer.value, dict):
            raise CelError(_unanswered(reference, answer))
        return as_read(question, answer.value)

    def _signatures(self, image: Any, attestors: Iterable[Any]) -> int:
        now, trust = self.inputs.now, self.inputs.trust

        def signs(judge: Cosign | Notary, data: ImageData) -> list[Any]:
            return [True] if data.is_confirmed or judge.signs(data, now, trust) else []

        return len(self._ask_attestors(image, attestors, signs, remembers=True))

    def _statements(self, image: Any, attestation: Any, attestors: Iterable[Any]) -> int:
        wanted = self._attestation(attestation)
        now, trust = self.inputs.now, self.inputs.trust

        def vouched(judge: Cosign | Notary, data: ImageData) -> list[Any]:
            return judge.vouched(data, wanted, now, trust)

        artifacts = (wanted.type,) if wanted.is_referrer else ()
        found = self._ask_attestors(image, attestors, vouched, artifacts=artifacts)
        if found:
            self._payloads.setdefault((image, wanted.name), found[0][0])
        return len(found)

    def _ask_attestors(
        self,
        image: Any,
        attestors: Iterable[Any],
        ask: Judge,
        *,
        artifacts: tuple[str, ...] = (),
        remembers: bool = False,
    ) -> list[list[Any]]:
        """Return what each attestor vouches for, of those who do; for an image that the policy is not about nobody does."""
        asked = [_meant(one, self._attestors, "attestor") for one in attestors]
        if not isinstance(image, str) or image not in self.matching:
            return []
        questions = [self._question(image, one, artifacts, remembers) for one in asked]
        found = []
        for attestor, question, answer in zip(
            asked, questions, self.inputs.ask_all(questions), strict=True
        ):
            data = answer.value if isinstance(answer.value, ImageData) else ImageData()
            good, reason = self._judged(attestor, data, ask)
            if self.trace is not None:
                told = reason or data.problem or answer.error
                self.trace.add("attestor", f"{attestor.name} for {image}", bool(good), told)
            if not good:
                continue
            found.append(good)
            if question.confirmation:
                key = question.confirmation
                self._confirmed.append(
                    ImageFinding(image, True, True, digest=data.digest, confirmation=key)
                )
        self._tried.add(image)
        if found:
            self._verified.add(image)
        return found

    def _judged(
        self, attestor: ImageAttestor, data: ImageData, ask: Judge
    ) -> tuple[list[Any], str]:
        """Return what an attestor vouches for; one that is broken, or not to be reached, vouches for nothing."""
        if data.problem or not data.digest:
            return [], ""
        try:
            return ask(attestor.read(self), data), ""
        except EvaluationError as error:
            return [], error.message

    def _question(
        self, image: str, attestor: ImageAttestor, artifacts: tuple[str, ...], remembers: bool
    ) -> SignatureLookup:
        access = self._access
        asked = SignatureLookup(
            self.matching[image],
            (*attestor.secrets, *access.secrets),
            access.is_insecure,
            attestor.repository,
            tag_prefix=attestor.tag_prefix,
            artifacts=artifacts,
        )
        if remembers and attestor.is_constant:
            return replace(asked, confirmation=fingerprint(attestor.block))
        return asked

    def _payload(self, image: Any, attestation: Any) -> Any:
        wanted = self._attestation(attestation)
        if (image, wanted.name) not in self._payloads:
            raise CelError(
                f"failed to get payload: attestation {wanted.name} of {image} is not verified"
            )
        return self._payloads[image, wanted.name]

    def _attestation(self, given: Any) -> Attestation:
        return _meant(given, self._attestations, "attestation")


def _meant(given: Any, known: Mapping[str, T], what: str) -> T:
    """Return what a value of an expression means by its name; raises CelError where the policy has no such one."""
    name = given.get("name") if isinstance(given, dict) else None
    found = known.get(name) if isinstance(name, str) else None
    if found is None:
        raise CelError(f"{what} not found in policy: {name}")
    return found


def _unanswered(image: str, answer: Answer) -> str:
    return f"image `{image}`: {answer.error or 'there is no registry to ask'}"
