"""The commands in words, and the program's help that is made of them.

Apart from what runs commands, because the help needs nothing else: `argparse`, which lays out the help of every command, takes longer
to load than this text to print.
"""

from __future__ import annotations

import os
import sys

# `typing` is not loaded to print this help
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = "kubectl kpolicy"
DESCRIPTION = "Kyverno policies in files, pipelines and clusters, and a console for violations, exceptions, one-time codes and clean-ups."
COMMANDS = {
    "apply": "apply policies to resources and print the results",
    "test": "run test files (kyverno-test.yaml) below the given paths",
    "lint": "check policies for mistakes before they reach a cluster",
    "check": "check files against policies and exceptions, of a cluster by default",
    "explain": "explain step by step what policies decide about an object",
    "jp": "try JMESPath expressions with the functions of policies",
    "cel": "try CEL expressions with the functions of policies",
    "create": "print a new exception, test, values or user-info file, or a ClusterRole",
    "sign": "sign manifests",
    "verify": "verify the signatures of manifests",
    "install": "print the manifests that run kpolicy in a cluster",
    "uninstall": "remove what install added, webhooks first",
    "break-glass": "remove kpolicy's webhooks in an emergency, so that the cluster works again",
    "tui": "open the console: violations, grants, codes, clean-ups and audit",
    "status": "summarise policies, violations, grants and clean-ups",
    "violations": "list policy violations and denied requests",
    "policies": "list policies and their results",
    "exceptions": "list, audit and prune policy exceptions",
    "grant": "request, approve, extend, end and list time-boxed exceptions",
    "otp": "issue, redeem, void and list one-time codes",
    "cleanup": "list, preview, postpone, skip and pause scheduled deletions",
    "audit": "read, verify and export the audit trail",
    "report": "export violations, grants or compliance to a file",
    "whoami": "show who you are to the cluster and what you may do",
    "doctor": "check what policies, grants and the console depend on",
    "config": "view, locate, validate or create the configuration file",
    "spec": "print all commands, flags and exit codes for machines",
    "sandbox": "run an API server on this machine to try policies in",
    "version": "print the version",
    "completion": "print a completion script for a shell",
}
GLOBAL_FLAGS = ("--color", "--help", "--non-interactive", "--quiet", "--verbose")
COLORS = ("auto", "always", "never")
OPTIONS = (("-h, --help", "show this help message and exit"), ("--version", "print the version"))
EVERYWHERE = {
    "--color": "colours; NO_COLOR is honoured",
    "-v, --verbose": "print more on standard error",
    "-q, --quiet": "print only results and errors",
    "--non-interactive": "never prompt: fail where input would be needed",
}
"""The flags of every command, as they are written, and what they do."""
_COLUMN, _FEWEST = 24, 11


def columns() -> int:
    """Return the width of the terminal, as `shutil.get_terminal_size` finds it."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]  # None raises AttributeError
    except (AttributeError, ValueError, OSError):
        return 80


def help_text() -> str:
    """Return the program's help, laid out as `argparse` lays out that of the commands."""
    flags = [
        (f"{flag} {{{','.join(COLORS)}}}" if flag == "--color" else flag, text)
        for flag, text in EVERYWHERE.items()
    ]
    return "\n".join(
        [
            f"usage: {PROGRAM} COMMAND [flags]",
            "",
            description(),
            "",
            "flags:",
            *(line for flag, text in OPTIONS for line in _flag(flag, text)),
            "",
            "flags of every command:",
            *(line for flag, text in flags for line in _flag(flag, text)),
            "",
            f"{overview()}\n",
        ]
    )


def _flag(flag: str, text: str) -> Iterator[str]:
    """Yield the lines about a flag: beside it where there is room, else below."""
    width = columns() - 2
    column = min(_COLUMN, max(width - 20, 4))
    lines = list(wrapped(text, max(width - column, _FEWEST)))
    head = f"  {flag}"
    if len(head) + 2 > column:
        yield head
        head = ""
    for line in lines:
        yield f"{head:<{column}}{line}"
        head = ""


def wrapped(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text, broken between words; a word that is longer has a line of its own."""
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line


def description() -> str:
    """Return what the program is for, in lines that fit the terminal."""
    return "\n".join(wrapped(DESCRIPTION, max(columns() - 2, _FEWEST)))


def overview() -> str:
    """Return the list of commands for the program's help."""
    width = max(map(len, COMMANDS)) + 4
    rows = [
        f"{'' if number else f'  {name}':{width}}{line}"
        for name, text in COMMANDS.items()
        for number, line in enumerate(wrapped(text, max(columns() - 2 - width, _FEWEST)))
    ]
    last = f"`{PROGRAM} COMMAND --help` shows a command's flags and an example."
    return "\n".join(["commands:", *rows, "", *wrapped(last, max(columns() - 2, _FEWEST))])
