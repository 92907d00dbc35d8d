"""Whether to colour, and the few colours there are: one role each, always beside a word that says the same."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping

ROLES: Mapping[str, str] = {
    "name": "36;1",
    "good": "32;1",
    "bad": "31;1",
    "warn": "33;1",
    "quiet": "2",
    "head": "1",
}


def wanted(choice: str, stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether output to `stream` is coloured: as `--color` says, else on a terminal that NO_COLOR and TERM do not forbid."""
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return stream.isatty()


def paint(text: str, role: str, *, on: bool) -> str:
    """Return the text in the colour of a role, or as it is."""
    return f"\x1b[{ROLES[role]}m{text}\x1b[0m" if on and text else text
