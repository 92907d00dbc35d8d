"""Why an action is not possible now: read-only, no rights, nothing behind the console; one sentence with the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .registry import Action, Right

READ_ONLY = "read-only: `:write` unlocks for 15 min"


def refusal(
    action: Action, *, read_only: bool, rights: Mapping[Right, bool], has_row: bool = True
) -> str:
    """Return why an action is refused, empty when it is not; rights that are not known are not in the way."""
    if action.needs_row and not has_row:
        return "needs a row"
    if not action.is_guarded:
        return ""
    if read_only:
        return READ_ONLY
    missing = [str(right) for right in action.rights if rights.get(right) is False]
    return f"you may not {', '.join(missing)}" if missing else ""
