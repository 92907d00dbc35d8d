"""Rows as text for programs and files: the formats of lists, for commands and for the console's export."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import orjson

from engine.fields import part

from .cells import cell_text
from .table import Column, Table
from .terminal_escape import escaped, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from kubectl_kpolicy.output.rows import Column as Shown
    from kubectl_kpolicy.output.rows import Listing, Row

_LONGEST = 100
_ROLES = {"fail": "bad", "error": "bad", "critical": "bad", "high": "bad", "warn": "warn", "medium": "warn",
          "pass": "good", "active": "good", "ok": "good", "expired": "quiet", "revoked": "quiet", "no": "bad"}  # fmt: skip


def table_of(
    rows: Sequence[Row],
    listing: Listing,
    now: datetime,
    *,
    labels: bool = False,
    is_whole: bool = True,
) -> Table:
    """Return rows as a table for people, wide columns marked as such, with labels as the last one if asked for.

    Running text is cut unless the table `is_whole`.
    """
    heads = [Column(one.head, one.wide, roles=_ROLES) for one in listing.columns]
    table = Table([*heads, Column("LABELS")] if labels else heads)
    for row in rows:
        cells = [_cell(one, row, now, is_whole=is_whole) for one in listing.columns]
        table.add(*(cell or "-" for cell in cells), *([_labels(row)] if labels else []))
    return table


def is_read_whole(out: TextIO, form: str) -> bool:
    """Tell whether a table may be as wide as it gets: where `-o wide` asks for it, and where no terminal breaks its lines."""
    return form == "wide" or not out.isatty()


def _cell(column: Shown, row: Row, now: datetime, *, is_whole: bool) -> str:
    """Return a cell as lists show it; running text is cut where a terminal would break it into many lines."""
    value = row.cells.get(column.id)
    text = column.brief(row, now) if column.brief else cell_text(column, value, now)
    is_cut = column.grows and not is_whole and len(text) > _LONGEST
    return f"{text[:_LONGEST]}…" if is_cut else text


def _labels(row: Row) -> str:
    found = part(row.object, "metadata", "labels")
    return ",".join(f"{key}={value}" for key, value in sorted(found.items())) or "<none>"


def write_rows(
    out: TextIO, rows: Sequence[Row], listing: Listing, form: str, now: datetime
) -> None:
    """Write rows as `jsonl`, `csv` or `md`."""
    match form:
        case "jsonl":
            out.writelines(escaped(orjson.dumps(row.object).decode()) + "\n" for row in rows)
        case "csv":
            _csv(out, rows, listing)
        case _:
            out.write(table_of(rows, listing, now).markdown())


def _csv(out: TextIO, rows: Sequence[Row], listing: Listing) -> None:
    """Write all columns; a cell that a spreadsheet would take for a formula is made text."""
    import csv

    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([one.id for one in listing.columns])
    for row in rows:
        writer.writerow([_safe(shown(row.text(one.id), out)) for one in listing.columns])


def _safe(text: str) -> str:
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
