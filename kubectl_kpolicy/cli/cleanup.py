"""`kubectl kpolicy cleanup`: what will be deleted when, by policy or by label; preview, postpone, skip and pause with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .verbs import Verbs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from kubectl_kpolicy.cluster.rows import Row

SUMMARY = "what will be deleted when; preview, postpone, skip, pause"
_NAMES = "KIND/NAME|NAME"
_CHANGES = (
    ("postpone", "let it happen later", "cleanup-postpone"),
    ("skip", "pass over the next run", "cleanup-skip"),
    ("pause", "stop until it is resumed", "cleanup-pause"),
    ("resume", "go on after a pause", "cleanup-pause"),
)


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs."""
    verbs = Verbs(sub, "cleanup", SUMMARY, "kubectl kpolicy cleanup -A --due-in 1h")
    listed = verbs.listing("list", "list what will be deleted, the next first", _list, _NAMES)
    listed.add_argument("--due-in", default="", metavar="DURATION", help="only what is due within this")  # fmt: skip
    listed.add_argument("--by", default="", metavar="POLICY", help="only what this policy deletes")
    verbs.describing("cleanup", _NAMES, named=is_meant)
    preview = verbs.listing("preview", "list the objects that a cleanup policy's next run deletes, and those it leaves", _preview, "POLICY")  # fmt: skip
    preview.set_defaults(names=[])
    for name, text, action in _CHANGES:
        parser = verbs.add(name, text, _change(name, action))
        parser.add_argument("names", nargs="+", metavar=_NAMES, help="which ones")
        parser.add_argument("--reason", required=True, metavar="TEXT", help="why, for the record")
        if name == "postpone":
            parser.add_argument("--for", dest="length", default="1h", metavar="DURATION", help="for how long")  # fmt: skip


def _list(args: argparse.Namespace) -> int:
    from .lists import run_list

    terms = [f"left<{args.due_in}"] if args.due_in else []
    terms += [f'by="*/{args.by}"'] if args.by else []
    args.where = " ".join([*terms, f"({args.where})" if args.where.strip() else ""]).strip()
    return run_list(args, "cleanup", lambda row: is_meant(row, args.names), named=is_meant)


def is_meant(row: Row, names: Sequence[str]) -> bool:
    """Tell whether a row is a cleanup policy or an object that one of the names means."""
    from .choosing import is_named

    by = row.text("by").lower()
    return is_named(row, names) or any(
        name.lower() in (by, by.rpartition("/")[2]) for name in names
    )


def _preview(args: argparse.Namespace) -> int:
    from kubectl_kpolicy.session import cluster

    from .previewing import preview

    return cluster.guarded(preview, args)


def _change(name: str, action: str) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        from kubectl_kpolicy.session import cluster

        return cluster.guarded(lambda given: _perform(given, name, action), args)

    return run


def _perform(args: argparse.Namespace, name: str, action: str) -> int:
    from engine.errors import EngineError

    from .doing import perform
    from .lists import listing_of, read_world

    listing = listing_of("cleanup")
    world, now = read_world(args, listing)
    rows = [row for row in listing.rows(world, now) if is_meant(row, args.names)]  # fmt: skip
    if name in ("pause", "resume"):
        rows = [row for row in rows if (row.text("state") == "paused") is (name == "resume")]
    if not rows:
        raise EngineError(f"nothing to {name} is called {' or '.join(args.names)}", help="`kubectl kpolicy cleanup list -A` lists what there is")  # fmt: skip
    return perform(args, action, rows, {"reason": args.reason, "for": getattr(args, "length", "")})
