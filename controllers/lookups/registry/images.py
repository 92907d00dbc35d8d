"""What engines ask of registries: the map of an imageRegistry entry, and what signatures there are (rows A-54, A-88)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controllers.lookups.errors import OutsideError, StatusError
from engine.errors import EngineError
from engine.images import DOCKER_HUB, ImageData
from engine.lang import json

from .places import Place, place_of
from .signatures import Signatures
from .verified import VerifiedImages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.evaluate import ImageLookup, SignatureLookup
    from engine.images import RegistryDefaults
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
        listed = index.content.get("manifests")
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and _is_for(one.get("platform")) and one.get("digest"):
                return await self._registry.manifest(place.at(str(one["digest"])))
        raise OutsideError(f"there is no image for linux/amd64 in `{place.name}`")

    async def _config(self, place: Place, manifest: Manifest) -> Json:
        config: Any = manifest.content.get("config")
        digest = str(config.get("digest") or "") if isinstance(config, dict) else ""
        if not digest:
            raise OutsideError(f"`{place.name}` has a manifest without a configuration")
        found: Object = json.load(await self._registry.blob(place, digest, limit=_MOST_CONFIG))
        return found


def _is_for(platform: Mapping[str, Any] | None) -> bool:
    if not isinstance(platform, dict):
        return False
    return all(platform.get(key) == value for key, value in _PLATFORM.items())
