"""Image names as reports show them: with registry and tag filled in (row V-09).

Only the report's list of images needs it; exclusions compare images as the pod spells them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .pod import Container

_REGISTRY: Final = "docker.io"
_TAG: Final = "latest"


def full_reference(container: Container) -> str:
    """Return the container's image in full; the container's name when it has no image."""
    image = container.image
    if not image:
        return container.name
    first, slash, _ = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        image = f"{_REGISTRY}/{image}"
    if "@" in image:
        return _without_tag(image)
    return image if ":" in image.rpartition("/")[2] else f"{image}:{_TAG}"


def _without_tag(image: str) -> str:
    """Drop the tag of an image that also has a digest: the digest decides."""
    name, _, digest = image.partition("@")
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}@{digest}"
