"""Signed manifests as values: the text that gets signed, and the documents that carry the signature.

For `kubectl kpolicy sign`, between reading and writing files; no key and no network is known here. All documents of a file
carry the same message, which holds all of them.
"""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING

from engine import manifests
from engine.fields import part
from engine.lang.yaml.write import write
from engine.manifests.annotations import MAX_SIGNATURES
from engine.manifests.compare import shown
from engine.record import record

from .errors import SigningError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object

_SEPARATOR = "\n---\n"


@record
class Proof:
    """A signature and what goes beside it: certificate (PEM) and Rekor bundle (JSON), empty where there is none."""

    signature: bytes
    certificate: bytes = b""
    bundle: bytes = b""


def message_of(documents: list[Object], domain: str) -> bytes:
    """Return the text to sign: all documents without their signature annotations."""
    texts = [write(manifests.without_signatures(one, domain), sort=True) for one in documents]
    return _SEPARATOR.join(texts).encode()


def existing_message(documents: list[Object], domain: str) -> bytes | None:
    """Return the message that a file already carries, None when it is unsigned.

    Raise UsageError when it says anything else than the documents do: a further signature would vouch for the old text.
    """
    envelopes = [manifests.read_envelope(one, domain) for one in documents]
    messages = {one.message for one in envelopes if one is not None}
    if not messages:
        return None
    if len(messages) > 1 or None in envelopes:
        raise UsageError("the documents of the file carry different signed messages")
    message = messages.pop()
    signed = manifests.signed_documents(message)
    for one in documents:
        reference = manifests.reference_for(one, signed) or {}
        changes = manifests.differences(
            manifests.without_signatures(reference, domain),
            manifests.without_signatures(one, domain),
        )
        if changes:
            raise UsageError(
                f"{title(one)} is not what was signed before: {shown(changes)}",
                help="sign it anew without `--append-signature`",
            )
    return message


def with_signature(
    documents: list[Object], message: bytes, proof: Proof, domain: str, *, append: bool
) -> list[Object]:
    """Return the documents with the signature in their annotations.

    `append` keeps the signatures that are there and takes the next free number; otherwise they are replaced.
    """
    return [_signed(one, message, proof, domain, append) for one in documents]


def annotated(documents: list[Object], extra: Mapping[str, str]) -> list[Object]:
    """Return the documents with further annotations."""
    if not extra:
        return documents
    return [_with_annotations(one, extra) for one in documents]


def title(obj: Object) -> str:
    """Return kind, namespace and name, as messages call an object."""
    metadata = obj.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName") or ""
    namespace = metadata.get("namespace")
    return f"{obj.get('kind')} {namespace}/{name}" if namespace else f"{obj.get('kind')} {name}"


def _signed(obj: Object, message: bytes, proof: Proof, domain: str, append: bool) -> Object:
    bare = obj if append else manifests.without_signatures(obj, domain)
    suffix = _free_suffix(part(bare, "metadata", "annotations"), domain)
    parts = {
        "signature": base64.b64encode(proof.signature).decode(),
        "certificate": _packed(proof.certificate),
        "bundle": _packed(proof.bundle),
    }
    added = {f"{domain}/{family}{suffix}": text for family, text in parts.items() if text}
    added[f"{domain}/{manifests.FAMILIES[0]}"] = _packed(message)
    return _with_annotations(bare, added)


def _free_suffix(present: Mapping[str, object], domain: str) -> str:
    for number in range(MAX_SIGNATURES):
        suffix = f"_{number}" if number else ""
        if f"{domain}/signature{suffix}" not in present:
            return suffix
    raise SigningError(f"the file already carries {MAX_SIGNATURES} signatures")


def _with_annotations(obj: Object, added: Mapping[str, str]) -> Object:
    metadata = {**obj["metadata"], "annotations": {**part(obj, "metadata", "annotations"), **added}}
    return {**obj, "metadata": metadata}


def _packed(data: bytes) -> str:
    # A fixed time keeps the output the same for the same input.
    return base64.b64encode(gzip.compress(data, mtime=0)).decode() if data else ""
