"""Where one has been: screens with their filters, back and forth, and the one before this."""

from __future__ import annotations

from engine.record import record


@record
class Place:
    """A screen and the filter it had."""

    screen: str
    where: str = ""


class History:
    """The places of one sitting; going somewhere new forgets what was ahead."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._index = -1

    def __repr__(self) -> str:
        return f"<History {self._index + 1}/{len(self._places)}>"

    def visit(self, place: Place) -> None:
        """Note that somebody went to a place."""
        if self._index >= 0 and self._places[self._index] == place:
            return
        self._places = [*self._places[: self._index + 1][-99:], place]
        self._index = len(self._places) - 1

    def step(self, by: int) -> Place | None:
        """Go back (-1) or forth (1); None where there is nothing."""
        if not 0 <= self._index + by < len(self._places):
            return None
        self._index += by
        return self._places[self._index]

    def before(self) -> Place | None:
        """Return the last place on another screen."""
        here = self._places[self._index].screen if self._places else ""
        return next((one for one in reversed(self._places[: self._index]) if one.screen != here), None)  # fmt: skip
