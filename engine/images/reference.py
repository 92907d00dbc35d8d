"""Image references: `ghcr.io/org/app:v1@sha256:…` taken apart the way Kyverno takes them apart (row V-09).

For `images.*` variables, `image_normalize` and image verification. Apart from extraction because a reference is text only
and knows nothing of objects. The grammar is that of the OCI reference library: registry, path, tag and digest, all
anchored; the default registry is written in front of names that have none.
"""

from __future__ import annotations

from functools import lru_cache

from engine.lang import imagetext
from engine.lang.imagetext import DOCKER_HUB, RegistryDefaults
from engine.record import lazy, record


@record
class ImageReference:
    """One parsed image reference.

    `name` is the last part of `path`; `tag` is `latest` when the text had neither tag nor digest; `digest` keeps its
    algorithm prefix. Empty strings stand for what is absent.
    """

    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def repository(self) -> str:
        """Registry and path, without tag and digest."""
        return f"{self.registry}/{self.path}" if self.registry else self.path

    @lazy
    def reference(self) -> str:
        """The full text; the digest wins over the tag."""
        return f"{self.repository}@{self.digest}" if self.digest else self.reference_with_tag

    @property
    def reference_with_tag(self) -> str:
        """The text by tag. Kyverno keeps the colon of an empty tag, and policies see it."""
        return f"{self.repository}:{self.tag}"

    def to_json(self, pointer: str = "") -> dict[str, str]:
        """Return the fields that a policy sees as `images.containers.<name>` (row V-08); absent ones are left out."""
        shown = {
            "name": self.name,
            "path": self.path,
            "reference": self.reference,
            "referenceWithTag": self.reference_with_tag,
        }
        optional = (("registry", self.registry), ("tag", self.tag), ("digest", self.digest))
        shown.update({key: text for key, text in optional if text})
        if pointer:
            shown["jsonPointer"] = pointer
        return shown


@lru_cache(maxsize=4096)
def parse_reference(text: str, defaults: RegistryDefaults = DOCKER_HUB) -> ImageReference:
    """Return the parts of an image reference (row V-09).

    Raise EvaluationError with Kyverno's text when it is none: `bad image: …: repository name must be lowercase`.
    """
    return ImageReference(*imagetext.parse(text, defaults))
