"""Texts with gaps: what a command must print, word for word, with places for what differs from run to run.

`<<code=[0-9a-z]{8}>>` takes what the expression matches and remembers it as `code`; `<<code>>` stands for what was remembered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_GAP = re.compile(r"<<(\w+)(?:=(.*?))?>>", re.DOTALL)

Known = Mapping[str, str]


class UnknownNameError(Exception):
    """A text stands for something that no step before it has remembered."""


def filled(text: str, known: Known) -> str:
    """Return a text with what is remembered put in; raises UnknownNameError."""

    def value(found: re.Match[str]) -> str:
        if found[2] is not None or found[1] not in known:
            raise UnknownNameError(f"`{found[0]}` in `{text}` is not known here")
        return known[found[1]]

    return _GAP.sub(value, text)


def whole(pattern: str, text: str, known: Known) -> dict[str, str] | None:
    """Return what a text adds to the known values when it is the pattern; None when it is not."""
    found = re.fullmatch(_expression(pattern.strip(), known), text.strip())
    return None if found is None else {**known, **found.groupdict()}


def part(pattern: str, text: str, known: Known) -> dict[str, str] | None:
    """Return what a text adds to the known values when the pattern is somewhere in it; None when it is not."""
    found = re.search(_expression(pattern.strip(), known), text)
    return None if found is None else {**known, **found.groupdict()}


def _expression(pattern: str, known: Known) -> str:
    made, end, named = [], 0, set()
    for gap in _GAP.finditer(pattern):
        made.append(re.escape(pattern[end : gap.start()]))
        name, expression = gap[1], gap[2]
        if expression is not None:
            made.append(f"(?P<{name}>{expression})")
            named.add(name)
        elif name in named:
            made.append(f"(?P={name})")
        else:
            made.append(re.escape(filled(gap[0], known)))
        end = gap.end()
    made.append(re.escape(pattern[end:]))
    return "".join(made)
