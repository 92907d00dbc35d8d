"""The audit trail: records chained by their hashes, sealed in segments, checked for every kind of tampering.

A chain alone does not show a tail that was cut off or an older copy put back, so `verify` also takes checkpoints: heads of
the chain that were kept somewhere else.
"""

from __future__ import annotations

from .chain import GENESIS, Checkpoint, Segment, append, digest_of, seal, segment_of
from .verifying import Finding, verify

__all__ = [
    "GENESIS",
    "Checkpoint",
    "Finding",
    "Segment",
    "append",
    "digest_of",
    "seal",
    "segment_of",
    "verify",
]
