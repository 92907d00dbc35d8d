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
    verbs.listing("list", "list issued and used codes, and those of a --journal", _list, "NAME|USER")  # fmt: skip
    verbs.describing("codes", "NAME|USER", named=_is_meant, everywhere=True)
    _add_using(verbs)
    _add_sealing(verbs)
    rotate = verbs.add("rotate", "rotate the key of codes, or revoke all offered codes", _work("approving.rotate"))  # fmt: skip
    rotate.add_argument("--revoke", action="store_true", help="revoke every code that was offered")
    rotate.add_argument("--reason", required=True, metavar="TEXT", help="why, for the record")
    _add_writing(rotate)
    locks = verbs.add("lock-status", "show who entered wrong codes and who is locked out", _work("commands.lock_status"))  # fmt: skip
    locks.add_argument("users", nargs="*", metavar="USER", help="only these users")
    locks.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table", help="output format")  # fmt: skip
    locks.add_argument("--system-namespace", default="kyverno", metavar="NAME", help="where kpolicy keeps counts (kyverno)")  # fmt: skip


def _add_issuing(verbs: Verbs) -> None:
    """Add what makes a code, agrees to one, or claims one."""
    issue = verbs.add("issue", "issue a code to a named user for a policy, rules and an object", _work("commands.issue"))  # fmt: skip
    issue.add_argument("grant", nargs="?", default="", metavar="GRANT", help="what this grant asks for")  # fmt: skip
    issue.add_argument("--for-user", default="", metavar="USER", help="who may use it")
    issue.add_argument("--bind", default="", metavar="POLICY/RULE:KIND/NAME", help="what it covers; vpol:POLICY:KIND/NAME and the like for policies in CEL")  # fmt: skip
    issue.add_argument("--ttl", default="15m", metavar="DURATION", help="how long (15m)")
    issue.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    issue.add_argument("--show", action="store_true", help="show the code, on a terminal only")
    issue.add_argument("--out-file", default="", metavar="FILE", help="write the code to a new file that only you can read")  # fmt: skip
    issue.add_argument("--seal-to", default="", metavar="KEY", help="seal the code to the public key in this file, so that only its owner can open it")  # fmt: skip
    issue.add_argument("-o", "--output", choices=("json", "yaml", "name"), default="", help="print the code's object (not the code) in this format")  # fmt: skip
    _add_writing(issue)
    approve = verbs.add("approve", "approve the code that a denial offers by its id", _work("approving.approve"))  # fmt: skip
    approve.add_argument("request", metavar="ID", help="the id, as the denial shows it (cr1.…)")
    approve.add_argument("--ttl", default="30m", metavar="DURATION", help="how long the code may be used (30m)")  # fmt: skip
    approve.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    _add_writing(approve)
    claim = verbs.add("claim", "claim a code, prompted for or from standard input, where codes are strict", _work("approving.claim"))  # fmt: skip
    claim.add_argument("use", nargs="?", default="", metavar="USE", help="the use that a denial named in place of a code (use-…)")  # fmt: skip
    _add_writing(claim)


def _add_using(verbs: Verbs) -> None:
    """Add what a code is used with, and what ends it before."""
    void = verbs.add("void", "void codes before they are used", _work("commands.void"))
    void.add_argument("names", nargs="+", metavar="NAME", help="names of the codes' objects")  # fmt: skip
    _add_writing(void)
    redeem = verbs.add("redeem", "apply an object with a code, prompted for or from standard input", _work("commands.redeem"))  # fmt: skip
    redeem.add_argument("code_id", nargs="?", default="", metavar="CODE-ID", help="id of the expected code (never the code itself)")  # fmt: skip
    redeem.add_argument("-f", "--filename", required=True, metavar="FILE", help="the object")
    redeem.add_argument("--sealed", default="", metavar="FILE", help="file with the sealed code")  # fmt: skip
    redeem.add_argument("--key", default="", metavar="FILE", help="the private key that opens the seal")  # fmt: skip
    _add_writing(redeem)


def _add_sealing(verbs: Verbs) -> None:
    """Add what makes codes beforehand."""
    seals = verbs.add("seal-set", "issue sealed codes in advance, for when no issuer can be reached", _seal_set)  # fmt: skip
    seals.add_argument("--for-user", action="append", required=True, metavar="USER", help="who may use them (repeatable)")  # fmt: skip
    seals.add_argument("--bind", required=True, metavar="POLICY/RULE:KIND/NAME", help="what they cover")  # fmt: skip
    seals.add_argument(
        "--count", type=_count, default=3, metavar="N", help="number of codes for each (3)"
    )
    seals.add_argument("--ttl", default="6d", metavar="DURATION", help="how long (6d)")
    seals.add_argument("--seal-to", required=True, metavar="KEY", help="public key of the recipient")  # fmt: skip
    seals.add_argument("--out-file", default="", metavar="FILE", help="where to write (standard output by default)")  # fmt: skip
    seals.add_argument("--reason", required=True, metavar="TEXT", help="why, for the record")
    _add_writing(seals)


def _add_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", choices=("none", "client", "server"), default="none", help="change nothing: check here, or on the server")  # fmt: skip
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
