"""Regular expressions that are compiled when they are first used.

Compiling those that stand in modules takes a sixth of a short command, and most commands use few of them.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Lazy:
    """Stands for a compiled expression; what was asked for once is an attribute of its own and costs no more than the expression's."""

    def __init__(self, text: str, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(*self._source), name)
        self.__dict__[name] = found
        return found


def regex(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return what has the methods of a compiled expression; the first use raises `re.error` for a text that is none.

    Functions of `re` do not take it: the methods are to be called.
    """
    return cast("re.Pattern[str]", _Lazy(text, flags))
