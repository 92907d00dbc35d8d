"""The commands: which there are, one line about each, and how one is imported, given its flags and run.

The table stands here in words so that `--help` and completion need no command's module. A module of a command offers
`HELP` (or `SUMMARY`), `add_arguments(parser)` and `run(args) -> int`; one that makes its own parser offers
`add_parser(subparsers)` instead, for commands with verbs of their own.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PROGRAM = "kubectl kpolicy"
DESCRIPTION = (
    "Kyverno's classic policies: on files, in a cluster, and in a console for the work around them."
)
COMMANDS = {
    "apply": "apply policies to resources and print what they decide",
    "test": "run test files (kyverno-test.yaml) below the given paths",
    "lint": "check policies for mistakes before a cluster sees them",
    "check": "check files against policies and exceptions, those of a cluster by default",
    "explain": "show why a policy decides as it does for an object",
    "jp": "try JMESPath expressions with the functions policies have",
    "cel": "try CEL expressions with the functions policies have",
    "create": "print a new exception, test, values or user-info file",
    "sign": "sign manifests",
    "verify": "verify the signatures of manifests",
    "install": "print what runs kpolicy in a cluster, for kubectl apply",
    "uninstall": "remove what install brought, webhooks first",
    "break-glass": "take kpolicy's own webhooks out of the way, so that a cluster works again",
    "tui": "the console: violations, grants, codes, clean-ups and audit in a terminal",
    "status": "how things stand, in a few numbers",
    "violations": "what fails which policy, and what was denied",
    "policies": "which policies are in force, and how their results count",
    "exceptions": "who is let through until when, and what is wrong with that",
    "grant": "time-boxed exceptions: ask, approve, extend, end, list",
    "otp": "one-time codes: issue, list, make void, redeem",
    "cleanup": "what will be deleted when; preview, postpone, skip, pause",
    "audit": "who did what: read, check and export the records",
    "report": "violations, grants or compliance as a file for others",
    "whoami": "who you are to the cluster, and what you may do",
    "doctor": "check everything that policies, grants and the console rest on",
    "config": "the configuration file: view, locate, validate, init",
    "spec": "commands, flags and exit codes for machines",
    "sandbox": "an API server of your own on this machine, to try policies in",
    "version": "print the version",
    "completion": "print a completion script for a shell",
}
_HELPS = ("-h", "--help")
GLOBAL_FLAGS = ("--color", "--help", "--non-interactive", "--quiet", "--verbose")
_GO_SWITCHES = (
    "--add_dir_header",
    "--alsologtostderr",
    "--logtostderr",
    "--one_output",
    "--skip_headers",
    "--skip_log_headers",
)
_GO_VALUES = (
    "--log_backtrace_at",
    "--log_dir",
    "--log_file",
    "--log_file_max_size",
    "--stderrthreshold",
    "--vmodule",
)
"""Flags of Go's logging, which each of upstream's commands has: read, and without effect."""


_SWITCHES = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a mistake in two lines and exits with 2; flags cannot be shortened."""

    def __init__(self, prog: str = PROGRAM, **options: Any) -> None:
        options.setdefault("formatter_class", _formatter)
        options["conflict_handler"] = "resolve"
        super().__init__(prog, allow_abbrev=False, **options)

    usual = ""
    """The verb that is meant where none is given; empty for commands without verbs."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words, the usual verb put in front where the first word is none."""
        words = sys.argv[1:] if args is None else list(args)
        if self.usual and not (words and (words[0] in _HELPS or words[0] in self._verbs())):
            words.insert(0, self.usual)
        return super().parse_known_args(self._switched(words), namespace)

    def _switched(self, words: list[str]) -> list[str]:
        """Return words with switches as Go's programs take them: `--table=true` is `--table`, `--table=false` nothing."""
        made: list[str] = []
        for word in words:
            name, equals, value = word.partition("=")
            action = self._option_string_actions.get(name) if equals else None
            if action is not None and action.nargs == 0 and value.lower() in _SWITCHES:
                made += [name] if _SWITCHES[value.lower()] else []
            else:
                made.append(word)
        return made

    def _verbs(self) -> set[str]:
        return {
            name
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - argparse names it nowhere else
            for name in action.choices
        }

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where help is, and exit with 2."""
        self.exit(2, f"error: {message}\nhelp: see `{self.prog} --help`\n")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return what lays out help; argparse makes one for each flag, and would load `shutil` to learn the width."""
    return argparse.RawDescriptionHelpFormatter(prog, width=_columns() - 2)


def _columns() -> int:
    """Return the width of the terminal, as `shutil.get_terminal_size` finds it."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]  # None raises AttributeError
    except (AttributeError, ValueError, OSError):
        return 80


def overview() -> str:
    """Return the list of commands for the program's help."""
    width = max(map(len, COMMANDS))
    rows = [f"  {name:{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(
        [
            "commands:",
            *rows,
            "",
            f"`{PROGRAM} COMMAND --help` shows a command's flags and an example.",
        ]
    )


def add_global_flags(parser: argparse.ArgumentParser, *, again: bool = False) -> None:
    """Add the flags every command has; `again` leaves values that were given before the command in place."""

    def default(value: Any) -> Any:
        return argparse.SUPPRESS if again else value

    group = parser.add_argument_group("flags of every command")
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default=default("auto"),
        help="colours; NO_COLOR is honoured",
    )
    group.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        default=default(value=False),
        help="say more on standard error",
    )
    group.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        default=default(value=False),
        help="say nothing but results and errors",
    )
    group.add_argument(
        "--non-interactive",
        action="store_true",
        default=default(value=False),
        help="ask nothing: fail where something would have to be typed",
    )
    for flag in _GO_SWITCHES:
        group.add_argument(
            flag, action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )
    for flag in _GO_VALUES:
        group.add_argument(flag, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def dispatch(name: str, words: Sequence[str], known: argparse.Namespace) -> int:
    """Import a command, parse its words, run it and return its exit code; exit with 2 for an unknown name."""
    if name not in COMMANDS and not _is_screen(name):
        _refuse(name)
    parser, module = parser_of(name)
    arguments = parser.parse_args(words, known)
    run = getattr(arguments, "run", None) or module.run
    return int(run(arguments))


def _is_screen(name: str) -> bool:
    """Tell whether a screen gives the command: asked last, for it loads what rows are made of."""
    from kubectl_kpolicy.actions.screens import own_command

    return own_command(name) is not None


def parser_of(name: str) -> tuple[argparse.ArgumentParser, ModuleType]:
    """Return a command's parser with all its flags, and its module."""
    text = COMMANDS.get(name, f"list {name}")
    of_command = name.replace("-", "_") if name in COMMANDS else "verbs"
    module = import_module(f".{of_command}", __name__)
    parser: argparse.ArgumentParser = Parser(
        f"{PROGRAM} {name}", description=f"{text[0].upper()}{text[1:]}."
    )
    add_global_flags(parser, again=True)
    if name not in COMMANDS:
        module.add_verbs(_Place(parser), name)
    elif hasattr(module, "add_arguments"):
        module.add_arguments(parser)
    else:
        module.add_parser(_Place(parser))
    return parser, module


class _Place:
    """Stands where argparse's subparsers would: hands out the command's parser, with the words about it filled in."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser

    def add_parser(self, _name: str, **words: Any) -> argparse.ArgumentParser:
        """Return the parser; of the keywords, those that are texts about the command count."""
        for word in ("description", "epilog", "usage", "formatter_class"):
            if word in words:
                setattr(self.parser, word, words[word])
        return self.parser


_ELSEWHERE = {
    "fix": f"`{PROGRAM} lint --fix PATH` mends what has one meaning, and says the rest with file and line",
    "migrate": "`kubectl get KIND -A -o json | kubectl replace -f -` stores objects in the newest version",
    "docs": f"`{PROGRAM} spec` describes every command and flag, `{PROGRAM} COMMAND --help` one",
    "oci": "fetch the artifact with `oras pull`, then name its folder: policies are read from files, folders, git and the web",
}
"""Commands that upstream's command line has and ours has not."""


def _refuse(name: str) -> NoReturn:
    """Exit with 2 for an unknown command, naming the nearest one."""
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, 1)
    advice = f"did you mean `{near[0]}`?" if near else f"`{PROGRAM} --help` lists them"
    advice = _ELSEWHERE.get(name, advice)
    print(f"error: unknown command `{name}`\nhelp: {advice}", file=sys.stderr)
    raise SystemExit(2)
