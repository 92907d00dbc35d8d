"""Data in which nothing can steer a terminal: what JSON and YAML may escape is escaped always, the rest where a person looks.

Objects hold what others wrote. Control characters, marks of writing direction and characters without width are written as
escapes that mean the same to every reader of JSON or YAML; formats without escapes stay exact for programs, and are made visible
only on a terminal.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

RANGES: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufeff\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f\U000f0000-\U0010ffff"
)  # fmt: skip
"""Everything that is not seen, or makes a terminal do something, tabs and line feeds aside (Unicode: Cc, Cf, Cs, Co, Zl, Zp)."""


@cache
def unseen() -> re.Pattern[str]:
    """Return a pattern of one such character; compiled when the first text needs it."""
    return re.compile(f"[{RANGES}]")


def escaped(text: str) -> str:
    """Return JSON, or a double quoted scalar of its kind, with an escape for everything unseen; it means the same."""
    if text.isascii() and "\x7f" not in text:
        return text
    return unseen().sub(lambda found: _units(found[0]), text)


def _units(char: str) -> str:
    """Return a character as one escape, or as two beyond the basic plane."""
    data = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at]:02x}{data[at + 1]:02x}" for at in range(0, len(data), 2))


def shown(text: str, out: TextIO) -> str:
    """Return text that has no escapes of its own, made visible where a stream is a terminal, exact elsewhere."""
    return unseen().sub(lambda found: _units(found[0]), text) if out.isatty() else text
