"""The error for words of a command line that cannot be meant so; it ends a command as a wrong flag does, with exit code 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Misuse(EngineError):  # noqa: N818 - it names what happened
    """What was typed is no such thing: a length of time, a column, an object, a filter. Nothing was done."""


def suggestion(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return as help which of the known words was meant; where none is near, `otherwise`, or all of them."""
    from difflib import get_close_matches  # here: nothing is misspelt in most runs

    words = list(known)
    near = get_close_matches(word, words, 1)
    return f"did you mean `{near[0]}`?" if near else otherwise or f"there are {', '.join(words)}"
