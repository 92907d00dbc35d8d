"""What engines ask of registries: the map of an imageRegistry entry, and what signatures there are (rows A-54, A-88)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from controllers.kube.clock import Clock, SystemClock
from controllers.lookups.errors import OutsideError, StatusError
from engine.errors import EngineError
from engine.images import DOCKER_HUB, ImageData, RegistryDefaults
from engine.lang import json

from .places import Place, place_of
from .signatures import Signatures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
