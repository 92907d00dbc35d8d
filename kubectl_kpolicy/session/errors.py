"""What ends a command in other ways than a failure: refused by a limit, over already, not settled in time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from controllers.kube.errors import Forbidden, Invalid
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.grants import Refusal

_BY_WEBHOOK = "denied the request: "
_BY_POLICY = "denied request: "


class Refused(EngineError):  # noqa: N818 - it names the verdict
    """A grant policy refuses it; the text names the limit and the next possible step."""


class Over(EngineError):  # noqa: N818 - it names the state
    """It has ended, or waits for nothing that was asked of it."""


class TimedOut(EngineError):  # noqa: N818 - it names what happened
    """The time given for waiting has passed; nothing was undone."""


def refused_by(refusals: Iterable[Refusal]) -> Refused:
    """Return the refusals as one error, a line each."""
    return Refused("\n".join(map(str, refusals)))


@contextmanager
def admission() -> Iterator[None]:
    """Raise Refused for what admission refuses within the block; other errors stay, for RBAC speaks in other words."""
    try:
        yield
    except (Forbidden, Invalid) as error:
        for mark in (_BY_WEBHOOK, _BY_POLICY):
            _, found, text = error.message.partition(mark)
            if found:
                refused = text if text.startswith("refused: ") else f"refused: {text}"
                raise Refused(refused) from error
        raise
