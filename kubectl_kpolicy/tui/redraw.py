"""When changes of the cluster cache are drawn: soon where drawing is quick, more rarely where it is not, and not between two quick keys.

Knows no widgets; time comes from whoever asks.
"""

from __future__ import annotations

_SHARE = 5.0
"""Drawing may take one part in so many of the time."""

_DEAR, _BETWEEN_KEYS, _LONGEST = 0.03, 0.15, 1.0


class Pace:
    """See the module; all instants are seconds of one clock that never goes back."""

    def __init__(self) -> None:
        self._cost = 0.0
        self._ended = -_LONGEST
        self._pressed = -_LONGEST

    def __repr__(self) -> str:
        return f"<Pace {self._cost * 1000:.0f} ms>"

    def drew(self, began: float, ended: float) -> None:
        """Note when something was drawn."""
        self._cost, self._ended = ended - began, ended

    def pressed(self, at: float) -> None:
        """Note that a key was pressed."""
        self._pressed = at

    def is_due(self, now: float) -> bool:
        """Tell whether changes may be drawn now; they never wait longer than a second beyond their share."""
        since = now - self._ended
        if since < _SHARE * self._cost:
            return False
        hurries = self._cost > _DEAR and now - self._pressed < _BETWEEN_KEYS
        return not hurries or since > _SHARE * self._cost + _LONGEST
