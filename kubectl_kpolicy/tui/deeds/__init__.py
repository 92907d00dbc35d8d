"""What actions do in the console, by their ids; each takes the console and may return something to await."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import (
    changing,
    choosing,
    coding,
    foreseeing,
    jumping,
    looking,
    moving,
    replaying,
    showing,
    typing,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kubectl_kpolicy.tui.app import Console

CHEAP = frozenset({"down", "up", "top", "bottom", "page-down", "page-up", "left", "right"})
"""Actions after which nothing but the cursor has changed; the table tells of that itself."""

DEEDS: dict[str, Callable[[Console], Awaitable[None] | None]] = {
    **moving.DEEDS,
    **looking.DEEDS,
    **showing.DEEDS,
    **typing.DEEDS,
    **changing.DEEDS,
    **coding.DEEDS,
    **foreseeing.DEEDS,
    **choosing.DEEDS,
    **replaying.DEEDS,
    **jumping.DEEDS,
}
