"""What an Event about a denied request carries beside upstream's text: who asked, for which object, and the denial's id.

Written by the engine's Events and read by the Blocks screen, so both have the names of these annotations from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.grants.blocks import Block, block_id, target_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Review, RuleResult

USER: Final = "kpolicy.io/user"
"""Who made the request, as the API server named them."""
OBJECT_UID: Final = "kpolicy.io/object-uid"
"""The UID of the object; of a creation that was denied, the one that it would have had."""
REQUEST_UID: Final = "kpolicy.io/request-uid"
"""The UID of the admission request."""
BLOCK: Final = "kpolicy.io/block"
"""The id by which `kubectl kpolicy grant --block` asks for an exception."""

_LONGEST: Final = 512

Marks = tuple[tuple[str, str], ...]


def marks_of(review: Review, key: bytes) -> Callable[[RuleResult], Marks]:
    """Return what gives the annotations of each result of a denied request; `key` is the `block_key`."""
    shared = {
        USER: review.user.username[:_LONGEST],
        OBJECT_UID: str(review.metadata.get("uid") or ""),
        REQUEST_UID: str(review.request.get("uid") or ""),
    }

    name = target_of(review.metadata, is_new=review.operation == "CREATE")

    def marks(result: RuleResult) -> Marks:
        rules = (result.rule,) if result.rule and not result.is_of_cel else ()
        block = Block(result.identity, rules, review.kind, name, review.namespace)
        found = {**shared, BLOCK: block_id(block, key) if rules or result.is_of_cel else ""}
        return tuple((name, value) for name, value in found.items() if value)

    return marks
