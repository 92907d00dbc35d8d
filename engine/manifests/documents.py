"""The documents inside a signed message, and the one among them that speaks for an object.

For the comparison, which needs one reference document. Both forms of messages are read here: YAML text, and the older
archive of YAML files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError, EvaluationError

from .annotations import annotations_of, is_signature_annotation
from .tarball import GZIP_MAGIC, yaml_members

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Object

_MAX_DOCUMENTS = 256


def signed_documents(message: bytes) -> list[Object]:
    """Return every mapping among the YAML documents of a message.

    Raise EvaluationError when the message is readable neither as YAML nor as an archive.
    """
    texts = yaml_members(message) if message.startswith(GZIP_MAGIC) else [message]
    documents = [document for text in texts for document in _mappings(text)]
    if len(documents) > _MAX_DOCUMENTS:
        raise EvaluationError(f"the signed message has more than {_MAX_DOCUMENTS} documents")
    return documents


def reference_for(obj: Object, documents: Iterable[Object]) -> Object | None:
    """Return the document that was signed for `obj`: equal group, kind and name, preferably of the same namespace.

    An object whose name was generated is represented by a nameless document with its `generateName`. None
    means that nothing of that name was signed.
    """
    same = [document for document in documents if _is_same(obj, document)]
    if not same:
        return None
    namespace = _metadata(obj, "namespace")
    return next((one for one in same if _metadata(one, "namespace") == namespace), same[0])


def has_kind(obj: Object, documents: Iterable[Object]) -> bool:
    """Tell whether any document is of the object's kind."""
    return any(document.get("kind") == obj.get("kind") for document in documents)


def without_signatures(obj: Object, domain: str) -> Object:
    """Return `obj` without the signature annotations of `domain`; the same object when it has none.

    An annotation map that becomes empty goes too.
    """
    annotations = annotations_of(obj)
    kept = {
        key: value for key, value in annotations.items() if not is_signature_annotation(key, domain)
    }
    if len(kept) == len(annotations):
        return obj
    metadata = {**obj["metadata"], "annotations": kept}
    if not kept:
        del metadata["annotations"]
    return {**obj, "metadata": metadata}


def _mappings(text: bytes) -> list[Object]:
    from engine.lang.yaml import load_all

    try:
        loaded = [document.value for document in load_all(text)]
    except EngineError as error:
        raise EvaluationError(f"the signed message is not readable: {error.message}") from error
    return [value for value in loaded if isinstance(value, dict)]


def _is_same(obj: Object, document: Object) -> bool:
    if document.get("kind") != obj.get("kind") or _group(document) != _group(obj):
        return False
    name, signed_name = _metadata(obj, "name"), _metadata(document, "name")
    if signed_name or not is_generated(obj, document):
        return name == signed_name
    return True


def is_generated(obj: Object, document: Object) -> bool:
    """Tell whether the object's name may come from the document's `generateName`."""
    prefix = _metadata(document, "generateName")
    name = _metadata(obj, "name")
    if not prefix or _metadata(document, "name") or _metadata(obj, "generateName") != prefix:
        return False
    return not name or name.startswith(prefix)


def _group(obj: Object) -> str:
    return str(obj.get("apiVersion") or "").rpartition("/")[0]


def _metadata(obj: Object, field: str) -> str:
    metadata = obj.get("metadata")
    return str(metadata.get(field) or "") if isinstance(metadata, dict) else ""
