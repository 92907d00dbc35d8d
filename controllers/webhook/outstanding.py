"""How many usable codes there are: per user and policy, and per namespace. A sixth is not made until one is used or over.

Minted codes are stored nowhere, so each replica remembers those that it handed out, and counts with them the uses on record
that are not older than a code may become. It forgets with the codes' end, and more than it can remember counts as too many.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from datetime import datetime

    from .code_bindings import CodeBinding

MOST_PER_POLICY: Final = 5
MOST_PER_NAMESPACE: Final = 100
_MOST_CODES: Final = 20_000
_Owner = tuple[str, str]
"""A user and a policy (by key)."""


class Outstanding:
    """Codes that were handed out here and can still be used, by the name of their use."""

    def __init__(self) -> None:
        self._codes: dict[str, tuple[_Owner, str, datetime]] = {}
        self._by_owner: Counter[_Owner] = Counter()
        self._by_namespace: Counter[str] = Counter()
        self._next_end: datetime | None = None

    def __repr__(self) -> str:
        return f"<Outstanding {len(self._codes)}>"

    def may_add(self, use: str, claim: CodeBinding, now: datetime, used: int = 0) -> bool:
        """Tell whether a code may be handed out; one that was already may be again. `used` are uses on record beside."""
        self._forget(now)
        if use in self._codes:
            return True
        owner, namespace = (claim.binding.username, claim.policy), claim.binding.namespace
        return (
            self._by_owner[owner] + used < MOST_PER_POLICY
            and (not namespace or self._by_namespace[namespace] < MOST_PER_NAMESPACE)
            and len(self._codes) < _MOST_CODES
        )

    def add(self, use: str, claim: CodeBinding, ends: datetime) -> None:
        """Remember a code that was handed out."""
        if use in self._codes:
            return
        owner, namespace = (claim.binding.username, claim.policy), claim.binding.namespace
        self._codes[use] = (owner, namespace, ends)
        self._by_owner[owner] += 1
        self._by_namespace[namespace] += 1
        self._next_end = min(self._next_end or ends, ends)

    def take(self, use: str) -> None:
        """Forget a code that was used or is over."""
        known = self._codes.pop(use, None)
        if known is not None:
            _less(self._by_owner, known[0])
            _less(self._by_namespace, known[1])

    def _forget(self, now: datetime) -> None:
        if self._next_end is None or now < self._next_end:
            return
        for use in [use for use, one in self._codes.items() if one[2] <= now]:
            self.take(use)
        self._next_end = min((one[2] for one in self._codes.values()), default=None)


def _less(counts: Counter[Any], key: Any) -> None:
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]
