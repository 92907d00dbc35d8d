"""`--contexts`: the rows of several contexts in one table, each with the context that it comes from.

A cluster that cannot be asked is unknown: it is named with the reason, has the word in the place of its rows, is counted as unknown
and never as nothing, and the exit code is that of the first such reason. What was read of the others is printed all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.lang.wildcard import has_wildcard, match
from engine.record import record, replace
from kubectl_kpolicy.output.diagnostics import ExitCode, report
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.output.rows import CLUSTER, Row
from kubectl_kpolicy.session import cluster

from .reading import check_needs, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Object
    from kubectl_kpolicy.output.rows import Listing

    from .reading import Learn
    from .selection import ListRequest

ANNOTATION = "kpolicy.io/context"
"""Says in data of several contexts which one an object was read from."""
_ONE_CLUSTER = ("context", "cluster", "server", "token", "user", "client_certificate", "client_key")
"""Flags that are about one cluster: what proves who somebody is to one is shown to no other."""


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
    return Beside(replace(listing, columns=(CLUSTER, *listing.columns)), tuple(rows), unknown)


def _named_contexts(flags: ListRequest) -> Sequence[str]:
    """Return the contexts that are meant, names and wildcards, each once; raises EngineError."""
    for name in _ONE_CLUSTER:
        if getattr(flags.connection, name):
            raise Misuse(f"--{name.replace('_', '-')} is about one cluster", help="leave it out, or name one with --context")  # fmt: skip
    if flags.replay or flags.watch or flags.watch_only or flags.output_watch_events:
        raise Misuse("several contexts are neither watched nor replayed", help="name one with --context")  # fmt: skip
    there = cluster.context_names(flags.connection)
    found: list[str] = []
    for one in filter(None, (word.strip() for word in flags.contexts.split(","))):
        fitting = [name for name in there if match(one, name)] if has_wildcard(one) else [one]
        if not set(fitting) & set(there):
            raise Misuse(f"there is no context `{one}`", help=f"there are {', '.join(there) or 'none'}")  # fmt: skip
        found += fitting
    if not found:
        raise Misuse("--contexts names no context", help=f"there are {', '.join(there) or 'none'}")
    return list(dict.fromkeys(found))


def _rows_of(
    flags: ListRequest, listing: Listing, context: str, learn: Learn | None
) -> tuple[list[Row], ExitCode]:
    """Return the rows of a context, or why there are none; what is in the way is reported under the context's name."""
    try:
        found = read(
            replace(flags, connection=replace(flags.connection, context=context)), listing, learn
        )
    except EngineError as error:
        report(EngineError(f"{context} is unknown: {error.message}", help=error.help))
        return [], cluster.exit_code(error)
    code = check_needs(found.world, listing, of=f"{context} is unknown: ")
    if code is not ExitCode.DONE:
        return [], code
    return [_of(context, row) for row in listing.rows(found.world, found.now)], ExitCode.DONE


def _of(context: str, row: Row) -> Row:
    """Return a row of a context, with its object saying so."""

    def told() -> Object:
        metadata = row.object.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), ANNOTATION: context}
        return {**row.object, "metadata": {**metadata, "annotations": annotations}}

    return Row(f"{context} {row.key}", {**row.cells, CLUSTER.id: context}, make=told)
