"""libyaml's composer in its two forms; imported only where PyYAML has libyaml.

The slots of the resolver are called for every node and cost a fifth of the reading time when they hold Python functions. What they
return becomes the node's `tag`, which only the careful builder looks at, and that one gets its nodes elsewhere.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from yaml._yaml import CParser

from engine.errors import DocumentError
from engine.lang.json import too_deep

if TYPE_CHECKING:
    from engine.lang.work import Limits


class Fast(CParser):
    """Composes texts that neither nest deep nor hold tags or anchors."""

    resolve = slice
    descend_resolver = operator.is_
    ascend_resolver = bool


class Counting(CParser):
    """The same for texts that may nest deep: refuses one level too many."""

    resolve = slice

    def __init__(self, text: str, limits: Limits) -> None:
        super().__init__(text)
        self.deepest = limits
        self.depth = 0

    def descend_resolver(self, _parent: Any, _index: Any) -> None:
        """Enter a node; a scalar below the last level is still allowed."""
        self.depth += 1
        if self.depth > self.deepest.depth + 1:
            raise DocumentError(too_deep(self.deepest))

    def ascend_resolver(self) -> None:
        """Leave a node."""
        self.depth -= 1
