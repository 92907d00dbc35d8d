"""Which ways out of a denial somebody has: asking for an exception, and codes, as the grant policies have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.grants.requests import covers, lets_ask

if TYPE_CHECKING:
    from engine.grants import GrantPolicy

_MOST, _LONGEST = 1024, 2048
"""How many ways are remembered, and how many characters of who asks for one: these texts come from requests."""
_MODES: Final = ("acknowledge", "approve")
"""The modes in which there are codes; one that lets people acknowledge goes first."""


@dataclass(frozen=True, slots=True)
class Way:
    """Whether somebody may ask for an exception, and the grant policy under which they may have codes, None for none."""

    may_ask: bool
    codes: GrantPolicy | None


class Ways:
    """The ways out by who is denied what; each is worked out once while the grant policies stay as they are."""

    def __init__(self) -> None:
        self._policies: tuple[GrantPolicy, ...] = ()
        self._known: dict[tuple[str | tuple[str, ...], ...], Way] = {}

    def __repr__(self) -> str:
        return f"<Ways {len(self._known)}>"

    def of(
        self,
        policies: tuple[GrantPolicy, ...],
        blocking: str,
        rules: tuple[str, ...],
        namespace: str,
        user: str,
        groups: tuple[str, ...],
    ) -> Way:
        """Return the way out of what some rules of a policy (by its identity) deny in a namespace."""
        if policies is not self._policies or len(self._known) >= _MOST:
            self._policies, self._known = policies, {}
        asked = (blocking, rules, namespace, user, groups)
        found = self._known.get(asked)
        if found is None:
            found = _way(policies, blocking, rules, namespace, user, frozenset(groups))
            if len(user) + len(namespace) + sum(map(len, (*rules, *groups))) <= _LONGEST:
                self._known[asked] = found
        return found


def _way(
    policies: tuple[GrantPolicy, ...],
    blocking: str,
    rules: tuple[str, ...],
    namespace: str,
    user: str,
    groups: frozenset[str],
) -> Way:
    covering = [
        one
        for one in policies
        if covers(one, blocking, rules, namespace) and lets_ask(one, user, groups)
    ]
    on = [one for one in covering if one.codes in _MODES]
    chosen = min(on, key=lambda one: (_MODES.index(one.codes), one.name), default=None)
    return Way(bool(covering), chosen)
