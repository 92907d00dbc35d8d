"""The engine's own errors: the only exceptions that ever leave it.

Callers (command line, webhook, loops) print `message`, point at `at` and offer `help`. Errors of other libraries are
caught where they arise and chained as the cause, so that nobody outside has to know which libraries the engine uses.
Texts are lower case, without a full stop, with user input in backticks.
"""

from __future__ import annotations

from typing import Self

from engine.record import record


@record
class Location:
    """Where in a user's input something is wrong: file, line (from 1) and path, each where known."""

    file: str = ""
    line: int = 0
    path: str = ""

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        return f"{place}: {self.path}" if place and self.path else place or self.path


NOWHERE = Location()


class EngineError(Exception):
    """Base of everything the engine raises.

    `message` says what is wrong, `at` where, `help` what to do about it (may be empty).
    """

    def __init__(self, message: str, *, at: Location = NOWHERE, help: str = "") -> None:  # noqa: A002 - the field's name in every front end
        super().__init__(message)
        self.message = message
        self.at = at
        self.help = help

    def __str__(self) -> str:
        return self.message

    def reworded(self, message: str) -> Self:
        """Return the same kind of error, at the same place, with a text that says more of the circumstances."""
        made = self.__class__.__new__(self.__class__)
        made.__dict__.update(self.__dict__)
        made.args = (message,)
        made.message = message
        return made


def reason_of(error: OSError) -> str:
    """Return why the system refused something, in lower case as every text of an error is."""
    return (error.strerror or str(error)).lower()


class DocumentError(EngineError):
    """Text that is not a readable YAML or JSON document."""


class PolicyError(EngineError):
    """A policy, exception or cleanup policy that is not acceptable as written."""


class EvaluationError(EngineError):
    """An expression, variable or pattern that failed while it was evaluated on one object."""


class LimitError(EvaluationError):
    """A bound on depth, size or cost was reached; the input is refused rather than processed further."""
