"""JSON pointers (RFC 6901) as JSON patches use them, and getting, setting and removing one member of a map or a list.

Apart from `json6902` because here is how indexes are read - as Go reads them, negative ones from the end - and there which
operation does what.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError, LimitError

if TYPE_CHECKING:
    from engine.model import Json

MOST_PARTS: Final = 100
"""Levels that one path may go down; far more than any object has."""

MOST_PADDING: Final = 10_000
"""Nulls that one operation may put in front of a new element; bounds what `/spec/l/999999999` costs."""

_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_MISSING: Final = "missing value"
_BAD_INDEX: Final = "invalid index referenced"


def split(path: str) -> list[str]:
    """Return the unescaped keys of a path that starts with `/`; LimitError when there are too many."""
    if path.count("/") > MOST_PARTS:
        raise LimitError(f"path of a patch has more than {MOST_PARTS} levels")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def join(parts: tuple[str | int, ...]) -> str:
    """Write keys and indexes as a path."""
    return "".join([f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts])


def index_of(key: str) -> int | None:
    """Read a list index as Go's `strconv.Atoi`; None when the key is none."""
    return int(key) if _INDEX.fullmatch(key) else None


def get(container: Json, key: str) -> Json:
    """Return a member of a map or list; raises EvaluationError, in Kyverno's words, where there is none."""
    if isinstance(container, dict):
        if key not in container:
            raise missing(f"unable to get nonexistent key: {key}")
        return container[key]
    return container[_position(container, key)]


def has(container: Json, key: str) -> bool:
    """Tell whether a map or list has a member."""
    try:
        get(container, key)
    except EvaluationError:
        return False
    return True


def add(container: Json, key: str, value: Json) -> None:
    """Set a key of a map, or insert into a list before an index (`-` is its end), in place."""
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_place(container, key), value)


def replace(container: Json, key: str, value: Json) -> None:
    """Put another value in place of a member that is there."""
    if isinstance(container, dict):
        container[key] = value
    else:
        container[_position(container, key)] = value


def remove(container: Json, key: str) -> None:
    """Take a member out, in place; nothing happens where there is none. Raises EvaluationError for a bad list index."""
    if isinstance(container, dict):
        container.pop(key, None)
        return
    index = _whole(key)
    if -len(container) <= index < len(container):
        del container[index]


def missing(text: str) -> EvaluationError:
    """Make the error for something that is not there."""
    return EvaluationError(f"{text}: {_MISSING}")


def bad_index(text: str) -> EvaluationError:
    """Make the error for an index outside a list."""
    return EvaluationError(f"{text}: {_BAD_INDEX}")


def _position(items: list[Json], key: str) -> int:
    index = _whole(key)
    if not -len(items) <= index < len(items):
        raise bad_index(f"Unable to access invalid index: {index}")
    return index + len(items) if index < 0 else index


def _place(items: list[Json], key: str) -> int:
    """Return where to insert; counted from the end, `-1` is behind the last element."""
    index = index_of(key)
    if index is None:
        raise EvaluationError(f"value was not a proper array index: '{key}': {_not_a_number(key)}")
    if not -len(items) - 1 <= index <= len(items):
        raise bad_index(f"Unable to access invalid index: {index}")
    return index + len(items) + 1 if index < 0 else index


def _whole(key: str) -> int:
    index = index_of(key)
    if index is None:
        raise EvaluationError(_not_a_number(key))
    return index


def _not_a_number(key: str) -> str:
    return f'strconv.Atoi: parsing "{key}": invalid syntax'
