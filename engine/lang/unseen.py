"""Characters that are not seen, or that make a terminal do something: the one table of them.

Whoever writes text that people look at, such as YAML, lists and screens, escapes these.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

RANGES: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufeff\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f\U000f0000-\U0010ffff"
)
"""Inside of a character class: Unicode's Cc, Cf, Cs, Co, Zl and Zp, tabs and line feeds aside."""


@cache
def unseen() -> re.Pattern[str]:
    """Return a pattern of one such character; compiled when the first text needs it."""
    return re.compile(f"[{RANGES}]")
