"""Whether one signer vouches for an image: signatures, statements and artifacts, in every form that they are kept in.

For `verifyImages` and for ImageValidatingPolicy, which differ in whom they ask and what they make of the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.manifests import Circumstances, Signed

from .claims import Envelope, check_claim, read_envelope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from engine.manifests.attestors import Attestor

    from .data import ImageData, Layer, Referrer
    from .notation import NotarySignature, TrustStore

    Statement = tuple[Layer, Envelope]

SIGNATURE_STATEMENT: Final = "https://sigstore.dev/cosign/sign/v1"
"""The predicate type of a statement that is nothing but a signature, as bundles hold them."""


def statements(data: ImageData, kind: str = "") -> list[Statement]:
    """Return the statements about the image that can be read, of one predicate type where one is named."""
    return [
        (layer, envelope)
        for layer, envelope in _opened(data.attestations)
        if envelope.is_about(data.digest) and kind in ("", envelope.predicate_type)
    ]


def _opened(layers: tuple[Layer, ...]) -> Iterator[Statement]:
    for layer in layers:
        try:
            yield layer, read_envelope(layer.payload)
        except EvaluationError:
            continue


def signature_refusals(
    attestor: Attestor, data: ImageData, annotations: Mapping[str, str], given: Circumstances
) -> list[str]:
    """Return for each signature of the image why it is not the attestor's; an empty text means that it is."""
    refused = [
        _signature_refusal(attestor, layer, data.digest, annotations, given)
        for layer in data.signatures
    ]
    return refused + bundle_refusals(attestor, data, annotations, given, SIGNATURE_STATEMENT)


def bundle_refusals(
    attestor: Attestor,
    data: ImageData,
    annotations: Mapping[str, str],
    given: Circumstances,
    kind: str = "",
) -> list[str]:
    """Return for each Sigstore bundle about the image why it is not the attestor's, as above; `kind` as in `statements`."""
    found = []
    for layer, envelope in statements(data, kind):
        if not layer.is_bundle:
            continue
        reason = statement_refusal(attestor, layer, envelope, given)
        if not reason and not envelope.is_annotated(data.digest, annotations):
            reason = "annotations mismatch"
        found.append(reason)
    return found


def statement_refusal(
    attestor: Attestor, layer: Layer, envelope: Envelope, given: Circumstances
) -> str:
    """Return why a statement is not signed by the attestor, empty when it is."""
    reason = "the attestation carries no signature"
    for signature in envelope.signatures:
        signed = Signed(
            envelope.signed,
            signature,
            layer.certificate,
            layer.chain,
            layer.bundle,
            envelope.payload,
        )
        try:
            reason = attestor.verdict(signed, given).mismatch
        except EvaluationError as error:
            reason = error.message
        if not reason:
            return ""
    return reason


def notary_refusal(
    store: TrustStore, notations: tuple[NotarySignature, ...], digest: str, now: datetime
) -> str:
    """Return why none of some Notary signatures about `digest` is of somebody in the store, empty when one is."""
    reasons = []
    for signature in notations[:MOST_NOTATIONS]:
        try:
            store.verify(signature, digest, now)
        except EvaluationError as error:
            reasons.append(error.message)
        else:
            return ""
    return "; ".join(reasons) or "no signatures found"


MOST_NOTATIONS: Final = 10
"""Notary signatures of one artifact that are looked at, as upstream has it."""


def vouched_artifacts(
    store: TrustStore, data: ImageData, kind: str, now: datetime
) -> list[Referrer]:
    """Return the artifacts of one kind beside the image that somebody in the store signed."""
    return [
        one
        for one in data.referrers
        if one.kind == kind and not notary_refusal(store, one.notations, one.digest, now)
    ]


def _signature_refusal(
    attestor: Attestor,
    layer: Layer,
    digest: str,
    annotations: Mapping[str, str],
    given: Circumstances,
) -> str:
    """Return why a signature layer is not the attestor's about this image, empty when it is."""
    signed = Signed(layer.payload, layer.signature, layer.certificate, layer.chain, layer.bundle)
    try:
        mismatch = attestor.verdict(signed, given).mismatch
        if not mismatch:
            check_claim(layer.payload, digest, annotations)
    except EvaluationError as error:
        return error.message
    return mismatch
