"""Which rows the words and flags of a list mean: by name, by filter, by fields, in the order that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.record import record
from kubectl_kpolicy.cluster.subject import spellings
from kubectl_kpolicy.output.misuse import Misuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from controllers.kube.paths import FieldTest
    from kubectl_kpolicy.filter import Filter
    from kubectl_kpolicy.output.rows import Column, Listing, Row
    from kubectl_kpolicy.session.cluster import ClusterFlags

    Choice = Callable[[Row], bool]
    Named = Callable[[Row, Sequence[str]], bool]


@record
class ListRequest:
    """Which rows of which cluster or recording, in which order and format: what the flags of lists say.

    `place` is the namespace that was looked at, once that is known, `results` what every row of a list of violations has beside
    what `where` says, as a field selector of reports.
    """

    connection: ClusterFlags
    names: tuple[str, ...] = ()
    output: str = "table"
    no_headers: bool = False
    show_labels: bool = False
    selector: str = ""
    field_selector: str = ""
    where: str = ""
    sort_by: str = ""
    group_by: str = ""
    limit: int = 0
    chunk_size: int = 500
    watch: bool = False
    watch_only: bool = False
    output_watch_events: bool = False
    replay: str = ""
    contexts: str = ""
    color: str = "auto"
    quiet: bool = False
    place: str = ""
    results: str = ""


def selected(
    flags: ListRequest, rows: Sequence[Row], listing: Listing, now: datetime, choice: Choice
) -> list[Row]:
    """Return the rows that flags ask for, in the order they ask for; raises Misuse."""
    from kubectl_kpolicy.output.rows import sort_rows

    filters = _filters_of(flags, listing)
    fields = read_fields(flags.field_selector)
    kept = [
        row for row in rows if choice(row) and all(one.keeps(row, now) for one in filters) and all(one.holds(row.object) for one in fields)
    ]  # fmt: skip
    order: tuple[str, ...] = listing.sort
    if flags.sort_by:
        sign = flags.sort_by[:1] if flags.sort_by[:1] in ("-", "+") else ""
        order = (sign + column_named(listing, flags.sort_by.lstrip("-+")).id, *order)
    ordered = sort_rows(kept, listing, order)
    return ordered[: flags.limit] if flags.limit else ordered


def check_words(flags: ListRequest, listing: Listing) -> None:
    """Raise Misuse for a filter, field or column that is none in a listing, before a cluster is asked for rows."""
    if flags.where or flags.selector:
        _filters_of(flags, listing)
    read_fields(flags.field_selector)
    for name in filter(None, (flags.sort_by.lstrip("-+"), flags.group_by)):
        column_named(listing, name)


def _filters_of(flags: ListRequest, listing: Listing) -> list[Filter]:
    from kubectl_kpolicy.filter import FilterError, compile_filter, quoted

    found = []
    for text in (flags.where, f"-l {quoted(flags.selector)}" if flags.selector else ""):
        try:
            found.append(compile_filter(text, listing))
        except FilterError as error:
            raise Misuse(error.pointed(text), help=error.help) from error
    return found


def column_named(listing: Listing, name: str) -> Column:
    """Return a column by its id, head or alias, or by the path that kubectl would sort by; raises Misuse."""
    found = listing.column(name) or listing.column(name.strip("{}").rpartition(".")[2])
    if found is None:
        names = ", ".join(one.id for one in listing.columns)
        raise Misuse(f"there is no column `{name}`", help=f"there are {names}")
    return found


def read_fields(text: str) -> Sequence[FieldTest]:
    """Read `path=value,path!=value`; raises Misuse."""
    from controllers.kube.paths import field_tests  # here: few lists are chosen from by fields

    try:
        return field_tests(text)
    except EngineError as error:
        raise Misuse(error.message, help="write metadata.name=web or kind!=Pod") from error


def is_named(row: Row, names: Sequence[str]) -> bool:
    """Tell whether a row is what one of the names means; no names mean all.

    A name, `KIND/NAME`, `POLICY`, `POLICY/RULE`, or `kind.group/name` as `-o name` prints it.
    """
    if not names:
        return True
    own = {row.text("name"), row.text("resource"), row.text("policy"), row.text("id"), row.text("rules"),
           f"{row.text('policy')}/{row.text('rule')}", f"{row.text('kind')}/{row.text('name')}", _printed(row)}  # fmt: skip
    lowered = {one.lower() for one in own if one}
    return any(not lowered.isdisjoint(spellings(name)) for name in names)


def _printed(row: Row) -> str:
    from kubectl_kpolicy.output.structured import name_of

    metadata = row.object.get("metadata")
    return name_of(row.object) if isinstance(metadata, dict) and metadata.get("name") else ""


def missing(rows: Sequence[Row], names: Sequence[str], named: Named = is_named) -> list[str]:
    """Return the names that no row has."""
    return [name for name in names if not any(named(row, [name]) for row in rows)]
