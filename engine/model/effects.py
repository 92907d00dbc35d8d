"""What a policy written in CEL does to objects, as values: for asking whether its author may do that himself.

Each family of kinds that does anything names a function of its own that yields these (`Family.effects`); whoever asks for rights
knows the kinds of the cluster and what the verbs are called there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.record import record

if TYPE_CHECKING:
    from .json import Block


@record
class ResourceEffect:
    """Verbs that a policy uses on the objects of a resource rule; without a rule on anything, because only a run decides.

    `made` stands for a rule where the objects themselves are known: a block as classic generate rules have it.
    `at` is where the document says so. With `gives_power` what is written may be a role, a binding or a policy.
    """

    at: str
    verbs: tuple[str, ...]
    rule: Block | None = None
    made: Block | None = None
    gives_power: bool = False
