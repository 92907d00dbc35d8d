"""`kubectl kpolicy otp`: one-time codes, issued to somebody for one thing, listed, made void, brought along with an object."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .flags import Arguments, Flags, Unfit, Verbs, guarded, request_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kubectl_kpolicy.output.rows import Row

_MOST_SEALED = 20
_EXAMPLE = (
    "otp issue --for-user ada --bind no-host/host-namespaces:Pod/debug -n shop --ttl 15m --show"
)


def add_arguments(flags: Flags) -> None:
    """Add the command's verbs."""
    verbs = Verbs(flags, _EXAMPLE, usual="list")
    _add_issuing(verbs)
    verbs.listed("codes", "list issued and used codes, and those of a --journal", "NAME|USER", named=_is_meant, everywhere=True, beside=False)  # fmt: skip
    verbs.describing("codes", "NAME|USER", named=_is_meant, everywhere=True)
    _add_using(verbs)
    _add_sealing(verbs)
    rotate = verbs.add("rotate", "rotate the key of codes, or revoke all offered codes", _work("approving.rotate"))  # fmt: skip
    rotate.switch("--revoke", "revoke every code that was offered")
    rotate.reason()
    _add_writing(rotate)
    locks = verbs.add("lock-status", "show who entered wrong codes and who is locked out", _work("commands.lock_status"))  # fmt: skip
    locks.add("users", "only these users", nargs="*", metavar="USER")
    locks.output("table", "json", "yaml")
    _add_system(locks, "where kpolicy keeps counts (kyverno)")


def _add_issuing(verbs: Verbs) -> None:
    """Add what makes a code, agrees to one, or claims one."""
    issue = verbs.add("issue", "issue a code to a named user for a policy, rules and an object", _work("commands.issue"))  # fmt: skip
    issue.add("grant", "what this grant asks for", nargs="?", default="", metavar="GRANT")
    issue.text("--for-user", "USER", "who may use it")
    issue.text("--bind", "POLICY/RULE:KIND/NAME", "what it covers; vpol:POLICY:KIND/NAME and the like for policies in CEL")  # fmt: skip
    issue.text("--ttl", "DURATION", "how long (15m)", default="15m")
    issue.reason(required=False)
    issue.switch("--show", "show the code, on a terminal only")
    issue.text("--out-file", "FILE", "write the code to a new file that only you can read")
    issue.text("--seal-to", "KEY", "seal the code to the public key in this file, so that only its owner can open it")  # fmt: skip
    issue.choice("-o --output", ("json", "yaml", "name"), "print the code's object (not the code) in this format", default="")  # fmt: skip
    _add_writing(issue)
    approve = verbs.add("approve", "approve the code that a denial offers by its id", _work("approving.approve"))  # fmt: skip
    approve.add("request", "the id, as the denial shows it (cr1.…)", metavar="ID")
    approve.text("--ttl", "DURATION", "how long the code may be used (30m)", default="30m")
    approve.reason(required=False)
    _add_writing(approve)
    claim = verbs.add("claim", "claim a code, prompted for or from standard input, where codes are strict", _work("approving.claim"))  # fmt: skip
    claim.add("use", "the use that a denial named in place of a code (use-…)", nargs="?", default="", metavar="USE")  # fmt: skip
    _add_writing(claim)


def _add_using(verbs: Verbs) -> None:
    """Add what a code is used with, and what ends it before."""
    void = verbs.add("void", "void codes before they are used", _work("commands.void"))
    void.add("names", "names of the codes' objects", nargs="+", metavar="NAME")
    _add_writing(void)
    redeem = verbs.add("redeem", "apply an object with a code, prompted for or from standard input", _work("commands.redeem"))  # fmt: skip
    redeem.add("code_id", "id of the expected code (never the code itself)", nargs="?", default="", metavar="CODE-ID")  # fmt: skip
    redeem.text("-f --filename", "FILE", "the object", required=True)
    redeem.text("--sealed", "FILE", "file with the sealed code")
    redeem.text("--key", "FILE", "the private key that opens the seal")
    _add_writing(redeem)


def _add_sealing(verbs: Verbs) -> None:
    """Add what makes codes beforehand."""
    seals = verbs.add("seal-set", "issue sealed codes in advance, for when no issuer can be reached", _seal_set)  # fmt: skip
    seals.many("--for-user", "USER", "who may use them (repeatable)", required=True)
    seals.text("--bind", "POLICY/RULE:KIND/NAME", "what they cover", required=True)
    seals.text("--count", "N", "number of codes for each (3)", type=_count, default=3)
    seals.text("--ttl", "DURATION", "how long (6d)", default="6d")
    seals.text("--seal-to", "KEY", "public key of the recipient", required=True)
    seals.text("--out-file", "FILE", "where to write (standard output by default)")
    seals.reason()
    _add_writing(seals)


def _add_writing(flags: Flags) -> None:
    flags.dry_run()
    _add_system(flags, "where kpolicy keeps codes (kyverno)")


def _add_system(flags: Flags, about: str) -> None:
    flags.text("--system-namespace", "NAME", about, default="kyverno")


def _work(name: str) -> Callable[[Arguments], int]:
    """Return what does the work of a verb: `module.function` of `kubectl_kpolicy.codes`, loaded when it is run."""
    module, _, function = name.partition(".")

    @guarded
    def run(args: Arguments) -> int:
        from kubectl_kpolicy.codes.commands import OtpRequest

        work: Callable[[OtpRequest], int] = getattr(
            import_module(f"kubectl_kpolicy.codes.{module}"), function
        )
        return work(request_of(OtpRequest, args))

    return run


@guarded
def _seal_set(args: Arguments) -> int:
    from kubectl_kpolicy.codes import commands

    asked = request_of(commands.OtpRequest, args, for_user="", users=tuple(args.for_user))
    return commands.seal_set(asked)


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_SEALED:
        raise Unfit(f"`{text}` is not a number from 1 to {_MOST_SEALED}")
    return int(text)


def _is_meant(row: Row, names: Sequence[str]) -> bool:
    """Tell whether a code has one of the names, or is for one of the users."""
    from .selection import is_named

    return is_named(row, names) or row.text("user") in names
