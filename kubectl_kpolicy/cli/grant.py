"""`kubectl kpolicy grant`: ask for a time-boxed exception, decide about others' requests, end one early, see them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .flags import chunk, cluster_flags, guarded, list_request, request_of
from .verbs import Verbs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from kubectl_kpolicy.output.rows import Listing, Row
    from kubectl_kpolicy.session.identity import Identity

_EXAMPLE = 'kubectl kpolicy grant no-root/run-as-nonroot deploy/web -n shop --for 4h --reason "image is rebuilt on Monday"'
_DECISIONS = (
    ("approve", "approve requests of others", "comment"),
    ("deny", "deny requests of others", "comment"),
    ("withdraw", "withdraw own requests before they are decided", "reason"),
    ("drop", "end own grants early", "reason"),
    ("revoke", "revoke grants of others", "reason"),
    ("comment", "comment on requests without deciding them", "comment"),
)


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs."""
    verbs = Verbs(sub, "grant", _EXAMPLE)
    verbs.parser.usual = "request"
    _add_request(verbs)
    for name, text, word in _DECISIONS:
        parser = verbs.add(name, text, _decision(name, word))
        parser.add_argument("names", nargs="+", metavar="NAME", help="which grants")
        parser.add_argument(f"--{word}", required=True, metavar="TEXT", help="why, for the record")
        _add_writing(parser)
        if name != "comment":
            _add_waiting(parser, "until the controllers have done what was decided")
    extend = verbs.add("extend", "request more time: a grant that follows when this one ends", _extend)  # fmt: skip
    extend.add_argument("name", metavar="NAME", help="which grant")
    extend.add_argument("--for", dest="length", required=True, metavar="DURATION", help="how much longer")  # fmt: skip
    extend.add_argument("--reason", required=True, metavar="TEXT", help="why more time is needed")  # fmt: skip
    extend.add_argument("--ticket", default="", metavar="ID", help="ticket (the grant's own by default)")  # fmt: skip
    _add_writing(extend)
    _add_waiting(extend, "until it is active or refused")
    listed = verbs.listing(
        "list", "list grants, the next to end first", _list, "NAME|KIND/NAME", beside=True
    )
    listed.add_argument("--mine", action="store_true", help="only own requests")
    listed.add_argument("--to-approve", action="store_true", help="only requests that you may approve")  # fmt: skip
    listed.add_argument("--state", default="", metavar="STATE", help="only grants in this state")
    verbs.describing("grants", "NAME")
    report = verbs.add("report", "report what a grant let through, from request to end", _report)
    report.add_argument("name", metavar="NAME", help="which grant")
    report.add_argument("-o", "--output", choices=("md", "json", "yaml"), default="md", help="output format")  # fmt: skip
    preview = verbs.add("preview", "show what a grant would let through now", _preview)
    _add_asked(preview)
    preview.add_argument("-o", "--output", choices=("json", "yaml"), default="", help="print it as data")  # fmt: skip


def _add_request(verbs: Verbs) -> None:
    parser = verbs.add("request", "request an exception", _request)
    _add_asked(parser)
    parser.add_argument("--reason", default="", metavar="TEXT", help="why the exception is needed")
    parser.add_argument("--for", dest="length", default="1h", metavar="DURATION", help="how long it lasts, from approval on (1h)")  # fmt: skip
    parser.add_argument("--until", default="", metavar="INSTANT", help="until when, instead of --for")  # fmt: skip
    parser.add_argument("--start", default="", metavar="INSTANT", help="not before this instant")
    parser.add_argument("--window", default="", metavar="START/END", help="only within this window, such as 2026-01-31T17:00:00Z/2h")  # fmt: skip
    parser.add_argument("--ticket", default="", metavar="ID", help="ticket with further details")
    parser.add_argument("--uses", type=chunk, default=0, metavar="N", help="end it after this many uses")  # fmt: skip
    parser.add_argument("--idle", default="", metavar="DURATION", help="end it when unused for this long")  # fmt: skip
    parser.add_argument("--approver", action="append", default=[], metavar="USER", help="approver to ask (repeatable)")  # fmt: skip
    parser.add_argument("--emergency", action="store_true", help="in an emergency: without approval, shorter, and recorded as such")  # fmt: skip
    parser.add_argument("--preview", action="store_true", help="only show what it would let through")  # fmt: skip
    _add_waiting(parser, "until it is active or refused")
    _add_writing(parser)


def _add_waiting(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--wait", action="store_true", help=f"wait {text}")
    parser.add_argument("--timeout", default="0", metavar="DURATION", help="wait at most this long, then exit with 124")  # fmt: skip


def _add_asked(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", nargs="?", default="", metavar="POLICY[/RULE]", help="policy or rule to except from; vpol:POLICY and the like for policies in CEL")  # fmt: skip
    parser.add_argument("targets", nargs="*", metavar="KIND/NAME", help="objects to except")
    parser.add_argument("-l", "--selector", default="", metavar="LABELS", help="for all objects of KIND with these labels")  # fmt: skip
    parser.add_argument("-f", "--filename", default="", metavar="FILE", help="for the objects in this file; - is standard input")  # fmt: skip
    parser.add_argument("--block", default="", metavar="ID", help="for the denied request with this id")  # fmt: skip


def _add_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", choices=("none", "client", "server"), default="none", help="change nothing: check here, or on the server")  # fmt: skip
    parser.add_argument("-o", "--output", choices=("json", "yaml", "name"), default="", help="print the grants in this format")  # fmt: skip


def _request(args: argparse.Namespace) -> int:
    if args.preview:
        return _preview(args)
    from kubectl_kpolicy.grants import commands

    return commands.request(request_of(commands.GrantRequest, args))


def _extend(args: argparse.Namespace) -> int:
    from kubectl_kpolicy.grants import commands

    return commands.extend(request_of(commands.GrantRequest, args))


def _decision(verdict: str, word: str) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        from kubectl_kpolicy.grants import commands

        asked = request_of(commands.DecisionRequest, args)
        return commands.decide_all(asked, verdict, getattr(args, word))

    return run


def _report(args: argparse.Namespace) -> int:
    from kubectl_kpolicy.grants import commands
    from kubectl_kpolicy.grants.report import ReportRequest

    return commands.report_one(request_of(ReportRequest, args))


@guarded
def _preview(args: argparse.Namespace) -> int:
    from .grant_preview import show

    return show(args)


@guarded
def _list(args: argparse.Namespace) -> int:
    """List grants; raises EngineError where nobody knows who asks."""
    from kubectl_kpolicy.output.misuse import Misuse

    from .lists import is_named, run_list

    state = _state(args.state)

    def choice(row: Row) -> bool:
        return (
            is_named(row, args.names)
            and (not args.mine or (who is not None and row.text("requester") == who.user))
            and not row.text("refused")
            and (not state or row.text("state") == state)
        )

    if args.contexts and (args.mine or args.to_approve):
        raise Misuse("--mine and --to-approve ask one cluster who you are", help="leave out --contexts")  # fmt: skip
    who = _who(args) if args.mine or args.to_approve else None
    listing = _to_approve(who) if who is not None and args.to_approve else None
    return run_list(list_request(args), "grants", choice, listing=listing)


def _state(word: str) -> str:
    from engine.grants.lifecycle import STATES
    from kubectl_kpolicy.output.misuse import Misuse, suggestion

    if word and word.lower() not in STATES:
        raise Misuse(f"there is no state `{word}`", help=suggestion(word.lower(), sorted(STATES)))
    return word.lower()


def _to_approve(who: Identity) -> Listing:
    """Return the listing of grants with those that wait, and why somebody cannot approve them."""
    from engine.record import replace
    from kubectl_kpolicy.cluster.grants import GRANTS, INBOX, inbox_rows

    return replace(GRANTS, wants=INBOX.wants, rows=lambda world, now: inbox_rows(world, now, who))


def _who(args: argparse.Namespace) -> Identity:
    from kubectl_kpolicy.session import cluster
    from kubectl_kpolicy.session.identity import who_am_i

    return cluster.with_client(cluster_flags(args), lambda client, _access: who_am_i(client))
