"""Keeps one-time codes: what became of each use, the state of codes that people issued, their keys, and what is forgotten."""

from .confirming import CodeLoop
from .upkeep import PruneLoop, RotationLoop

__all__ = ["CodeLoop", "PruneLoop", "RotationLoop"]
