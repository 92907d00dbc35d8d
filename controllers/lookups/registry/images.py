"""What engines ask of registries: the map of an imageRegistry entry, and what signatures there are (rows A-54, A-88).

Signatures and attestations are only gathered here. Nothing is believed: the engine verifies every layer, and one that cannot be read is
as good as none. Forms: cosign's `sha256-….sig` and `.att` tags, the same manifests as referrers, Sigstore bundles as referrers,
Notary signatures as referrers.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube.clock import Clock, SystemClock
from controllers.lookups.errors import OutsideError, StatusError
from engine.errors import EngineError
from engine.fields import items, part
from engine.images import DOCKER_HUB, ImageData, Layer, NotarySignature, Referrer, RegistryDefaults
from engine.images.notation import MOST_ENVELOPE
from engine.images.signers import MOST_NOTATIONS
from engine.lang import json

from .places import Place, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.evaluate import ImageLookup, SignatureLookup
    from engine.model import Json, Object
    from engine.model.result import ImageFinding

    from .client import Manifest, Registry

_MOST_CONFIG = 8 * 1024 * 1024
_PLATFORM = {"os": "linux", "architecture": "amd64"}


class Images:
    """Answers about images from one Registry; short names are completed by `defaults`."""

    def __init__(
        self,
        registry: Registry,
        *,
        defaults: RegistryDefaults = DOCKER_HUB,
        verified: VerifiedImages | None = None,
    ) -> None:
        self._registry = registry
        self._verified = verified or VerifiedImages()
        self._defaults = defaults
        self._signatures = Signatures(registry)

    async def image(self, lookup: ImageLookup) -> Json:
        """Return the map that policies see (row A-54); raises EngineError.

        Of an index the image for linux/amd64 counts, as upstream takes it.
        """
        place = self._place(lookup.reference, lookup.secrets, lookup.is_insecure)
        top = await self._registry.manifest(place)
        index, manifest = (top.content, await self._chosen(place, top)) if top.is_index else (None, top)  # fmt: skip
        return {
            "image": lookup.reference,
            "resolvedImage": f"{place.name}@{top.digest}",
            "registry": place.registry,
            "repository": place.repository,
            "identifier": place.identifier,
            "manifestList": index,
            "manifest": manifest.content,
            "configData": await self._config(place, manifest),
        }

    async def signatures(self, lookup: SignatureLookup) -> ImageData:
        """Return digest, signatures and attestations; what keeps us from knowing stands in `problem` (row A-90d)."""
        try:
            place = self._place(lookup.reference, lookup.secrets, lookup.is_insecure)
            digest = (await self._registry.manifest(place)).digest
            if lookup.confirmation and self._verified.holds(
                lookup.confirmation, place.name, digest
            ):
                return ImageData(digest, is_confirmed=True)
            beside = place
            if lookup.repository:
                beside = self._place(lookup.repository, lookup.secrets, lookup.is_insecure)
            return await self._signatures.of(
                beside, digest, tag_prefix=lookup.tag_prefix, artifacts=lookup.artifacts
            )
        except StatusError as error:
            # Without a digest the rule fails: an image that is not there is nobody's fault but the Pod's.
            return ImageData() if error.status == 404 else ImageData(problem=error.message)
        except EngineError as error:
            return ImageData(problem=error.message)

    def confirm(self, findings: Iterable[ImageFinding]) -> None:
        """Remember images that policies verified, where they say under what."""
        for one in findings:
            if one.confirmation and one.is_verified and one.digest:
                self._verified.add(
                    one.confirmation, self._place(one.image, (), False).name, one.digest
                )

    def _place(self, text: str, secrets: tuple[str, ...], is_insecure: bool) -> Place:
        return place_of(text, self._defaults, secrets=secrets, is_insecure=is_insecure)

    async def _chosen(self, place: Place, index: Manifest) -> Manifest:
        for one in items(index.content, "manifests"):
            if one.get("digest") and part(one, "platform").items() >= _PLATFORM.items():
                return await self._registry.manifest(place.at(str(one["digest"])))
        raise OutsideError(f"there is no image for linux/amd64 in `{place.name}`")

    async def _config(self, place: Place, manifest: Manifest) -> Json:
        digest = str(part(manifest.content, "config").get("digest") or "")
        if not digest:
            raise OutsideError(f"`{place.name}` has a manifest without a configuration")
        found: Object = json.load(await self._registry.blob(place, digest, limit=_MOST_CONFIG))
        return found


# Images that passed: for an hour the same question about the same digest needs no signatures gathered (row A-90b).
#
# What is kept is that an image, by its digest, passed everything that one fingerprint stands for: whom a policy asks, about
# what, with all variables put in. A policy that changes asks under another fingerprint, a tag that moves leads to another
# digest, and only passes are kept, so that nothing here can be older than what it is an answer to. Upstream remembers by tag.

MOST_KEPT: Final = 1000
SECONDS: Final = 3600.0

_Key = tuple[str, str, str]


class VerifiedImages:
    """Fingerprint, repository and digest of what passed; the oldest goes when there is no room."""

    def __init__(
        self, clock: Clock | None = None, *, most: int = MOST_KEPT, seconds: float = SECONDS
    ) -> None:
        self._clock = clock or SystemClock()
        self._most = most
        self._seconds = seconds
        self._until: OrderedDict[_Key, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def holds(self, fingerprint: str, repository: str, digest: str) -> bool:
        """Tell whether this passed, and not too long ago."""
        key = (fingerprint, repository, digest)
        until = self._until.get(key)
        if until is None:
            return False
        if until <= self._clock.monotonic():
            del self._until[key]
            return False
        return True

    def add(self, fingerprint: str, repository: str, digest: str) -> None:
        """Keep what passed just now; what is kept already does not live longer by it."""
        key = (fingerprint, repository, digest)
        if self.holds(*key):
            return
        if len(self._until) >= self._most:
            self._until.popitem(last=False)
        self._until[key] = self._clock.monotonic() + self._seconds


NOTATION = "application/vnd.cncf.notary.signature"
_SIGNED = "application/vnd.dev.cosign.simplesigning.v1+json"
_ENVELOPE = "application/vnd.dsse.envelope.v1+json"
_SIG_ARTIFACT = "application/vnd.dev.cosign.artifact.sig.v1+json"
_ATT_ARTIFACT = "application/vnd.dev.cosign.artifact.att.v1+json"
_SIGNATURE = "dev.cosignproject.cosign/signature"
_PREFIX = "dev.sigstore.cosign/"
MOST_LAYERS = 64
_MOST_PAYLOAD = 8 * 1024 * 1024

Found = tuple[bool, Layer]
"""Whether it is an attestation, and the layer."""


class Signatures:
    """Gathers what a registry holds about a digest."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def of(
        self, place: Place, digest: str, *, tag_prefix: str = "", artifacts: tuple[str, ...] = ()
    ) -> ImageData:
        """Return everything found, of other artifacts those of the kinds named; raises OutsideError where the registry cannot be asked."""
        stem = f"{tag_prefix}{digest.replace(':', '-')}"
        signed, stated, listed = await asyncio.gather(
            self._tagged(place.at(f"{stem}.sig")),
            self._tagged(place.at(f"{stem}.att")),
            self._registry.referrers(place, digest),
        )
        wanted = [one for one in listed if _kind_of(one) is not None][:MOST_LAYERS]
        others = [one for one in listed if one.get("artifactType") in artifacts][:MOST_LAYERS]
        referring, notations, referrers = await asyncio.gather(
            asyncio.gather(*(self._referrer(place, one) for one in wanted)),
            self._notations(place, listed),
            asyncio.gather(*(self._artifact(place, one) for one in others)),
        )
        found = [*signed, *stated, *(layer for part in referring for layer in part)][:MOST_LAYERS]
        return ImageData(
            digest,
            tuple(layer for is_statement, layer in found if not is_statement),
            tuple(layer for is_statement, layer in found if is_statement),
            notations=notations,
            referrers=tuple(one for one in referrers if one is not None),
        )

    async def _tagged(self, place: Place) -> list[Found]:
        try:
            manifest = await self._registry.manifest(place)
        except StatusError as error:
            if error.status == 404:
                return []
            raise
        return await self._layers(place, manifest.content)

    async def _referrer(self, place: Place, descriptor: Mapping[str, Any]) -> list[Found]:
        digest = str(descriptor.get("digest") or "")
        if not digest:
            return []
        manifest = await self._registry.manifest(place.at(digest))
        return await self._layers(place, manifest.content)

    async def _notations(
        self, place: Place, listed: Sequence[Mapping[str, Any]]
    ) -> tuple[NotarySignature, ...]:
        """Return the Notary signatures among the referrers of an artifact."""
        wanted = [
            one for one in listed if one.get("artifactType") == NOTATION and one.get("digest")
        ]
        parts = await asyncio.gather(
            *(self._notation(place.at(str(one["digest"]))) for one in wanted[:MOST_NOTATIONS])
        )
        return tuple(one for part in parts for one in part)

    async def _notation(self, place: Place) -> list[NotarySignature]:
        content = (await self._registry.manifest(place)).content
        return [
            NotarySignature(
                str(one.get("mediaType") or ""),
                await self._registry.blob(place, str(one.get("digest")), limit=MOST_ENVELOPE),
            )
            for one in items(content, "layers")[:1]
        ]

    async def _artifact(self, place: Place, descriptor: Mapping[str, Any]) -> Referrer | None:
        """Return an artifact beside the image: what its only layer holds, and the Notary signatures on itself."""
        digest = str(descriptor.get("digest") or "")
        if not digest:
            return None
        manifest, listed = await asyncio.gather(
            self._registry.manifest(place.at(digest)), self._registry.referrers(place, digest)
        )
        layers = items(manifest.content, "layers")
        payload = b""
        if layers and _size_of(layers[0]) <= _MOST_PAYLOAD:
            held = str(layers[0].get("digest"))
            payload = await self._registry.blob(place, held, limit=_MOST_PAYLOAD)
        kind = str(manifest.content.get("artifactType") or "")
        return Referrer(digest, kind, payload, await self._notations(place, listed))

    async def _layers(self, place: Place, manifest: Mapping[str, Any]) -> list[Found]:
        wanted = [one for one in items(manifest, "layers") if _kind_of(one) is not None]
        found = await asyncio.gather(*(self._layer(place, one) for one in wanted[:MOST_LAYERS]))
        return [one for one in found if one is not None]

    async def _layer(self, place: Place, descriptor: Mapping[str, Any]) -> Found | None:
        digest, kind = str(descriptor.get("digest") or ""), _kind_of(descriptor)
        if not digest or _size_of(descriptor) > _MOST_PAYLOAD:
            return None
        payload = await self._registry.blob(place, digest, limit=_MOST_PAYLOAD)
        if kind == BUNDLE:
            return _bundle(payload)
        notes = part(descriptor, "annotations")
        try:
            signature = base64.b64decode(str(notes.get(_SIGNATURE) or ""), validate=True)
        except (binascii.Error, ValueError):
            return None
        certificate, chain, bundle = (
            str(notes.get(f"{_PREFIX}{name}") or "").encode()
            for name in ("certificate", "chain", "bundle")
        )
        return kind == _ENVELOPE, Layer(payload, signature, certificate, chain, bundle)


def _kind_of(descriptor: Mapping[str, Any]) -> str | None:
    """Return what a layer or a referring manifest holds, None for what is no business of ours."""
    for key in ("artifactType", "mediaType"):
        kind = str(descriptor.get(key) or "")
        if kind.startswith(BUNDLE):
            return BUNDLE
        if kind in (_SIGNED, _SIG_ARTIFACT):
            return _SIGNED
        if kind in (_ENVELOPE, _ATT_ARTIFACT):
            return _ENVELOPE
    return None


def _size_of(descriptor: Mapping[str, Any]) -> int:
    size = descriptor.get("size")
    return size if isinstance(size, int) else 0


def _bundle(payload: bytes) -> Found | None:
    try:
        return layer_of_bundle(json.load(payload))
    except EngineError:
        return None


# Sigstore bundles rewritten as the layers that the engine verifies: one form for what signers store in several.
#
# Only bundles over DSSE envelopes are rewritten: those over messages do not say what they are about, and cosign keeps the
# claim apart. Field names: Sigstore's `bundle.v0.3` and before.

BUNDLE = "application/vnd.dev.sigstore.bundle"
_PEM_WIDTH = 64


def layer_of_bundle(bundle: Json) -> tuple[bool, Layer] | None:
    """Return whether a bundle is an attestation, and its layer; None for one without an envelope."""
    envelope = bundle.get("dsseEnvelope") if isinstance(bundle, dict) else None
    if not isinstance(envelope, dict):
        return None
    material = part(bundle, "verificationMaterial")
    certificates = _certificates(material)
    return True, Layer(
        orjson.dumps(envelope),
        certificate=certificates[0] if certificates else b"",
        chain=b"".join(certificates[1:]),
        bundle=_log_entry(material),
        is_bundle=True,
    )


def _certificates(material: Mapping[str, Any]) -> list[bytes]:
    """Return the signer's certificate and its chain, PEM."""
    one = part(material, "certificate").get("rawBytes")
    others = items(material, "x509CertificateChain", "certificates")
    listed = [one] if one else [item.get("rawBytes") for item in others]
    return [_pem(text) for text in listed if isinstance(text, str)]


def _pem(text: str) -> bytes:
    lines = [text[start : start + _PEM_WIDTH] for start in range(0, len(text), _PEM_WIDTH)]
    middle = "\n".join(lines)
    return f"-----BEGIN CERTIFICATE-----\n{middle}\n-----END CERTIFICATE-----\n".encode()


def _log_entry(material: Mapping[str, Any]) -> bytes:
    """Return the first log entry in the form that cosign writes beside signatures; empty where there is none."""
    entries = material.get("tlogEntries")
    entry = part(entries[0]) if isinstance(entries, list) and entries else {}
    promise = part(entry, "inclusionPromise").get("signedEntryTimestamp")
    if not promise:
        return b""
    try:
        key_id = base64.b64decode(str(part(entry, "logId").get("keyId"))).hex()
        payload = {
            "body": str(entry.get("canonicalizedBody") or ""),
            "integratedTime": int(entry.get("integratedTime") or 0),
            "logIndex": int(entry.get("logIndex") or 0),
            "logID": key_id,
        }
        return orjson.dumps({"SignedEntryTimestamp": str(promise), "Payload": payload})
    except (binascii.Error, ValueError, TypeError):
        return b""
