"""Rows in the format that was asked for: tables as kubectl prints them, data for programs, counts by a column."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .selection import column_named

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from kubectl_kpolicy.output.rows import Listing, Row

    from .selection import ListRequest

_BY_NAME = ("grants", "inbox")
"""Listings whose names people need for the next command, though the console shows them on demand only."""


def print_rows(
    flags: ListRequest,
    rows: Sequence[Row],
    listing: Listing,
    now: datetime,
    unknown: Sequence[str] = (),
) -> None:
    """Print rows; that there is nothing is said on standard error, so that standard output holds data only.

    `unknown` are clusters of whose rows nothing is known: tables for people say so in the place of the rows.
    """
    from kubectl_kpolicy.output.listings import is_read_whole, table_of, write_rows
    from kubectl_kpolicy.output.paths import columns, jsonpath
    from kubectl_kpolicy.output.structured import list_of, write_list
    from kubectl_kpolicy.output.table import Column, Table, wanted
    from kubectl_kpolicy.output.terminal_escape import shown

    out, form = sys.stdout, flags.output
    objects = [row.object for row in rows]
    if flags.group_by:
        _print_groups(flags, rows, listing, unknown)
    elif form.startswith("jsonpath="):
        out.write(shown(jsonpath(list_of(objects), form.removeprefix("jsonpath=")), out))
    elif form.startswith("custom-columns="):
        lines = columns(objects, form.removeprefix("custom-columns="), heads=not flags.no_headers)
        out.write(Table([Column("") for _ in lines[0]], lines).text(heads=False) if lines else "")
    elif form in ("jsonl", "csv"):
        write_rows(out, rows, listing, form, now)
    elif rows or unknown or form not in ("table", "wide"):
        is_whole = is_read_whole(out, form)
        shown_as = named_first(listing)
        told = [*rows, *(_unknown(name, shown_as) for name in unknown)]
        table = table_of(told, shown_as, now, labels=flags.show_labels, is_whole=is_whole)
        color = wanted(flags.color, out)
        write_list(out, objects, table, form, heads=not flags.no_headers, color=color)
    if not (rows or unknown) and form in ("table", "wide") and not flags.quiet:
        print(_nothing(flags), file=sys.stderr)


def _unknown(cluster: str, listing: Listing) -> Row:
    """Return the row that stands for those of a cluster that could not be asked."""
    from kubectl_kpolicy.output.rows import CLUSTER, Row, Shape

    worded = (Shape.TEXT, Shape.STATE, Shape.SEVERITY)
    first = next(one for one in listing.columns if one.id != CLUSTER.id and one.shape in worded and not one.wide)  # fmt: skip
    return Row(cluster, {CLUSTER.id: cluster, first.id: "unknown"})


def named_first(listing: Listing) -> Listing:
    """Return a listing for a table: where the next command needs a name, it is the first column."""
    from engine.record import replace
    from kubectl_kpolicy.output.rows import CLUSTER, Column

    if listing.noun not in _BY_NAME:
        return listing
    others = [column for column in listing.columns if column.id != "name"]
    first = [others.pop(0)] if others[0] is CLUSTER else []
    return replace(listing, columns=(*first, Column("name", "NAME"), *others))


def _nothing(flags: ListRequest) -> str:
    place = flags.place or ("" if flags.connection.all_namespaces else flags.connection.namespace)
    return f"No resources found{f' in {place} namespace' if place else ''}."


def _print_groups(
    flags: ListRequest, rows: Sequence[Row], listing: Listing, unknown: Sequence[str]
) -> None:
    """Print how many rows there are of each value; a cluster that could not be asked has no number."""
    from collections import Counter

    from kubectl_kpolicy.output.rows import CLUSTER
    from kubectl_kpolicy.output.structured import write_object
    from kubectl_kpolicy.output.table import Column, Table

    column = column_named(listing, flags.group_by)
    counts: list[tuple[str, int | None]] = [*Counter(row.text(column.id) for row in rows).most_common()]  # fmt: skip
    counts += [(name, None) for name in unknown if column is CLUSTER]
    if flags.output in ("json", "yaml"):
        data = [{column.id: name, "count": count} for name, count in counts]
        write_object(sys.stdout, data, flags.output)
        return
    table = Table([Column(column.head), Column("COUNT")], [[name or "-", "unknown" if count is None else str(count)] for name, count in counts])  # fmt: skip
    sys.stdout.write(table.markdown() if flags.output == "markdown" else table.text(heads=not flags.no_headers))  # fmt: skip
