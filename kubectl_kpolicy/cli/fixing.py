"""`lint --fix`: what has one meaning is written so, in the text of the file, so that comments and order stay as they are.

Mended are fields and variables that are misspelt beyond doubt, and actions in lower case. Every change is tried on a copy and kept
only where the finding is gone and no other one came, so a file is never worse than before.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Find = Callable[[str], list["Mistake"] | None]


class Mistake(NamedTuple):
    """One finding: the line of the text, what tells it from others, and what is written and was meant where that is known."""

    line: int
    what: tuple[str, str, str]
    fix: tuple[str, str] | None


_SURE = 0.8
"""How alike a misspelt name and the one that was meant must be."""
_REACH = 40
"""Lines below the one of a finding in which the text that it is about is looked for."""


def fix_file(path: Path, find: Find) -> int:
    """Mend a file and return how many findings are gone; a file that cannot be read is left as it is."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError):
        return 0
    mended, count = fixed(text, find)
    if count:
        path.write_text(mended)
    return count


def fixed(text: str, find: Find) -> tuple[str, int]:
    """Return a text of YAML with what could be mended, and how many findings are gone.

    `find` returns what is found in a text, None where it cannot be read, as with a field that stands there twice.
    """
    found = find(text) or []
    count = 0
    while (better := _better(text, found, find)) is not None:
        count += len(found) - len(better[1])
        text, found = better
    return text, count


def _better(text: str, found: list[Mistake], find: Find) -> tuple[str, list[Mistake]] | None:
    """Return the text with one finding less and what is still found, None where nothing helps."""
    known = {one.what for one in found}
    for line in found:
        if line.fix is None or not _is_sure(*line.fix):
            continue
        for candidate in _edits(text, line.line, *line.fix):
            left = find(candidate)
            if left is None:
                continue
            if len(left) < len(found) and {one.what for one in left} <= known:
                return candidate, left
    return None


def _is_sure(written: str, meant: str) -> bool:
    return SequenceMatcher(None, written.lower(), meant.lower()).ratio() >= _SURE


def _edits(text: str, line: int, written: str, meant: str) -> Iterator[str]:
    """Yield the text with one occurrence replaced, for each that stands near the line of a finding."""
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: max(0, line - 1)]))
    end = start + sum(map(len, lines[max(0, line - 1) : line + _REACH]))
    for place in re.finditer(rf"(?<![\w.]){re.escape(written)}(?!\w)", text[start:end]):
        at = start + place.start()
        yield text[:at] + meant + text[at + len(written) :]
