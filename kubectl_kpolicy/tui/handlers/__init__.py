"""What actions do in the console, by their ids; each takes the console and may return something to await."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import (
    changes,
    choices,
    cleanup_preview,
    codes,
    details,
    input_line,
    jump,
    lists,
    navigation,
    replay,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kubectl_kpolicy.tui.app import Console

CHEAP = frozenset({"down", "up", "top", "bottom", "page-down", "page-up", "left", "right"})
"""Actions after which nothing but the cursor has changed; the table tells of that itself."""

HANDLERS: dict[str, Callable[[Console], Awaitable[None] | None]] = {
    **navigation.HANDLERS,
    **lists.HANDLERS,
    **details.HANDLERS,
    **input_line.HANDLERS,
    **changes.HANDLERS,
    **codes.HANDLERS,
    **cleanup_preview.HANDLERS,
    **choices.HANDLERS,
    **replay.HANDLERS,
    **jump.HANDLERS,
}
