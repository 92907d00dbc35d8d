"""What goes wrong outside, as errors whose texts may be shown: they never hold what a server answered."""

from __future__ import annotations

from engine.errors import EngineError


class OutsideError(EngineError):
    """Something outside could not be had: refused by the gate, not reached, or answered with an error."""


class MissingError(OutsideError):
    """What was asked for is not there; nothing kept anybody from looking."""


class EgressError(OutsideError):
    """The gate refuses an address."""


class UnreachableError(OutsideError):
    """There was no usable answer: no address, no connection, no trust, too slow."""


class StatusError(OutsideError):
    """An answer with an HTTP status that is none of success."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def shown(text: str) -> str:
    """Return foreign text short enough and clean enough for a message."""
    return "".join(char if char.isprintable() else "?" for char in text[:200])
