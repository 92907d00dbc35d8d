"""Answers in the form that the client asked for: plain JSON, a Table with printer columns, or metadata only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from .printers import columns_of

if TYPE_CHECKING:
    from kpolicy_sandbox.call import Call
    from kpolicy_sandbox.objects.read import Page

Object = dict[str, Any]
_META = "meta.k8s.io"


@dataclass(frozen=True, slots=True)
class Form:
    """How objects are shown: `kind` is "", `Table` or `PartialObjectMetadata`, in a version of `meta.k8s.io`."""

    kind: str = ""
    version: str = "v1"
    include: str = "Metadata"


def form_of(accept: str, query: Any) -> Form:
    """Return the form that an Accept header asks for: the first that we have, plain JSON for want of any."""
    for entry in accept.split(","):
        media, *parameters = [part.strip() for part in entry.split(";")]
        given = dict(part.partition("=")[::2] for part in parameters)
        kind = given.get("as", "").removesuffix("List")
        if media != "application/json" or given.get("g", _META) != _META:
            continue
        if not kind:
            return Form()
        if kind in {"Table", "PartialObjectMetadata"} and given.get("v") in {"v1", "v1beta1"}:
            return Form(kind, given["v"], query.get("includeObject") or "Metadata")
    return Form()


def object_in(form: Form, call: Call, obj: Object) -> Object:
    """Return one object in a form; a Status is never turned into anything else."""
    if not form.kind or obj.get("kind") == "Status":
        return obj
    if form.kind == "PartialObjectMetadata":
        return _partial(form, obj)
    meta = obj.get("metadata") or {}
    return _table(form, call, [obj], {"resourceVersion": meta.get("resourceVersion", "")})


def list_in(form: Form, call: Call, page: Page) -> Object:
    """Return a page of a list in a form."""
    meta: Object = {"resourceVersion": page.revision}
    if page.token:
        meta["continue"] = page.token
        if not (call.query.get("labelSelector") or call.query.get("fieldSelector")):
            meta["remainingItemCount"] = page.left
    if form.kind == "Table":
        return _table(form, call, page.items, meta)
    kind, version, items = call.resource.list_kind, call.resource.api_version, page.items
    if form.kind:
        kind, version = "PartialObjectMetadataList", f"{_META}/{form.version}"
        items = [_partial(form, obj) for obj in page.items]
    return {"kind": kind, "apiVersion": version, "metadata": meta, "items": items}


def _partial(form: Form, obj: Object) -> Object:
    version = f"{_META}/{form.version}"
    return {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": obj.get("metadata")}


def _table(form: Form, call: Call, objects: list[Object], meta: Object) -> Object:
    columns = columns_of(call.resource)
    now = call.cluster.clock.now()
    rows = []
    for obj in objects:
        row: Object = {"cells": [column.cell(obj, now) for column in columns]}
        if form.include == "Object":
            row["object"] = obj
        elif form.include != "None":
            row["object"] = _partial(form, obj)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": f"{_META}/{form.version}",
        "metadata": meta,
        "columnDefinitions": [column.definition() for column in columns],
        "rows": rows,
    }


def encoded(value: Any) -> bytes:
    """Return JSON with the line end that ends every answer."""
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
