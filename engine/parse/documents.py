"""What parsing of every kind shares: recognising a document, and reporting its problems with file, line and path.

`problems` lists everything that is wrong with the fields of a document, `require_sound` raises the first of it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.errors import Location, PolicyError
from engine.model.kinds import BY_NAME, loaded
from engine.record import record

from .check import Fault, Problem, check, path_text
from .schema import METADATA, SPECS, Free, Shape, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.model import Json

    LineOf = Callable[[Sequence[str | int]], int]

GROUP = "kyverno.io"


@record
class UnknownField:
    """A field that the kind does not have, with the known name nearest to it (may be empty)."""

    path: str
    nearest: str
    line: int = 0


@lru_cache(maxsize=64)
def document_shape(api_version: str, kind: str) -> Shape | None:
    """Return the shape of whole documents of a kind, None when the kind or version is not served."""
    group, _, version = api_version.partition("/")
    spec = _specs(group, kind).get(version)
    if spec is None:
        return None
    return Shape(
        {
            "apiVersion": Text(),
            "kind": Text(),
            "metadata": METADATA,
            "spec": spec,
            "status": Free(),
        },
        ("metadata", "spec"),
    )


def _specs(group: str, kind: str) -> Mapping[str, Shape]:
    """Return the spec shapes of a kind by version; those of CEL are loaded with the first document of their groups."""
    row = BY_NAME.get(kind)
    if row is not None and row.group == group:
        shape = loaded(row.family.shape)
        return dict.fromkeys(row.versions, shape) if isinstance(shape, Shape) else shape
    if group == GROUP:
        return SPECS.get(kind, {})
    if not group.endswith((".kyverno.io", ".k8s.io")):
        return {}
    from .schema.celkinds import CEL_SPECS

    return CEL_SPECS.get(group, {}).get(kind, {})


def problems(doc: Mapping[str, Json]) -> list[Problem]:
    """Return every problem with the fields of a document, in its order; none for a kind that is not served."""
    shape = document_shape(str(doc.get("apiVersion")), str(doc.get("kind")))
    return list(check(doc, shape)) if shape else []


def unknown_fields(doc: Mapping[str, Json], *, line_of: LineOf | None = None) -> list[UnknownField]:
    """Return the fields of a document that its kind and version do not have."""
    return [
        UnknownField(path_text(item.path), item.nearest, line_of(item.path) if line_of else 0)
        for item in problems(doc)
        if item.fault is Fault.UNKNOWN
    ]


def require_sound(
    doc: Json,
    kinds: Sequence[str],
    *,
    at: Location,
    line_of: LineOf | None,
    strict: bool,
    group: str = GROUP,
) -> None:
    """Raise PolicyError for the first problem of a document that ought to be one of `kinds` of an API group.

    Unknown fields count when `strict`; wrong types, values and missing fields always do.
    """
    if not isinstance(doc, dict):
        raise PolicyError("the document must be a map", at=at)
    api_version = str(doc.get("apiVersion"))
    known = document_shape(api_version, str(doc.get("kind")))
    if known is None or doc["kind"] not in kinds or not api_version.startswith(f"{group}/"):
        found = f"`{api_version} {doc.get('kind')}` is not a {' or '.join(kinds)}"
        versions = ", ".join(f"`{group}/{version}`" for version in _specs(group, kinds[0]))
        help_text = f"known versions are {versions}"
        raise PolicyError(f"{found} of a known version", at=at, help=help_text)
    for problem in problems(doc):
        if strict or problem.fault is not Fault.UNKNOWN:
            raise PolicyError(
                problem.message,
                at=place(at, problem.path, line_of),
                help=f"did you mean `{problem.nearest}`?" if problem.nearest else "",
            )


def place(at: Location, path: Sequence[str | int], line_of: LineOf | None) -> Location:
    """Return where a path of a document stands: its own line where that can be known."""
    line = line_of(path) if line_of else at.line
    return Location(at.file, line, path_text(tuple(path)))
