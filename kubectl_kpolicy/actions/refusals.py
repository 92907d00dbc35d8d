"""Why an action is not possible now: read-only, no rights, nothing behind the console; one sentence with the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubectl_kpolicy.session.identity import Right

    from .registry import Action

READ_ONLY = "read-only: `:write` unlocks for 15 min"


def refusal(
    action: Action, *, read_only: bool, rights: Mapping[Right, bool], has_row: bool = True, kind: str = ""
) -> str:  # fmt: skip
    """Return why an action is refused, empty when it is not; rights that are not known are not in the way.

    `kind` is that of the object behind the row.
    """
    if action.needs_row and not has_row:
        return "needs a row"
    if not action.is_guarded:
        return ""
    if read_only:
        return READ_ONLY
    needed = [right for right in action.rights if right.kind in ("", kind)]
    missing = [str(right) for right in needed if rights.get(right) is False]
    return f"you may not {', '.join(missing)}" if missing else ""
