"""The forms in which clients ask for objects: whole, as a table for kubectl, or their metadata only."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from engine.lang import rfc3339
from engine.lang.duration import span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from controllers.kube import KubeError
    from controllers.manifests.crds.kinds import Column
    from engine.model import Object

    from .served import Served

META: Final = "meta.k8s.io"
_ASKED = re.compile(r";\s*(as|g|v)=([^;,\s]+)")
_PARTIAL: Final = "PartialObjectMetadata"
_FIRST: Final = b'{"metadata":'
_read = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Form:
    """A form: `name` is empty for whole objects; `rows_hold` is what a row of a table holds of its object."""

    name: str = ""
    rows_hold: str = "Metadata"

    @property
    def is_table(self) -> bool:
        """Whether kubectl is to print it."""
        return self.name == "Table"


WHOLE: Final = Form()


def form_of(accept: str, rows_hold: str = "") -> Form:
    """Return the first form of an Accept header that there is; JSON in any case."""
    for one in accept.split(","):
        media, _, _ = one.partition(";")
        if media.strip() not in ("application/json", "*/*", ""):
            continue
        asked = dict(_ASKED.findall(one))
        if not asked.get("as"):
            return WHOLE
        if (asked.get("g"), asked.get("v")) == (META, "v1"):
            name = asked["as"]
            if name == "Table":
                return Form(name, rows_hold or "Metadata")
            if name in (_PARTIAL, f"{_PARTIAL}List"):
                return Form(_PARTIAL)
    return WHOLE


class Rendering:
    """Objects of a kind in a form, at an instant; `has_columns` of a table is said once in a watch."""

    def __init__(self, served: Served, form: Form, now: datetime) -> None:
        self._served, self._form = served, form
        self._cells = [_cell(column, now) for column in served.defined.columns]

    def one(self, body: bytes, *, has_columns: bool = True) -> bytes:
        """Return one object."""
        if self._form.is_table:
            return self._table(
                [body],
                {"resourceVersion": _metadata(body)["resourceVersion"]},
                has_columns=has_columns,
            )
        return self._partial(body) if self._form.name else self._served.document(body)

    def many(self, bodies: Sequence[bytes], metadata: Object) -> bytes:
        """Return a list with what is said of it."""
        if self._form.is_table:
            return self._table(bodies, metadata)
        kind = self._served.kind
        head = {"apiVersion": kind.api_version, "kind": self._served.list_kind}
        one = self._served.document
        if self._form.name:
            head = {"apiVersion": f"{META}/v1", "kind": f"{_PARTIAL}List"}
            one = self._partial
        start = orjson.dumps({**head, "metadata": metadata})[:-1]
        return b'%b,"items":[%b]}' % (start, b",".join(map(one, bodies)))

    def bookmark(self, metadata: Object) -> bytes:
        """Return what tells how far a watch is: an object of which only the version means something."""
        if self._form.is_table:
            return self._table([], metadata, has_columns=False)
        return self.one(orjson.dumps({"metadata": metadata}))

    def _partial(self, body: bytes) -> bytes:
        return orjson.dumps(_partial(_metadata(body)))

    def _table(
        self, bodies: Sequence[bytes], metadata: Object, *, has_columns: bool = True
    ) -> bytes:
        made = {"kind": "Table", "apiVersion": f"{META}/v1", "metadata": metadata}
        columns = _definitions(self._served) if has_columns else None
        rows = [self._row(body) for body in bodies]
        return orjson.dumps({**made, "columnDefinitions": columns, "rows": rows})

    def _row(self, body: bytes) -> Object:
        report = orjson.loads(body)
        row: Object = {
            "cells": [report["metadata"]["name"], *(cell(report) for cell in self._cells)]
        }
        if self._form.rows_hold == "Object":
            row["object"] = orjson.Fragment(self._served.document(body))
        elif self._form.rows_hold != "None":
            row["object"] = _partial(report["metadata"])
        return row


def _metadata(body: bytes) -> Object:
    """Return the metadata of a report; they stand first in what is kept, and the rest, which is ten times as long, is not read."""
    metadata: Object
    if body.startswith(_FIRST):
        metadata, _ = _read(body.decode(), len(_FIRST))
    else:
        metadata = orjson.loads(body)["metadata"]
    return metadata


def _partial(metadata: Object) -> Object:
    return {"kind": _PARTIAL, "apiVersion": f"{META}/v1", "metadata": metadata}


def _definitions(served: Served) -> list[Object]:
    name = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
    return [
        name,
        *(
            {
                "name": one.name,
                "type": one.type,
                "format": "",
                "description": "",
                "priority": one.priority,
            }
            for one in served.defined.columns
        ),
    ]


def _cell(column: Column, now: datetime) -> Callable[[Object], Any]:
    path = column.path.strip(".").split(".")

    def cell(report: Object) -> Any:
        found: Any = report
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        if column.type != "date":
            return found
        at = rfc3339.read(found)
        return "<unknown>" if at is None else span((now - at).total_seconds())

    return cell


SUCCESS: Final = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}'


def status_of(error: KubeError) -> bytes:
    """Return an error as a Status."""
    code = error.status or 500
    wait = {"retryAfterSeconds": int(error.retry_after)} if error.retry_after else {}
    return orjson.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": error.message,
            "reason": error.reason or "InternalError",
            "details": {**error.details, **wait},
            "code": code,
        }
    )
