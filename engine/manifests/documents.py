"""The documents inside a signed message, and the one among them that speaks for an object.

For the comparison, which needs one reference document. Both forms of messages are read here: YAML text, and the older
archive of YAML files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError, EvaluationError, LimitError
from engine.fields import part

from .annotations import gunzip, is_signature_annotation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    annotations = part(obj, "metadata", "annotations")
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
    return str(part(obj, "metadata").get(field) or "")


# YAML files inside a `.tar.gz`: the older form of signed messages, read in memory and never extracted.
#
# For the reading of signed documents only. Written by hand because the standard reader wants a file and follows links,
# sparse maps and much else that a signed message has no use for; here only regular files count.

GZIP_MAGIC = b"\x1f\x8b"
_BLOCK = 512
_MAX_MEMBERS = 256
_EMPTY_BLOCK = bytes(_BLOCK)


def yaml_members(data: bytes) -> list[bytes]:
    """Return the contents of all YAML files of a compressed archive, in its order.

    Raise EvaluationError when it is no archive, LimitError when it is too large.
    """
    archive = gunzip(data)
    return [content for name, content in _files(archive) if name.endswith((".yaml", ".yml"))]


def _files(archive: bytes) -> Iterator[tuple[str, bytes]]:
    position, long_name = 0, ""
    for _ in range(_MAX_MEMBERS):
        header = archive[position : position + _BLOCK]
        if not header or header == _EMPTY_BLOCK:
            return
        size, kind = _size(header), header[156:157]
        content = archive[position + _BLOCK : position + _BLOCK + size]
        if len(header) < _BLOCK or len(content) < size:
            raise _not_an_archive()
        position += _BLOCK + -(-size // _BLOCK) * _BLOCK
        if kind == b"x":
            long_name = _pax_path(content)
        elif kind == b"L":
            long_name = _text(content)
        else:
            if kind in {b"0", b"\0"}:
                yield long_name or _name(header), content
            long_name = ""
    raise LimitError(f"an archive of more than {_MAX_MEMBERS} members")


def _size(header: bytes) -> int:
    digits = header[124:136].strip(b" \0")
    checksum = header[148:156].strip(b" \0")
    try:
        expected, size = int(checksum or b"0", 8), int(digits or b"0", 8)
    except ValueError as error:
        raise _not_an_archive() from error
    if expected != sum(header[:148]) + 8 * ord(" ") + sum(header[156:]) or size < 0:
        raise _not_an_archive()
    return size


def _name(header: bytes) -> str:
    prefix = _text(header[345:500]) if header[257:262] == b"ustar" else ""
    name = _text(header[:100])
    return f"{prefix}/{name}" if prefix else name


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def _pax_path(content: bytes) -> str:
    """Find `path` among records of a length, a blank, `key=value` and a line feed."""
    while content:
        digits, _, _ = content.partition(b" ")
        if not digits.isdigit() or len(digits) > len(str(len(content))):
            break
        length = int(digits)
        record = content[len(digits) + 1 : length].rstrip(b"\n")
        key, _, value = record.partition(b"=")
        if key == b"path":
            return value.decode("utf-8", "replace")
        if not length:
            break
        content = content[length:]
    return ""


def _not_an_archive() -> EvaluationError:
    return EvaluationError("the signed message is not a readable archive")
