"""Container images: references, where objects name them, and verifyImages over image data given as input."""

from __future__ import annotations

from .data import ImageData, Layer
from .extract import FoundImage, ImageExtractor, compile_extractors, extract_images, find_images
from .outcomes import annotation_text, validate_image
from .reference import DOCKER_HUB, ImageReference, RegistryDefaults, parse_reference
from .verify import ImageRule, ImageVerdict, compile_image_rule

__all__ = [
    "DOCKER_HUB",
    "FoundImage",
    "ImageData",
    "ImageExtractor",
    "ImageReference",
    "ImageRule",
    "ImageVerdict",
    "Layer",
    "RegistryDefaults",
    "annotation_text",
    "compile_extractors",
    "compile_image_rule",
    "extract_images",
    "find_images",
    "parse_reference",
    "validate_image",
]
