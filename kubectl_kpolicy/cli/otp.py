"""`kubectl kpolicy otp`: one-time codes, issued to somebody for one thing, listed, made void, brought along with an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .verbs import Verbs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from kubectl_kpolicy.cluster.rows import Row

SUMMARY = "one-time codes: issue, list, make void, redeem"
_EXAMPLE = "kubectl kpolicy otp issue --for-user ada --bind no-host/host-namespaces:Pod/debug -n shop --ttl 15m --show"


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs."""
    verbs = Verbs(sub, "otp", SUMMARY, _EXAMPLE)
    issue = verbs.add("issue", "issue a code to a named person for a policy, rules and an object", _issue)  # fmt: skip
    issue.add_argument("grant", nargs="?", default="", metavar="GRANT", help="for what this grant asks for")  # fmt: skip
    issue.add_argument("--for-user", default="", metavar="USER", help="who may use it")
    issue.add_argument("--bind", default="", metavar="POLICY/RULE:KIND/NAME", help="what it is good for")  # fmt: skip
    issue.add_argument("--ttl", default="15m", metavar="DURATION", help="how long (15m)")
    issue.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    issue.add_argument("--show", action="store_true", help="show the code, on a terminal only")
    issue.add_argument("--out-file", default="", metavar="FILE", help="write the code to a new file that only you can read")  # fmt: skip
    issue.add_argument("-o", "--output", choices=("json", "yaml", "name"), default="", help="print the code's object (not the code) as data")  # fmt: skip
    _add_writing(issue)
    verbs.listing("list", "list codes that were issued and used, and those of a --journal", _list, "NAME|USER")  # fmt: skip
    verbs.describing("codes", "NAME|USER", named=_is_meant, everywhere=True)
    void = verbs.add("void", "make codes useless before they are used", _void)
    void.add_argument("names", nargs="+", metavar="NAME", help="which codes, by the names of their objects")  # fmt: skip
    _add_writing(void)
    redeem = verbs.add("redeem", "apply an object with a code, which is asked for or read from standard input", _redeem)  # fmt: skip
    redeem.add_argument("-f", "--filename", required=True, metavar="FILE", help="the object")
    _add_writing(redeem)


def _add_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", choices=("none", "client", "server"), default="none", help="only check: here, or on the server")  # fmt: skip
    parser.add_argument("--system-namespace", default="kyverno", metavar="NAME", help="where kpolicy keeps codes (kyverno)")  # fmt: skip


def _issue(args: argparse.Namespace) -> int:
    from kubectl_kpolicy.codes import commands

    return commands.issue(args)


def _void(args: argparse.Namespace) -> int:
    from kubectl_kpolicy.codes import commands

    return commands.void(args)


def _redeem(args: argparse.Namespace) -> int:
    from kubectl_kpolicy.codes import commands

    return commands.redeem(args)


def _list(args: argparse.Namespace) -> int:
    from .lists import run_list

    if not args.namespace:
        args.all_namespaces = True
    return run_list(args, "codes", lambda row: _is_meant(row, args.names), named=_is_meant)


def _is_meant(row: Row, names: Sequence[str]) -> bool:
    """Tell whether a code has one of the names, or is for one of the users."""
    from .choosing import is_named

    return is_named(row, names) or row.text("user") in names
