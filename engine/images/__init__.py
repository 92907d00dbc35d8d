"""Container images: references, where objects name them, and verifyImages over image data given as input."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.lang.imagetext import DOCKER_HUB, RegistryDefaults

from .extract import FoundImage, extract_images, find_images
from .reference import ImageReference, parse_reference

if TYPE_CHECKING:
    from .data import ImageData, Layer, Referrer
    from .notation import NotarySignature
    from .verify import ImageRule, ImageVerdict, compile_image_rule

__all__ = [
    "DOCKER_HUB",
    "FoundImage",
    "ImageData",
    "ImageReference",
    "ImageRule",
    "ImageVerdict",
    "Layer",
    "NotarySignature",
    "Referrer",
    "RegistryDefaults",
    "compile_image_rule",
    "extract_images",
    "find_images",
    "parse_reference",
]

_LATER = {
    "ImageData": "data",
    "Layer": "data",
    "NotarySignature": "notation",
    "Referrer": "data",
    "ImageRule": "verify",
    "ImageVerdict": "verify",
    "compile_image_rule": "verify",
}
"""What only rules that verify images need: loaded when first asked for, to keep commands quick to start."""


def __getattr__(name: str) -> Any:
    """Load one of the names in `_LATER`."""
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{module}", __name__), name)
