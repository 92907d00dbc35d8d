"""The rights of a sandbox's files: its database holds the key that signs everybody's tokens, so it is for its owner alone."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_OTHERS = 0o077
DATABASE = "sandbox.db"


def make_private(folder: Path) -> list[str]:
    """Make a sandbox's folder and its database private, the database with what SQLite writes beside it.

    Return the names of those that others could open before. A folder that is everybody's by its sticky bit, as `/tmp`, is left as it is.
    Raises OSError where the files are not ours.
    """
    places = [place for place in folder.glob(f"{DATABASE}*") if place.is_file()]
    is_own = not folder.stat().st_mode & stat.S_ISVTX
    wide = [place for place in ([folder] if is_own else []) + places if _is_wide(place)]
    for place in wide:
        place.chmod(place.stat().st_mode & ~_OTHERS & 0o777)
    database = folder / DATABASE
    # SQLite gives what it writes beside a database the rights of the database.
    os.close(os.open(database, os.O_RDWR | os.O_CREAT, 0o600))
    return [place.name for place in wide]


def _is_wide(place: Path) -> bool:
    return bool(place.stat().st_mode & _OTHERS)
