"""`kubectl kpolicy spec`: all commands, flags, actions, columns and exit codes as data, for scripts, docs and other tools."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from engine import vocabulary

from .flags import UNTOLD, Arguments, Flags


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example("kubectl kpolicy spec -o json | jq '.commands | keys'")
    flags.output("json", "yaml")


def run(args: Arguments) -> int:
    """Print the specification."""
    from kubectl_kpolicy.output.structured import write_object

    write_object(sys.stdout, specification(), args.output)
    return 0


def specification() -> dict[str, Any]:
    """Return everything there is to know about the command line and the console's actions."""
    from kubectl_kpolicy.actions.catalog import ALL
    from kubectl_kpolicy.actions.screens import LISTINGS
    from kubectl_kpolicy.output.diagnostics import ExitCode

    from . import COMMANDS, parser_of

    return {
        "apiVersion": vocabulary.KPOLICY,
        "kind": "CommandSpec",
        "commands": {name: _described(parser_of(name)[0], text) for name, text in COMMANDS.items()},
        "exitCodes": {str(int(code)): code.name.lower() for code in ExitCode},
        "listings": {one.noun: {"aliases": list(one.aliases), "columns": [column.id for column in one.columns]} for one in LISTINGS.values()},
        "actions": [
            {"id": one.id, "title": one.title, "help": one.help, "keys": list(one.keys), "danger": one.danger.name.lower(),
             "rights": [str(right) for right in one.rights], "screens": list(one.screens), "command": one.command}
            for one in ALL
        ],
    }  # fmt: skip


def _described(parser: argparse.ArgumentParser, text: str) -> dict[str, Any]:
    verbs: dict[str, Any] = {}
    flags: dict[str, Any] = {}
    words: list[dict[str, Any]] = []
    for action in parser._actions:  # noqa: SLF001 - argparse shows its parts nowhere else
        if isinstance(action.choices, dict):
            verbs = {name: _described(one, one.description or "") for name, one in action.choices.items()}  # fmt: skip
        elif action.option_strings and action.help != UNTOLD:
            flags[_name(action)] = _flag(action)
        elif not action.option_strings:
            words.append(_word(action))
    made: dict[str, Any] = {"help": text, "flags": flags}
    if parser.epilog:
        made["example"] = parser.epilog
    if words:
        made["arguments"] = words
    if verbs:
        made["verbs"] = verbs
    return made


def _name(action: argparse.Action) -> str:
    """Return the name of a flag that documentation uses: its first long one."""
    return next((text for text in action.option_strings if text.startswith("--")), action.option_strings[0])  # fmt: skip


def _word(action: argparse.Action) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": str(action.metavar or action.dest),
        "many": action.nargs in ("*", "+"),
        "required": action.nargs not in ("*", "?"),
        "help": action.help or "",
    }
    if action.choices:
        made["choices"] = [str(one) for one in action.choices]
    return made


def _flag(action: argparse.Action) -> dict[str, Any]:
    made: dict[str, Any] = {"help": action.help or "", "takesValue": action.nargs != 0}
    others = [text for text in action.option_strings if text != _name(action)]
    if short := [text for text in others if not text.startswith("--")]:
        made["short"] = short[0]
    if aliases := [text for text in others if text.startswith("--")]:
        made["aliases"] = aliases
    if action.choices:
        made["choices"] = [str(one) for one in action.choices]
    if action.required:
        made["required"] = True
    if isinstance(action, argparse._AppendAction):  # noqa: SLF001 - argparse names it nowhere else
        made["repeatable"] = True
    if isinstance(action.default, str | int) and action.default not in ("", argparse.SUPPRESS) and action.nargs != 0:  # fmt: skip
        made["default"] = action.default
    return made
