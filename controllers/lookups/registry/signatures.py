"""Signatures and attestations beside an image: cosign's tags, and what refers to the image's digest.

They are only gathered here. Nothing is believed: the engine verifies every layer, and one that cannot be read is as good as
none. Forms: cosign's `sha256-….sig` and `.att` tags, the same manifests as referrers, Sigstore bundles as referrers.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Any

from controllers.lookups.errors import StatusError
from engine.errors import EngineError
from engine.images import ImageData, Layer
from engine.lang import json

from .bundles import BUNDLE, layer_of_bundle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .client import Registry
    from .places import Place

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

    async def of(self, place: Place, digest: str) -> ImageData:
        """Return everything found; raises OutsideError where the registry cannot be asked."""
        stem = digest.replace(":", "-")
        parts = await asyncio.gather(
            self._tagged(place.at(f"{stem}.sig")),
            self._tagged(place.at(f"{stem}.att")),
            self._referring(place, digest),
        )
        found = [one for part in parts for one in part][:MOST_LAYERS]
        return ImageData(
            digest,
            tuple(layer for is_statement, layer in found if not is_statement),
            tuple(layer for is_statement, layer in found if is_statement),
        )

    async def _tagged(self, place: Place) -> list[Found]:
        try:
            manifest = await self._registry.manifest(place)
        except StatusError as error:
            if error.status == 404:
                return []
            raise
        return await self._layers(place, manifest.content)

    async def _referring(self, place: Place, digest: str) -> list[Found]:
        listed = await self._registry.referrers(place, digest)
        wanted = [one for one in listed if _kind_of(one) is not None][:MOST_LAYERS]
        parts = await asyncio.gather(*(self._referrer(place, one) for one in wanted))
        return [one for part in parts for one in part]

    async def _referrer(self, place: Place, descriptor: Mapping[str, Any]) -> list[Found]:
        digest = str(descriptor.get("digest") or "")
        if not digest:
            return []
        manifest = await self._registry.manifest(place.at(digest))
        return await self._layers(place, manifest.content)

    async def _layers(self, place: Place, manifest: Mapping[str, Any]) -> list[Found]:
        listed = manifest.get("layers")
        layers = (
            [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        )
        wanted = [one for one in layers if _kind_of(one) is not None][:MOST_LAYERS]
        found = await asyncio.gather(*(self._layer(place, one) for one in wanted))
        return [one for one in found if one is not None]

    async def _layer(self, place: Place, descriptor: Mapping[str, Any]) -> Found | None:
        digest, kind = str(descriptor.get("digest") or ""), _kind_of(descriptor)
        if not digest or _size_of(descriptor) > _MOST_PAYLOAD:
            return None
        payload = await self._registry.blob(place, digest, limit=_MOST_PAYLOAD)
        if kind == BUNDLE:
            return _bundle(payload)
        notes = descriptor.get("annotations")
        notes = notes if isinstance(notes, dict) else {}
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
