"""Reading a whole text: which reader suits it, what counts as a document, where each one stands."""

from __future__ import annotations

import codecs
from typing import Any

from engine.errors import DocumentError, Location
from engine.lang import json
from engine.lang.work import LIMITS, Limits

from .build import Builder, CarefulBuilder
from .compose import needs_care, roots
from .document import Document
from .scalars import INT64_MAX, through_json

_BYTE_ORDER_MARK = "\ufeff"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def load_all(
    text: str | bytes, *, file: str = "", limits: Limits = LIMITS, strict: bool = False
) -> list[Document]:
    """Return every document of a text that is not empty, in order.

    Text that begins as JSON and is JSON takes a fast path with the same results. Where `strict`, a key that appears twice in one
    mapping is an error; otherwise its last value counts, and documents of YAML tell where it stands. Raise DocumentError, and
    nothing else, for what cannot be read.
    Exceptions to sigs.k8s.io/yaml: escaped surrogate pairs are accepted in JSON, nesting and alias expansion end at `limits`.
    """
    if len(text) > limits.size:
        raise DocumentError(f"larger than {limits.size} bytes", at=Location(file))
    text = decode(text, file) if isinstance(text, bytes) else text
    text = text.removeprefix(_BYTE_ORDER_MARK)
    found = None if strict else load_json(text, file, limits)
    return _load_yaml(text, file, limits, strict=strict) if found is None else found


def load(
    text: str | bytes, *, file: str = "", limits: Limits = LIMITS, strict: bool = False
) -> Any:
    """Return the value of the first document, None where there is none; raise DocumentError as `load_all`."""
    documents = load_all(text, file=file, limits=limits, strict=strict)
    return documents[0].value if documents else None


def decode(data: bytes, file: str = "") -> str:
    """Return bytes as text: UTF-8, or UTF-16 where a byte order mark says so; raise DocumentError with the line."""
    try:
        return data.decode("utf-16" if data.startswith(_WIDE) else "utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError("not encoded as UTF-8", at=Location(file, line)) from error


def _load_yaml(text: str, file: str, limits: Limits, *, strict: bool) -> list[Document]:
    """Return the documents of a YAML text; those without a value are left out."""
    care = strict or needs_care(text)
    builder = (
        CarefulBuilder(limits, file, size=len(text), strict=strict)
        if care
        else Builder(limits, file)
    )
    documents = []
    for root in roots(text, limits, file, care=care):
        value = builder.build(root)
        if value is not None:
            start = text.rfind("\n", 0, root.start_mark.index) + 1
            documents.append(
                Document(
                    value,
                    root.start_mark.line + 1,
                    file,
                    text=text,
                    start=start,
                    end=root.end_mark.index,
                    repeated=tuple(builder.repeated),
                )
            )
        builder.repeated.clear()
    return documents


# The fast path of the document reader: a text that is JSON, read by a JSON parser, with the results YAML would give.
#
# kubectl's answers and CI pipelines are JSON; reading them as YAML costs five times as much. Numbers are brought to the form they
# have after Kubernetes' way through YAML (`1.0` is the integer 1), so that nobody can tell which path a text took.


def load_json(text: str, file: str, limits: Limits) -> list[Document] | None:
    """Return the one document of a JSON text, or None where the text is something else; raise DocumentError if too deep."""
    body = text.lstrip(" \t\r\n")
    if body[:1] not in ("{", "["):
        return None
    import orjson  # here, because loading it takes a tenth of what small commands take

    try:
        value = orjson.loads(body)
    except ValueError:
        return None
    json.check_depth(value, limits, file)
    _settle(value)
    line = text.count("\n", 0, len(text) - len(body)) + 1
    return [Document(value, line, file, text=text, end=len(text))]


def _settle(value: Any) -> None:
    """Bring the numbers inside a freshly read value to their form after YAML, in place; nobody else holds it yet."""
    entries = value.items() if type(value) is dict else enumerate(value)
    for key, child in entries:
        kind = type(child)
        if kind is dict or kind is list:
            _settle(child)
        elif kind is float or (kind is int and child > INT64_MAX):
            value[key] = through_json(child)
