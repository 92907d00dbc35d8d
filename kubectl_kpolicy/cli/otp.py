"""`kubectl kpolicy otp`: one-time codes, issued to somebody for one thing, listed, made void, brought along with an object."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .flags import list_request, request_of
from .verbs import Verbs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from kubectl_kpolicy.output.rows import Row

_MOST_SEALED = 20
_EXAMPLE = "kubectl kpolicy otp issue --for-user ada --bind no-host/host-namespaces:Pod/debug -n shop --ttl 15m --show"


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs."""
    verbs = Verbs(sub, "otp", _EXAMPLE)
    _add_issuing(verbs)
    verbs.listing("list", "list codes that were issued and used, and those of a --journal", _list, "NAME|USER")  # fmt: skip
    verbs.describing("codes", "NAME|USER", named=_is_meant, everywhere=True)
    _add_using(verbs)
    _add_sealing(verbs)
    rotate = verbs.add("rotate", "have codes made with another key, or revoke all that are out", _work("approving.rotate"))  # fmt: skip
    rotate.add_argument("--revoke", action="store_true", help="revoke every code that was offered")
    rotate.add_argument("--reason", required=True, metavar="TEXT", help="why, for the record")
    _add_writing(rotate)
    locks = verbs.add("lock-status", "who brought wrong codes, and whose are not looked at for now", _work("commands.lock_status"))  # fmt: skip
    locks.add_argument("users", nargs="*", metavar="USER", help="only these users")
    locks.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table", help="format of the output")  # fmt: skip
    locks.add_argument("--system-namespace", default="kyverno", metavar="NAME", help="where kpolicy keeps counts (kyverno)")  # fmt: skip


def _add_issuing(verbs: Verbs) -> None:
    """Add what makes a code, agrees to one, or claims one."""
    issue = verbs.add("issue", "issue a code to a named person for a policy, rules and an object", _work("commands.issue"))  # fmt: skip
    issue.add_argument("grant", nargs="?", default="", metavar="GRANT", help="for what this grant asks for")  # fmt: skip
    issue.add_argument("--for-user", default="", metavar="USER", help="who may use it")
    issue.add_argument("--bind", default="", metavar="POLICY/RULE:KIND/NAME", help="what it is good for; vpol:POLICY:KIND/NAME and the like for one written in CEL")  # fmt: skip
    issue.add_argument("--ttl", default="15m", metavar="DURATION", help="how long (15m)")
    issue.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    issue.add_argument("--show", action="store_true", help="show the code, on a terminal only")
    issue.add_argument("--out-file", default="", metavar="FILE", help="write the code to a new file that only you can read")  # fmt: skip
    issue.add_argument("--seal-to", default="", metavar="KEY", help="seal the code to the public key in this file, and print or write what only its owner can open")  # fmt: skip
    issue.add_argument("-o", "--output", choices=("json", "yaml", "name"), default="", help="print the code's object (not the code) as data")  # fmt: skip
    _add_writing(issue)
    approve = verbs.add("approve", "agree to a code that somebody asks for by the id in a denial", _work("approving.approve"))  # fmt: skip
    approve.add_argument("request", metavar="ID", help="the id, as the denial shows it (cr1.…)")
    approve.add_argument("--ttl", default="30m", metavar="DURATION", help="how long the code may be used (30m)")  # fmt: skip
    approve.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    _add_writing(approve)
    claim = verbs.add("claim", "claim a code that is asked for or read from standard input, where codes are strict", _work("approving.claim"))  # fmt: skip
    claim.add_argument("use", nargs="?", default="", metavar="USE", help="what a denial named in place of a code (use-…)")  # fmt: skip
    _add_writing(claim)


def _add_using(verbs: Verbs) -> None:
    """Add what a code is used with, and what ends it before."""
    void = verbs.add("void", "make codes useless before they are used", _work("commands.void"))
    void.add_argument("names", nargs="+", metavar="NAME", help="which codes, by the names of their objects")  # fmt: skip
    _add_writing(void)
    redeem = verbs.add("redeem", "apply an object with a code, which is asked for or read from standard input", _work("commands.redeem"))  # fmt: skip
    redeem.add_argument("code_id", nargs="?", default="", metavar="CODE-ID", help="which code it must be (never the code itself)")  # fmt: skip
    redeem.add_argument("-f", "--filename", required=True, metavar="FILE", help="the object")
    redeem.add_argument("--sealed", default="", metavar="FILE", help="take the code from under a seal")  # fmt: skip
    redeem.add_argument("--key", default="", metavar="FILE", help="the private key that opens the seal")  # fmt: skip
    _add_writing(redeem)


def _add_sealing(verbs: Verbs) -> None:
    """Add what makes codes beforehand."""
    seals = verbs.add("seal-set", "issue codes beforehand, sealed, for the night in which nobody can be asked", _seal_set)  # fmt: skip
    seals.add_argument("--for-user", action="append", required=True, metavar="USER", help="who may use them (repeatable)")  # fmt: skip
    seals.add_argument("--bind", required=True, metavar="POLICY/RULE:KIND/NAME", help="what they are good for")  # fmt: skip
    seals.add_argument("--count", type=_count, default=3, metavar="N", help="how many for each (3)")
    seals.add_argument("--ttl", default="6d", metavar="DURATION", help="how long (6d)")
    seals.add_argument("--seal-to", required=True, metavar="KEY", help="public key of whoever may open them")  # fmt: skip
    seals.add_argument("--out-file", default="", metavar="FILE", help="where they go; standard output by default")  # fmt: skip
    seals.add_argument("--reason", required=True, metavar="TEXT", help="why, for the record")
    _add_writing(seals)


def _add_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", choices=("none", "client", "server"), default="none", help="only check: here, or on the server")  # fmt: skip
    parser.add_argument("--system-namespace", default="kyverno", metavar="NAME", help="where kpolicy keeps codes (kyverno)")  # fmt: skip


def _work(name: str) -> Callable[[argparse.Namespace], int]:
    """Return what does the work of a verb: `module.function` of `kubectl_kpolicy.codes`, loaded when it is run."""
    module, _, function = name.partition(".")

    def run(args: argparse.Namespace) -> int:
        from kubectl_kpolicy.codes.commands import OtpRequest

        work: Callable[[OtpRequest], int] = getattr(
            import_module(f"kubectl_kpolicy.codes.{module}"), function
        )
        return work(request_of(OtpRequest, args))

    return run


def _seal_set(args: argparse.Namespace) -> int:
    from kubectl_kpolicy.codes import commands

    asked = request_of(commands.OtpRequest, args, for_user="", users=tuple(args.for_user))
    return commands.seal_set(asked)


def _count(text: str) -> int:
    import argparse

    if not text.isdecimal() or not 0 < int(text) <= _MOST_SEALED:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number from 1 to {_MOST_SEALED}")
    return int(text)


def _list(args: argparse.Namespace) -> int:
    from .lists import run_list

    return run_list(
        list_request(args, everywhere=True),
        "codes",
        lambda row: _is_meant(row, args.names),
        named=_is_meant,
    )


def _is_meant(row: Row, names: Sequence[str]) -> bool:
    """Tell whether a code has one of the names, or is for one of the users."""
    from .selection import is_named

    return is_named(row, names) or row.text("user") in names
