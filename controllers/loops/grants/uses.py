"""How often each grant was used, as far as records tell.

Of limited grants from the records of their uses, of others from what the webhooks have added up in their status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.store.grant_uses import GRANT_UID
from controllers.store.uses import UNPROVEN
from engine.grants.model import instant_of

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kube.store import Change
    from engine.grants import Grant
    from engine.model import Object


class Uses:
    """Follows the records of uses of grants."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, datetime | None]] = {}

    def note(self, change: Change) -> tuple[str, str] | None:
        """Take over a record that came or went; return (namespace, name) of the grant that it is about, if any."""
        use = change.new or change.old
        uid = _uid(use) if use is not None else ""
        if use is None or not uid:
            return None
        if change.new is None:
            # A record that was pruned is still a use: the status keeps the number.
            return None
        spec = use.get("spec") or {}
        state = (use.get("status") or {}).get("state")
        if spec.get(UNPROVEN) and state != "Confirmed":
            # a reservation is no use yet, and may be given back
            self._known.get(uid, {}).pop(use["metadata"]["name"], None)
            return None
        at = instant_of(str(spec.get("usedAt") or ""))
        self._known.setdefault(uid, {})[use["metadata"]["name"]] = at
        namespace, _, name = str(spec.get("grant") or "").rpartition("/")
        return namespace, name

    def of(self, grant: Grant) -> tuple[int, datetime | None]:
        """Return how often a grant was used, and when for the last time."""
        written = grant.status.get("uses")
        uses = written if type(written) is int else 0
        last = instant_of(str(grant.status.get("lastUsedAt") or ""))
        known = self._known.get(grant.uid)
        if not grant.uses or known is None:
            return uses, last
        instants = [at for at in (*known.values(), last) if at is not None]
        return max(uses, len(known)), max(instants, default=None)

    def forget(self, uid: str) -> None:
        """Forget the records of a grant that is gone."""
        self._known.pop(uid, None)


def _uid(use: Object) -> str:
    labels = (use.get("metadata") or {}).get("labels") or {}
    return str(labels.get(GRANT_UID) or "")
