"""What a check has to say: how grave, what, and where in the document.

Checks yield findings instead of raising, so that a person sees everything at once; the webhook refuses on the first error.
Messages are Kyverno's where its text is known.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Literal, ParamSpec

from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Severity = Literal["error", "warning"]
P = ParamSpec("P")


@record
class Finding:
    """One thing that is wrong (`error`: the document is refused) or doubtful (`warning`) at a path of the document.

    `help` says what to do where that is known, `fix` which text stands there and which was meant; `is_sentence` says that the text begins with the message and not with the path, where scripts look for upstream's words.
    """

    severity: Severity
    message: str
    path: str = ""
    is_sentence: bool = False
    help: str = ""
    fix: tuple[str, str] | None = None

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.message}" if self.path and not self.is_sentence else self.message
        )


def gathered(check: Callable[P, Iterator[Finding]]) -> Callable[P, tuple[Finding, ...]]:
    """Have a check return everything that it yields."""

    @wraps(check)
    def lint(*args: P.args, **kwargs: P.kwargs) -> tuple[Finding, ...]:
        return tuple(check(*args, **kwargs))

    return lint


def error(path: str, message: str, advice: str = "", fix: tuple[str, str] | None = None) -> Finding:
    """Make a finding for which the document is refused."""
    return Finding("error", message, path, help=advice, fix=fix)


def warning(path: str, message: str, fix: tuple[str, str] | None = None) -> Finding:
    """Make a finding that people should see and that refuses nothing."""
    return Finding("warning", message, path, fix=fix)


def sentence(path: str, message: str) -> Finding:
    """Make a warning in upstream's words, which come first wherever it is shown."""
    return Finding("warning", message, path, is_sentence=True)


def invalid(path: str, value: object, message: str) -> Finding:
    """Make an error in the form of Kubernetes' field errors."""
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return error(path, f"Invalid value: {shown}: {message}")
