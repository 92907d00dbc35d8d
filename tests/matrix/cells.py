"""One cell of the matrix: an actor, an effect on a kind in a place, a way; and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.matrix.actors import Actor
    from tests.matrix.effects import Effect


class Fate(Enum):
    """What came of a cell."""

    ALLOWED = "happened, and the actor may do so himself"
    REFUSED = "refused when it was asked for"
    NO_RIGHT = "the actor may not write what this way takes: the first was asked for and refused, the others are like it"
    NOTHING = "accepted, and nothing came of it"
    NOT_APPLICABLE = "nobody goes there this way"
    WRONG = "happened, though the actor may not do so himself"


@dataclass(slots=True)
class Cell:
    """`name` is unique, and the name of the object that the effect is on. `refusal` is why it was not even accepted."""

    way: str
    actor: Actor
    verb: str
    effect: Effect
    namespace: str
    name: str
    refusal: str = ""
    fate: Fate | None = field(default=None)

    def __str__(self) -> str:
        place = self.namespace or "the cluster"
        return f"{self.actor.name}: {self.verb} {self.effect} in {place} by {self.way}"
