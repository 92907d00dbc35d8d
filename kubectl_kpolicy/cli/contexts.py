"""`--contexts`: the rows of several contexts in one table, each with the context that it comes from.

A cluster that cannot be asked is unknown: it is named with the reason, has the word in the place of its rows, is counted as unknown
and never as nothing, and the exit code is that of the first such reason. What was read of the others is printed all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.record import record, replace
from kubectl_kpolicy.cluster.beside import of_cluster, with_cluster
from kubectl_kpolicy.output.diagnostics import ExitCode, report
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster, contexts

from .reading import check_needs, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Object
    from kubectl_kpolicy.output.rows import Listing, Row

    from .reading import Learn
    from .selection import ListRequest

ANNOTATION = "kpolicy.io/context"
"""Says in data of several contexts which one an object was read from."""


@record
class Beside:
    """The rows of several contexts, the listing that shows them, and the contexts of which nothing is known, each with the exit code."""

    listing: Listing
    rows: tuple[Row, ...]
    unknown: dict[str, ExitCode]


def read_beside(flags: ListRequest, listing: Listing, learn: Learn | None = None) -> Beside:
    """Return the rows of all contexts that were named; raises EngineError where none can be meant."""
    rows: list[Row] = []
    unknown: dict[str, ExitCode] = {}
    for name in _named_contexts(flags):
        found, code = _rows_of(flags, listing, name, learn)
        rows += found
        if code is not ExitCode.DONE:
            unknown[name] = code
    return Beside(with_cluster(listing), tuple(rows), unknown)


def _named_contexts(flags: ListRequest) -> Sequence[str]:
    """Return the contexts that are meant, names and wildcards, each once; raises EngineError."""
    if flags.replay or flags.watch or flags.watch_only or flags.output_watch_events:
        raise Misuse("several contexts are neither watched nor replayed", help="name one with --context")  # fmt: skip
    return contexts.several(flags.contexts, flags.connection)


def _rows_of(
    flags: ListRequest, listing: Listing, context: str, learn: Learn | None
) -> tuple[list[Row], ExitCode]:
    """Return the rows of a context, or why there are none; what is in the way is reported under the context's name."""
    try:
        found = read(
            replace(flags, connection=replace(flags.connection, context=context)), listing, learn
        )
        check_needs(found.world, listing)
    except EngineError as error:
        report(EngineError(f"{context} is unknown: {error.message}", help=error.help))
        return [], cluster.exit_code(error)
    return [_of(context, row) for row in listing.rows(found.world, found.now)], ExitCode.DONE


def _of(context: str, row: Row) -> Row:
    """Return a row of a context, with its object saying so."""

    def told() -> Object:
        metadata = row.object.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), ANNOTATION: context}
        return {**row.object, "metadata": {**metadata, "annotations": annotations}}

    return of_cluster(context, row, told)
