"""`kubectl kpolicy grant`: ask for a time-boxed exception, decide about others' requests, end one early, see them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .flags import Arguments, Flags, Verbs, chunk, cluster_flags, guarded, list_request, request_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubectl_kpolicy.output.rows import Listing, Row
    from kubectl_kpolicy.session.identity import Identity

_EXAMPLE = (
    'grant no-root/run-as-nonroot deploy/web -n shop --for 4h --reason "image is rebuilt on Monday"'
)
_DECISIONS = (
    ("approve", "approve requests of others", "comment"),
    ("deny", "deny requests of others", "comment"),
    ("withdraw", "withdraw own requests before they are decided", "reason"),
    ("drop", "end own grants early", "reason"),
    ("revoke", "revoke grants of others", "reason"),
    ("comment", "comment on requests without deciding them", "comment"),
)


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    verbs = Verbs(flags, _EXAMPLE, usual="request")
    _add_request(verbs.add("request", "request an exception", _request))
    for name, text, word in _DECISIONS:
        decision = verbs.add(name, text, _decision(name, word))
        decision.add("names", "which grants", nargs="+", metavar="NAME")
        decision.text(f"--{word}", "TEXT", "why, for the record", required=True)
        _add_writing(decision)
        if name != "comment":
            _add_waiting(decision, "until the controllers have done what was decided")
    extend = verbs.add("extend", "request more time: a grant that follows when this one ends", _extend)  # fmt: skip
    extend.add("name", "which grant", metavar="NAME")
    extend.text("--for", "DURATION", "how much longer", dest="length", required=True)
    extend.reason("why more time is needed")
    extend.text("--ticket", "ID", "ticket (the grant's own by default)")
    _add_writing(extend)
    _add_waiting(extend, "until it is active or refused")
    listed = verbs.listing(
        "list", "list grants, the next to end first", _list, "NAME|KIND/NAME", beside=True
    )
    listed.switch("--mine", "only own requests")
    listed.switch("--to-approve", "only requests that you may approve")
    listed.text("--state", "STATE", "only grants in this state")
    verbs.describing("grants", "NAME")
    report = verbs.add("report", "report what a grant let through, from request to end", _report)
    report.add("name", "which grant", metavar="NAME")
    report.output("md", "json", "yaml")
    preview = verbs.add("preview", "show what a grant would let through now", _preview)
    _add_asked(preview)
    preview.choice("-o --output", ("json", "yaml"), "print it as data", default="")


def _add_request(flags: Flags) -> None:
    _add_asked(flags)
    flags.reason("why the exception is needed", required=False)
    flags.text("--for", "DURATION", "how long it lasts, from approval on (1h)", dest="length", default="1h")  # fmt: skip
    flags.text("--until", "INSTANT", "until when, instead of --for")
    flags.text("--start", "INSTANT", "not before this instant")
    flags.text("--window", "START/END", "only within this window, such as 2026-01-31T17:00:00Z/2h")
    flags.text("--ticket", "ID", "ticket with further details")
    flags.text("--uses", "N", "end it after this many uses", type=chunk, default=0)
    flags.text("--idle", "DURATION", "end it when unused for this long")
    flags.many("--approver", "USER", "approver to ask (repeatable)")
    flags.switch("--emergency", "in an emergency: without approval, shorter, and recorded as such")
    flags.switch("--preview", "only show what it would let through")
    _add_waiting(flags, "until it is active or refused")
    _add_writing(flags)


def _add_waiting(flags: Flags, text: str) -> None:
    flags.switch("--wait", f"wait {text}")
    flags.text("--timeout", "DURATION", "wait at most this long, then exit with 124", default="0")


def _add_asked(flags: Flags) -> None:
    flags.add("rule", "policy or rule to except from; vpol:POLICY and the like for policies in CEL", nargs="?", default="", metavar="POLICY[/RULE]")  # fmt: skip
    flags.add("targets", "objects to except", nargs="*", metavar="KIND/NAME")
    flags.text("-l --selector", "LABELS", "for all objects of KIND with these labels")
    flags.text("-f --filename", "FILE", "for the objects in this file; - is standard input")
    flags.text("--block", "ID", "for the denied request with this id")


def _add_writing(flags: Flags) -> None:
    flags.dry_run()
    flags.choice("-o --output", ("json", "yaml", "name"), "print the grants in this format", default="")  # fmt: skip


@guarded
def _request(args: Arguments) -> int:
    if args.preview:
        return _preview(args)
    from kubectl_kpolicy.grants import commands

    return commands.request(request_of(commands.GrantRequest, args))


@guarded
def _extend(args: Arguments) -> int:
    from kubectl_kpolicy.grants import commands

    return commands.extend(request_of(commands.GrantRequest, args))


def _decision(verdict: str, word: str) -> Callable[[Arguments], int]:
    @guarded
    def run(args: Arguments) -> int:
        from kubectl_kpolicy.grants import commands

        asked = request_of(commands.DecisionRequest, args)
        return commands.decide_all(asked, verdict, getattr(args, word))

    return run


@guarded
def _report(args: Arguments) -> int:
    from kubectl_kpolicy.grants.report import ReportRequest, story

    return story(request_of(ReportRequest, args))


@guarded
def _preview(args: Arguments) -> int:
    from .grant_preview import show

    return show(args)


@guarded
def _list(args: Arguments) -> int:
    """List grants; raises EngineError where nobody knows who asks."""
    from kubectl_kpolicy.output.misuse import Misuse

    from .lists import run_list

    state = _state(args.state)

    def choice(row: Row) -> bool:
        return (
            (not args.mine or (who is not None and row.text("requester") == who.user))
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


def _who(args: Arguments) -> Identity:
    from kubectl_kpolicy.session import cluster
    from kubectl_kpolicy.session.identity import who_am_i

    return cluster.with_client(cluster_flags(args), lambda client, _access: who_am_i(client))
