"""Signed manifests: whether an object is what somebody trusted signed (row A-77).

`compile_manifests` turns a rule's `manifests` block into a function of object, trust and instant. Attestors and counting
serve image signatures too. Nothing here reads files, asks a log or knows the time.
"""

from .annotations import DEFAULT_DOMAIN, FAMILIES, Envelope, SignatureSet, read_envelope
from .attestors import Circumstances, Signed, Verdict
from .compare import Difference, differences
from .counting import Answer, AttestorSet, Entry, ask_set, compile_sets
from .documents import reference_for, signed_documents, without_signatures
from .dryrun import DryRun
from .rule import ManifestRule, compile_manifests, is_manifests_rule, verify
from .trust import NO_TRUST, Authority, LogKey, Trust

__all__ = [
    "DEFAULT_DOMAIN",
    "FAMILIES",
    "NO_TRUST",
    "Answer",
    "AttestorSet",
    "Authority",
    "Circumstances",
    "Difference",
    "DryRun",
    "Entry",
    "Envelope",
    "LogKey",
    "ManifestRule",
    "SignatureSet",
    "Signed",
    "Trust",
    "Verdict",
    "ask_set",
    "compile_manifests",
    "compile_sets",
    "differences",
    "is_manifests_rule",
    "read_envelope",
    "reference_for",
    "signed_documents",
    "verify",
    "without_signatures",
]
