"""What `parse_yaml` adds to the YAML reader: the first document alone, and errors in the words of Go's library.

Upstream stops reading after the first document, so what follows it need not even be YAML; and it hands the library's
error texts on, which name lines by rules of their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from engine.errors import DocumentError

_MARK: Final = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NO_CONTENT: Final = re.compile(r"(?:[ \t]*(?:#.*|%.*)?(?:\r?\n|\Z))*")
_ALIAS: Final = re.compile(r"\*([^\s,\[\]{}]+)")
_NUMBERS: Final = {"-": "-Inf", "+": "+Inf", ".": "+Inf"}


def first_document(text: str) -> str:
    """Return `text` up to the end of its first document."""
    begun = False
    for mark in _MARK.finditer(text):
        if begun or _NO_CONTENT.fullmatch(text, 0, mark.start()) is None:
            return text[: mark.start()]
        if mark.group() == "...":
            return text
        begun = True
    return text


def go_text(error: DocumentError, text: str) -> str:
    """Return the error as upstream words it, as far as the reader's own error tells."""
    cause: Any = error.__cause__
    problem = getattr(cause, "problem", None)
    if problem:
        return f"yaml: {_line(cause)}{_problem(problem, cause, text)}"
    message = error.message
    if message.startswith("unsupported value: `"):
        written = message.split("`")[1]
        return f"json: unsupported value: {_not_finite(written)}"
    message = re.sub(r"^cannot decode `", "cannot decode !!str `", message)
    return message if message.startswith("unsupported map key") else f"yaml: {message}"


def _problem(problem: str, cause: Any, text: str) -> str:
    if not problem.startswith("found undefined alias"):
        return problem
    mark = cause.problem_mark or cause.context_mark
    alias = _ALIAS.match(text, mark.index) if mark else None
    return f"unknown anchor '{alias[1]}' referenced" if alias else problem


def _line(cause: Any) -> str:
    """Return Go's line prefix: the context's line, else the problem's; a first line is not named at all."""
    if type(cause).__name__ == "ComposerError":
        return ""
    marks = (cause.context_mark, cause.problem_mark)
    line = next((mark.line for mark in marks if mark is not None and mark.line), 0)
    if not line:
        return ""
    return f"line {line + (type(cause).__name__ == 'ScannerError')}: "


def _not_finite(written: str) -> str:
    return "NaN" if "nan" in written.lower() else _NUMBERS.get(written[:1], "+Inf")
