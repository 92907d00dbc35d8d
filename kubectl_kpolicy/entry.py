"""The console script `kubectl-kpolicy`: find the command, read its flags, run it, turn what happens into an exit code.

Everybody's first contact and in every pipeline's inner loop, so it imports only what a bare interpreter has; `argparse` and a command's
module are imported when that command was chosen. kubectl passes on words after the plugin's name only, hence global flags are understood
before and after the command.
"""

from __future__ import annotations

import atexit
import codecs
import gc
import os
import sys

from . import cli

# `typing` is not loaded to print a version or the help
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn, TextIO


_LINES = dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝", "+") | dict(zip("─━│┃…●▌", "-=||~*|", strict=True))
_OBJECTS = 100_000
"""New objects after which Python looks for garbage among them."""
_ASKING_FOR_HELP: tuple[list[str], ...] = ([], ["-h"], ["--help"])
_ASKING_FOR_VERSION: tuple[list[str], ...] = (["version"], ["--version"])
"""What is answered before any flag is read."""


def program() -> NoReturn:
    """Run the command line that the process was given, and end the process with its exit code.

    Where nothing waits for the interpreter to come to its end, neither a thread nor what is registered for it, the process ends at
    once: taking apart what was loaded takes a tenth of a short command.
    """
    code = main()
    if "threading" not in sys.modules and not atexit._ncallbacks():  # noqa: SLF001 - there is no other way to ask
        _flushed(sys.stderr)
        os._exit(code if _flushed(sys.stdout) else code or 1)
    sys.exit(code)


def _flushed(stream: TextIO) -> bool:
    """Write out what a stream holds; return whether somebody took it."""
    try:
        stream.flush()
    except (OSError, ValueError):
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; argument errors and help leave through the same door."""
    words = _plain(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and stream.encoding.lower() != "utf-8":
            codecs.register_error("kpolicy", _legible)
            stream.reconfigure(errors="kpolicy")
    try:
        code = _run(words)
        sys.stdout.flush()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # whoever read the output has enough; nothing more must be written when the interpreter ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        from .output.diagnostics import explain

        return explain(error, trace="-v" in words or "--verbose" in words)
    return code


def _legible(error: UnicodeError) -> tuple[str, int]:
    """Write what a locale has no letters for: lines as ASCII draws them, the rest as escapes, which JSON reads as the letter."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_LINES.get(char) or char.encode("ascii", "backslashreplace").decode() for char in text), error.end  # fmt: skip


def _plain(words: Sequence[str]) -> list[str]:
    """Return words as argparse reads them: kubectl's `-v=6` and `-v 6` have one level here, and a column to sort by may begin with `-`."""
    made: list[str] = []
    for word in words:
        name, equals, level = word.partition("=")
        if made[-1:] == ["-v"] and word.isdigit():
            continue
        if made[-1:] == ["--sort-by"] and word[:1] == "-" and word[1:2] != "-":
            made[-1] = f"--sort-by={word}"
        else:
            made.append("-v" if name in ("-v", "--v") and equals and level.isdigit() else word)
    return made


def _run(words: list[str]) -> int:
    """Read global flags, then hand over to the command."""
    if words in _ASKING_FOR_HELP:
        sys.stdout.write(cli.help_text())
        return 0
    if words in _ASKING_FOR_VERSION:
        from .cli.version import show

        return show()
    # what is loaded and read at first stays: looking through it for garbage every few hundred objects is for nothing
    gc.set_threshold(_OBJECTS, 20, 20)
    from .cli.parsing import top_parser

    top, first = top_parser(), _first_word(words)
    known = top.parse_args(words[:first])
    if first < len(words):
        return cli.dispatch(words[first], words[first + 1 :], known)
    if known.version:
        return cli.dispatch("version", [], known)
    top.print_help()
    return 0


def _first_word(words: list[str]) -> int:
    """Return the index of the command: the first word that is neither a flag nor the value of `--color`."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] == "--color" else 1
    return min(index, len(words))
