"""Where libyaml is met: text in, composed nodes out, one root per document.

Three ways, all with the same nodes. A text without tags and anchors that cannot nest deep is composed by PyYAML's C code, with
functions written in C in the slots of the resolver (a fifth of the reading time saved); the same with a counter in those slots
where brackets are many; everything else, and everything where libyaml is missing, by `events.py`. Tags of scalars are not
resolved here; a node's `tag` only says, for those who care, whether the scalar was written plain.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml
from yaml.reader import ReaderError

from engine.errors import DocumentError, Location

from . import events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from yaml.nodes import Node

    from engine.lang.limits import Limits

_MANY_BRACKETS = 1_000
_FAR_INDENTED = 200
_FLAT_BRACKETS = re.compile(r"\[[\w ,./:-]*\]|\{[\w ,./:-]*\}")
_DEEP_LINE = re.compile(rf"\n[ \t?:-]{{{_FAR_INDENTED}}}")
_DEEP_ANYWHERE = re.compile(rf"[ \t?:-]{{{_FAR_INDENTED}}}")
_OTHER_BREAKS = ("\r", "\x85", "\u2028", "\u2029")
_NEEDS_CARE = re.compile(r"""(?:!|&(?=[A-Za-z0-9_-]))(?<![^\s\[\]{},:?"'\ufeff].)""")


def may_be_deep(text: str) -> bool:
    """Tell whether a text could nest deeper than C code may recurse without counting.

    INVARIANT: a block level costs a column of indentation (a list inside a mapping may stand at its parent's column, hence at most
    two levels a column) and a flow level a bracket; brackets around plain words close at once and add one level in all. So a text
    that passes nests at most 1,401 deep.
    """
    brackets = text.count("{") + text.count("[")
    if brackets > _MANY_BRACKETS and brackets - len(_FLAT_BRACKETS.findall(text)) > _MANY_BRACKETS:
        return True
    if any(mark in text for mark in _OTHER_BREAKS):
        return _DEEP_ANYWHERE.search(text) is not None
    return _DEEP_LINE.search(text) is not None or _DEEP_ANYWHERE.match(text) is not None


def needs_care(text: str) -> bool:
    """Tell whether a text may hold tags or anchors.

    INVARIANT: both begin a token, which in a readable text happens only at the start, after white space or after one of the marks
    listed; `a && b` and `"hello!"` hold neither.
    """
    return ("!" in text or "&" in text) and _NEEDS_CARE.search(text) is not None


def roots(text: str, limits: Limits, file: str, *, care: bool) -> Iterator[Node]:
    """Yield the root node of every document; raise DocumentError with the line where the text is no YAML."""
    try:
        yield from _composed(text, limits, care=care)
    except DocumentError as error:
        raise DocumentError(error.message, at=Location(file, error.at.line)) from error
    except yaml.MarkedYAMLError as error:
        raise DocumentError(_sentence(error), at=Location(file, _line(error))) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # half characters are a ValueError, escapes beyond Unicode either of the two in the pure parser
        at = Location(file, _line_of_unreadable(error, text))
        raise DocumentError(f"not readable as text: {_first_line(error)}", at=at) from error


def _composed(text: str, limits: Limits, *, care: bool) -> Iterator[Node]:
    """Yield the root nodes by the way that suits the text."""
    if care or not events.has_libyaml():
        yield from events.compose(text, limits)
        return
    from . import native

    parser: Any = native.Counting(text, limits) if may_be_deep(text) else native.Fast(text)
    while parser.check_node():
        yield parser.get_node()


def _line(error: yaml.MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 0


def _line_of_unreadable(error: Exception, text: str) -> int:
    """Return the line of a character that no YAML may hold, 0 where it is unknown."""
    if isinstance(error, UnicodeEncodeError) and error.object == text:
        return text.count("\n", 0, error.start) + 1
    if isinstance(error, ReaderError):
        # libyaml counts bytes, the pure parser characters
        if events.has_libyaml():
            return text.encode("utf-8", "replace")[: error.position].count(b"\n") + 1
        return text.count("\n", 0, error.position) + 1
    return 0


def _sentence(error: yaml.MarkedYAMLError) -> str:
    """Return libyaml's two half sentences as one, for example `did not find expected key while parsing a block mapping`."""
    return (
        " ".join(part for part in (error.problem, error.context) if part) or "not readable as YAML"
    )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
