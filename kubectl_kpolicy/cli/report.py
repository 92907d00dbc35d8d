"""`kubectl kpolicy report`: violations, grants or compliance as one file, for people (HTML, Markdown) and for tools (SARIF, JUnit, CSV)."""

from __future__ import annotations

import sys
from pathlib import Path

from .flags import Arguments, Flags, guarded, list_request

_FINDINGS = ("sarif", "junit", "github")
_NOUNS = {"violations": "violations", "grants": "grants", "compliance": "policies"}


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example("kubectl kpolicy report violations -A --format sarif -O kpolicy.sarif")
    flags.add("what", "what to report", choices=tuple(_NOUNS), nargs="?", default="violations")
    flags.choice("--format", ("html", "md", "csv", "sarif", "junit", "github"), "format of the file", default="md")  # fmt: skip
    flags.text("-O --out", "FILE", "where to write (standard output by default)")
    flags.text("--where", "FILTER", "only rows that match")
    flags.replay()
    flags.of_cluster()


@guarded
def run(args: Arguments) -> int:
    """Write the report."""
    if args.what != "violations" and args.format in _FINDINGS:
        from kubectl_kpolicy.output.misuse import Misuse

        raise Misuse(f"{args.format} is for findings, and {args.what} are none", help="--format html, md or csv")  # fmt: skip
    from kubectl_kpolicy.cluster.violations import is_failure
    from kubectl_kpolicy.output.reports import written

    from .lists import check_needs, listing_of, read_world, selected

    listing = listing_of(_NOUNS[args.what])
    flags = list_request(args, everywhere=args.what == "compliance")
    world, now = read_world(flags, listing)
    check_needs(world, listing)
    chosen = is_failure if args.what == "violations" else lambda _row: True
    rows = selected(flags, listing.rows(world, now), listing, now, chosen)
    text = written(args.format, args.what, rows, listing, now)
    if args.out:
        try:
            Path(args.out).write_text(text)
        except OSError as error:
            from engine.errors import EngineError, reason_of

            raise EngineError(f"cannot write `{args.out}`: {reason_of(error)}") from error
        print(f"wrote {len(rows)} rows to {args.out}", file=sys.stderr)
    else:
        sys.stdout.write(text)
    return 0
