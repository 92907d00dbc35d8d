"""Where variables get their values: the data of one evaluation, with context entries loaded when first mentioned.

A scope belongs to one policy and one object; `child()` makes the scope of a foreach element. Values are never changed
in place: a scope owns only its top-level dictionary and the maps on the way to values that were set by path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.lang import jmes

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.lang.jmes.values import Env
    from engine.model.json import Json

    Loader = Callable[["Scope"], Json]
    Watcher = Callable[[str, Json], None]


class Scope:
    """Data under the JMESPath root, pending context entries, and what expressions may know beyond data.

    `is_delete` makes the text `request.object` mean `request.oldObject` (row V-06). `watch`, when set, is told every
    expression and its value: that is how explanations learn the values of variables. `rereads` says that values which
    hold `{{ … }}` are read as expressions, too, as Kyverno does.
    """

    __slots__ = ("_pending", "data", "env", "is_delete", "rereads", "watch")

    def __init__(
        self, data: dict[str, Json], env: Env, *, is_delete: bool = False, rereads: bool = False
    ) -> None:
        self.data = data
        self.env = env
        self.is_delete = is_delete
        self.rereads = rereads
        self.watch: Watcher | None = None
        self._pending: list[tuple[str, Loader]] = []

    def child(self) -> Scope:
        """Make a scope that starts with the same data; what it loads or sets stays its own."""
        made = Scope(dict(self.data), self.env, is_delete=self.is_delete, rereads=self.rereads)
        made.watch = self.watch
        made._pending = self._pending.copy()
        return made

    def defer(self, name: str, loader: Loader) -> None:
        """Let `loader` give the value of `name` when an expression first mentions it (row A-56)."""
        self._pending.append((name, loader))

    def set(self, name: str, value: Json) -> None:
        """Set a top-level name."""
        self.data[name] = value

    def set_path(self, path: list[str], value: Json) -> None:
        """Set a value below the root, copying the maps on the way; maps that meet are merged key by key."""
        self.data = _placed(self.data, path, value)

    def query(self, expression: str) -> Json:
        """Return the value of a JMESPath expression; raises EvaluationError with Kyverno's wording."""
        try:
            compiled = jmes.compile(expression)
        except jmes.ExpressionError as error:
            raise EvaluationError(f"incorrect query {expression}: {error.message}") from error
        return self.run(compiled, expression)

    def run(self, compiled: jmes.Query, expression: str) -> Json:
        """Return the value of a compiled expression, loading the pending entries that it mentions."""
        if self._pending:
            self._load(compiled.names)
        try:
            value = compiled(self.data, self.env)
        except EvaluationError as error:
            raise error.reworded(f"JMESPath query failed: {error.message}") from error
        if self.watch is not None:
            self.watch(expression, value)
        return value

    def _load(self, names: frozenset[str]) -> None:
        """Load pending entries among `names` in order; while one loads, only earlier ones are reachable from it.

        An entry that fails stays pending, so that the next mention fails in the same way.
        """
        index = 0
        pending = self._pending
        while index < len(pending):
            name, loader = pending[index]
            if name not in names:
                index += 1
                continue
            earlier, later = pending[:index], pending[index + 1 :]
            self._pending = earlier
            try:
                value = loader(self)
            except BaseException:
                self._pending = pending
                raise
            self.data[name] = value
            index = len(self._pending)
            pending = self._pending + later
            self._pending = pending


def _placed(data: dict[str, Json], path: list[str], value: Json) -> dict[str, Json]:
    head, rest = path[0], path[1:]
    old = data.get(head)
    if rest:
        value = _placed(old if isinstance(old, dict) else {}, rest, value)
    elif isinstance(old, dict) and isinstance(value, dict):
        value = _merged(old, value)
    return {**data, head: value}


def _merged(old: dict[str, Json], new: dict[str, Json]) -> dict[str, Json]:
    made = dict(old)
    for key, value in new.items():
        before = made.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        made[key] = _merged(before, value) if both and before is not None else value
    return made
