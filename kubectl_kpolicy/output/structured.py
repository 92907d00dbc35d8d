"""Data for other programs: JSON and YAML, of one object or a Kubernetes `List`, and names for `xargs`.

Nothing but the data is written: no banner, no colour. YAML is quoted so that Go's libraries read back what was written.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO

from .terminal_escape import escaped, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.model import Object

    from .table import Table


def json_text(value: Any) -> str:
    """Return a value as indented JSON that ends with a newline."""
    import orjson  # here, because loading it takes a tenth of what small commands take

    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    return escaped(text)


def yaml_text(value: Any, *, sort: bool = False) -> str:
    """Return a value as one YAML document in block style, keys in the order given or sorted."""
    from engine.lang.yaml.write import write  # here: tables need no YAML

    return write(value, sort=sort)


def yaml_stream(values: Iterable[Any]) -> str:
    """Return several documents as one stream."""
    return "---\n".join(map(yaml_text, values))


def list_of(objects: Sequence[Any]) -> dict[str, Any]:
    """Return objects as a Kubernetes `List`."""
    return {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"resourceVersion": ""},
        "items": list(objects),
    }


def name_of(obj: dict[str, Any]) -> str:
    """Return `kind.group/name`, or `kind/name` in the core group, as `kubectl get -o name` prints it."""
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    kind, name = str(obj.get("kind", "")).lower(), obj["metadata"]["name"]
    return f"{kind}.{group}/{name}" if group else f"{kind}/{name}"


def print_objects(objects: Sequence[Object], form: str) -> None:
    """Write grants as data: one as itself, several as a List."""
    if form == "name":
        sys.stdout.writelines(f"{name_of(obj)}\n" for obj in objects)
    else:
        write_object(sys.stdout, objects[0] if len(objects) == 1 else list_of(objects), form)


def write_list(
    out: TextIO,
    objects: Sequence[Object],
    table: Table,
    form: str,
    *,
    heads: bool = True,
    color: bool = False,
) -> None:
    """Write objects as json, yaml, name, markdown, wide or table; `table` holds the same as rows, for the formats that people read."""
    match form:
        case "json" | "yaml":
            write_object(out, list_of(objects), form)
        case "name":
            out.writelines(f"{shown(name_of(obj), out)}\n" for obj in objects)
        case "markdown":
            out.write(table.markdown())
        case _:
            out.write(table.text(wide=form == "wide", heads=heads, color=color))


def write_object(out: TextIO, value: Any, form: str) -> None:
    """Write one object as `json` or `yaml`."""
    out.write(json_text(value) if form == "json" else yaml_text(value))
