"""Container images: references, where objects name them, and verifyImages over image data given as input."""

from __future__ import annotations

from .extract import FoundImage, ImageExtractor, compile_extractors, extract_images, find_images
from .reference import DOCKER_HUB, ImageReference, RegistryDefaults, parse_reference

__all__ = [
    "DOCKER_HUB",
    "FoundImage",
    "ImageExtractor",
    "ImageReference",
    "RegistryDefaults",
    "compile_extractors",
    "extract_images",
    "find_images",
    "parse_reference",
]
