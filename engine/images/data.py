"""What a registry says of one image, as values: its digest, the signatures and the attestations found beside it.

Whoever talks to registries fills these in; the engine only judges. A registry that could not be asked is stated as
`problem`, which makes the rule an error instead of a failure (row A-90d).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.model import Object, RuleResult, RuleType, Status
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model.result import ImageFinding

    from .notation import NotarySignature


@record
class Layer:
    """One signature or attestation layer: its bytes and its annotations, decoded.

    `payload` is the simple-signing JSON of a signature, or the DSSE envelope of an attestation (which carries its own
    signatures; `signature` is then empty). `certificate` and `chain` are PEM, `bundle` is Rekor's JSON. `is_bundle` says
    that the layer came as a Sigstore bundle.
    """

    payload: bytes
    signature: bytes = b""
    certificate: bytes = b""
    chain: bytes = b""
    bundle: bytes = b""
    is_bundle: bool = False


@record
class Referrer:
    """An artifact that refers to an image: its own digest, what kind it is, what it holds, and who signed it."""

    digest: str
    kind: str
    payload: bytes
    notations: tuple[NotarySignature, ...] = ()


@record
class ImageData:
    """Digest of an image and what was found beside it; `problem` says why the registry could not be asked.

    `notations` are Notary signatures, `referrers` the artifacts of the kinds that were asked for. `is_confirmed` says that
    this very image passed this very question before, so that nothing was gathered again.
    """

    digest: str = ""
    signatures: tuple[Layer, ...] = ()
    attestations: tuple[Layer, ...] = ()
    problem: str = ""
    notations: tuple[NotarySignature, ...] = ()
    referrers: tuple[Referrer, ...] = ()
    is_confirmed: bool = False


# What image verification writes on an object: the verdicts of `verifyImages`, for whoever reads the object (row A-90c).
#
# Nothing of ours reads it: the validating stage verifies what it was given again, so that a verdict which somebody else wrote
# on an object is worth nothing. What a submitter put there is replaced by the verdicts of this evaluation, never merged.


def with_outcomes(obj: Object, results: Iterable[RuleResult]) -> Object:
    """Return an object annotated with the status of each image that rules judged; one without such stays as it is."""
    listed: dict[str, str] = {}
    for result in results:
        if result.type is RuleType.IMAGE_VERIFY:
            for one in result.images:
                # INVARIANT: an image that two rules judge is verified only when both say so.
                name = _named(one)
                if listed.get(name, Status.PASS) == Status.PASS:
                    listed[name] = result.status.value
    if not listed:
        return obj
    metadata = obj.get("metadata") or {}
    text = json.dumps(listed, sort_keys=True, separators=(",", ":"))
    annotations = {**(metadata.get("annotations") or {}), "kyverno.io/verify-images": text}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _named(found: ImageFinding) -> str:
    """Return the image by its digest where that is known: there the tag no longer counts."""
    if not found.digest or "@" in found.image:
        return found.image
    head, colon, tag = found.image.rpartition(":")
    repository = head if colon and "/" not in tag else found.image
    return f"{repository}@{found.digest}"
