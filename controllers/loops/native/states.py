"""What is known of the native policies that stand for ours, for their status (row NG-05)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from controllers.store.policies import NativeState


class NativeStates:
    """By the key of a policy, whether there is a native one, and why not; `on_change` are told the key and must not wait.

    Nothing is known of a policy until the loop has looked at it: what its status says until then stays.
    """

    def __init__(self) -> None:
        self._known: dict[str, NativeState] = {}
        self.on_change: list[Callable[[str], None]] = []

    def get(self, key: str) -> NativeState | None:
        """Return what is known of a policy, None where nobody has looked yet."""
        return self._known.get(key)

    def put(self, key: str, state: NativeState) -> None:
        """Take over what was found out."""
        if self._known.get(key) != state:
            self._known[key] = state
            for listener in self.on_change:
                listener(key)

    def forget(self, key: str) -> None:
        """Forget a policy that is gone."""
        self._known.pop(key, None)
