"""How words become arguments: the parser of the program, those of its commands, and the flags that all of them have.

Apart from the table of the commands, because `argparse` is loaded for a command only.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from kubectl_kpolicy import commands

from .flags import Flags

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

# no catalogue has argparse's words in the languages that its messages would be looked up in, and looking loads `locale`
vars(argparse)["_"] = lambda text: text

_HELPS = ("-h", "--help")
_WORDS = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")
"""The words of a command, with what is quoted in them."""
_QUOTED = re.compile(r"'([^']*)'$")
"""A value at the end of a message of argparse's."""
_SWITCHES = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a mistake in two lines and exits with 2; flags cannot be shortened."""

    def __init__(self, prog: str = commands.PROGRAM, **options: Any) -> None:
        options.setdefault("formatter_class", _formatter)
        options["conflict_handler"] = "resolve"
        super().__init__(prog, allow_abbrev=False, **options)
        self._positionals.title, self._optionals.title = "arguments", "flags"

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

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words; one that is left over is refused, a flag with the nearest of those there are."""
        found, left = self.parse_known_args(args, namespace)
        for word in left[:1]:
            verb = self._of_verb(found)
            verb.error(self._too_many(word, verb))
        return found

    def _of_verb(self, found: argparse.Namespace) -> Parser:
        """Return the parser of the verb that was given, whose help tells more than that of all verbs."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as below
                verb: Parser = action.choices[getattr(found, action.dest)]
                return verb
        return self

    def _too_many(self, word: str, verb: Parser) -> str:
        from kubectl_kpolicy.output.misuse import suggestion

        if not word.startswith("-"):
            return f"unexpected argument `{word}`"
        verbs = {name: parser._option_string_actions for name, parser in self._verbs().items()}  # noqa: SLF001 - as below  # fmt: skip
        flag = word.partition("=")[0]
        if owners := [f"`{name}`" for name, flags in verbs.items() if flag in flags]:
            return f"unknown flag `{flag}`: it belongs to {', '.join(owners)}"
        flags = {**self._option_string_actions, **verb._option_string_actions}
        return f"unknown flag `{word}`; {suggestion(word, flags, 'there is none like it')}"

    def _verbs(self) -> dict[str, argparse.ArgumentParser]:
        return {
            name: parser
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - argparse names it nowhere else
            for name, parser in action.choices.items()
        }

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is none of an action's choices, with the nearest of them."""
        if action.choices is None or value in action.choices:
            return
        from kubectl_kpolicy.output.misuse import suggestion

        meant = suggestion(str(value), map(str, action.choices))
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            raise argparse.ArgumentError(None, f"unknown command `{value}`; {meant}")
        raise argparse.ArgumentError(action, f"there is no `{value}`; {meant}")

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where help is, and exit with 2."""
        message = _QUOTED.sub(r"`\1`", message)
        self.exit(2, f"error: {message}\nhelp: see `{self.prog} --help`\n")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return what lays out help; argparse makes one for each flag, and would load `shutil` to learn the width."""
    return _Formatter(prog, width=commands.columns() - 2)


def _laid_out(prog: str) -> argparse.HelpFormatter:
    """Return what prints texts that are laid out already."""
    return argparse.RawDescriptionHelpFormatter(prog, width=commands.columns() - 2)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Lays out help as kubectl does: usage names what must be given; lines of descriptions and examples are kept where they fit."""

    def _format_usage(
        self, usage: str | None, actions: Any, groups: Any, prefix: str | None
    ) -> str:
        # an empty prefix asks for the beginning of what verbs are called by
        if usage is not None or prefix == "":
            return super()._format_usage(usage, actions, groups, prefix)
        needed = [one for one in actions if one.required or not one.option_strings]
        others = argparse.Action([], "flags", nargs="?", metavar="flags")
        return super()._format_usage(None, [*needed, others], (), prefix)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = (part for line in text.splitlines() for part in _broken(line, width))
        return "\n".join(indent + line for line in lines)


def _broken(line: str, width: int) -> Iterator[str]:
    """Yield a line in parts that fit a width: a command gets lines of its own and is broken as a shell reads it, words anywhere."""
    if len(line) <= width:
        yield line
        return
    before, start, command = line.partition("kubectl ")
    if not start or before.endswith("`"):
        yield from commands.wrapped(line, width)
        return
    indent = " " * (len(before) - len(before.lstrip()))
    yield from (indent + one for one in commands.wrapped(before, width - len(indent)) if one)
    yield from continued(f"{indent}  ", _WORDS.findall(start + command), width)


def continued(indent: str, words: Sequence[str], width: int) -> Iterator[str]:
    """Yield a command in lines that a shell reads as one; broken only where no quotation goes on."""
    line = indent
    for word in words:
        if line.strip() and len(line) + len(word) + len(" \\") > width:
            yield f"{line.rstrip()} \\"
            line = f"{indent}  "
        line += f"{word} "
    yield line.rstrip()


class TopParser(Parser):
    """The parser of what stands before a command; its help is printed without one, too."""

    def format_help(self) -> str:
        """Return the program's help."""
        return commands.help_text()


def top_parser() -> TopParser:
    """Return the parser of the flags before a command."""
    top = TopParser(
        commands.PROGRAM,
        usage="%(prog)s COMMAND [flags]",
        description=commands.description(),
        epilog=commands.overview(),
        formatter_class=_laid_out,
    )
    Flags(top).of_every_command()
    top.add_argument("--version", action="store_true", help=dict(commands.OPTIONS)["--version"])
    return top


def parser_of(name: str) -> tuple[argparse.ArgumentParser, ModuleType]:
    """Return a command's parser with all its flags, and its module."""
    text = commands.COMMANDS.get(name, f"list {name}")
    of_command = name.replace("-", "_") if name in commands.COMMANDS else "flags"
    module = import_module(f".{of_command}", __package__)
    parser: argparse.ArgumentParser = Parser(
        f"{commands.PROGRAM} {name}", description=f"{text[0].upper()}{text[1:]}."
    )
    flags = Flags(parser)
    flags.of_every_command(again=True)
    if name in commands.COMMANDS:
        module.add_arguments(flags)
    else:
        module.add_verbs(flags, name)
    return parser, module
