"""The formats of lists of objects and the flag that chooses one; a command names those it has.

Reports for other tools (JUnit, SARIF) are written where results are known, beside `apply` and `test`; here is what any list of
objects can be written as.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from .structured import json_text, list_of, name_of, yaml_text
from .terminal_escape import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Object

    from .table import Table


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
        case "json":
            out.write(json_text(list_of(objects)))
        case "yaml":
            out.write(yaml_text(list_of(objects)))
        case "name":
            out.writelines(f"{shown(name_of(obj), out)}\n" for obj in objects)
        case "markdown":
            out.write(table.markdown())
        case _:
            out.write(table.text(wide=form == "wide", heads=heads, color=color))


def write_object(out: TextIO, value: Object, form: str) -> None:
    """Write one object as `json` or `yaml`."""
    out.write(json_text(value) if form == "json" else yaml_text(value))
