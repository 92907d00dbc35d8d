"""The steps behind a result, kept only when an explanation was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.record import field, record

if TYPE_CHECKING:
    from engine.model import Json


@record
class Step:
    """One step: what was looked at (`match`, `context`, `variable`, `condition`, `exception`, `pattern`, …).

    `holds` is None where there is nothing to hold; `value` is what was found.
    """

    kind: str
    text: str
    holds: bool | None = None
    value: Json = None


@record
class Trace:
    """The steps of one rule on one object, in order; `policy` is the identity of its policy."""

    policy: str = ""
    rule: str = ""
    steps: list[Step] = field(default_factory=list)

    def add(self, kind: str, text: str, holds: bool | None = None, value: Json = None) -> None:
        """Append a step."""
        self.steps.append(Step(kind, text, holds, value))
