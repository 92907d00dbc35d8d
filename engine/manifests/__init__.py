"""Signed manifests: whether an object is what somebody trusted signed (row A-77).

`compile_manifests` turns a rule's `manifests` block into a function of object, trust and instant. Attestors and counting
serve image signatures too. Nothing here reads files, asks a log or knows the time.
"""

from .annotations import FAMILIES, read_envelope
from .attestors import Circumstances, Signed
from .compare import differences
from .counting import Answer, AttestorSet, Entry, ask_set, compile_sets
from .documents import reference_for, signed_documents, without_signatures
from .rule import compile_manifests
from .trust import Trust

__all__ = [
    "FAMILIES",
    "Answer",
    "AttestorSet",
    "Circumstances",
    "Entry",
    "Signed",
    "Trust",
    "ask_set",
    "compile_manifests",
    "compile_sets",
    "differences",
    "read_envelope",
    "reference_for",
    "signed_documents",
    "without_signatures",
]
