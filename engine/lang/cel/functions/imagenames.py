"""Kyverno's image references: `image("nginx:1.27").tag()`, with the defaults of go-containerregistry.

Apart from `engine.images`, which reads references as the classic policies do: there the registry of `nginx` is `docker.io`,
here it is `index.docker.io`, and the repository is `library/nginx`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from engine.lang.cel.errors import CelError
from engine.lang.cel.values import Message

from .registry import KINDS, Library

LIBRARY: Final = Library(cost=20)
_REPOSITORY: Final = re.compile(r"[a-z0-9_\-./]{2,255}")
_TAG: Final = re.compile(r"[A-Za-z0-9_\-.]{1,128}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_REGISTRY: Final = re.compile(
    r"(?:\[[0-9A-Fa-f:.]+\]|[^\x00-\x20\x7f/?#%@\[\]\\^`{|}:]*)(?::[0-9]*)?"
)
_DEFAULT: Final = "index.docker.io"
_LONGEST: Final = 1000


@dataclass(frozen=True, slots=True)
class Image(Message):
    """A parsed reference; either a tag or a digest is set."""

    registry: str
    repository: str
    tag: str
    digest: str
    TYPE = "kyverno.Image"


KINDS["Image"] = (Image,)


def parse(text: str) -> Image | None:
    """Read an image reference; None when it is none."""
    if not text or len(text) > _LONGEST:
        return None
    base, at, digest = text.partition("@")
    base, tag = _split_tag(base)
    if (at and not _DIGEST.fullmatch(digest)) or not (tag is None or _TAG.fullmatch(tag)):
        return None
    registry, repository = _split_registry(base)
    if not _REPOSITORY.fullmatch(repository) or not _REGISTRY.fullmatch(registry):
        return None
    if registry in (_DEFAULT, "docker.io"):
        registry = _DEFAULT
        repository = repository if "/" in repository else f"library/{repository}"
    return Image(registry, repository, "" if at else tag or "latest", digest)


def _split_tag(base: str) -> tuple[str, str | None]:
    name, colon, tag = base.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (base, None)


def _split_registry(base: str) -> tuple[str, str]:
    first, slash, rest = base.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest
    return _DEFAULT, base


@LIBRARY.add("image(string) -> Image", "parseImageReference(string) -> Image")
def _image(text: str) -> Image:
    found = parse(text)
    if found is None:
        raise CelError(f"could not parse reference: {text[:200]}")
    return found


LIBRARY.declare(
    {
        "isImage(string) -> bool": lambda text: parse(text) is not None,
        "Image.registry() -> string": lambda image: image.registry,
        "Image.repository() -> string": lambda image: image.repository,
        "Image.tag() -> string": lambda image: image.tag,
        "Image.digest() -> string": lambda image: image.digest,
        "Image.identifier() -> string": lambda image: image.digest or image.tag,
        "Image.containsDigest() -> bool": lambda image: bool(image.digest),
    }
)
