"""The settings that are searched, and how deep: so that all of them take under a minute, and further for a night."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from . import granting, redeeming
from .granting import ROBOT, Granting
from .redeeming import Redeeming

if TYPE_CHECKING:
    from collections.abc import Iterator

_STARTED: Final = (
    "controller 0 reads",
    "controller 0 records active",
    "controller 0 writes active",
    "controller 0 makes the exception",
)
_EVERYBODY: Final = ("ada", "bob", ROBOT)

GRANTS: Final = (
    (granting.Setting("a request and one level of approvers", levels=((_EVERYBODY, 1),), votes=(("ada", "approve"), (ROBOT, "approve"), ("bob", "approve"), ("bob", "deny"), ("ada", "withdraw"))), 11),
    (granting.Setting("two levels of approvers", levels=((("ada", "bob", "cyd"), 1), (("ada", "cyd"), 1)), votes=(("ada", "approve"), ("bob", "approve"), ("cyd", "approve"))), 13),
    (granting.Setting("two people on one level", levels=(((*_EVERYBODY, "cyd"), 2),), votes=(("ada", "approve"), (ROBOT, "approve"), ("bob", "approve"), ("cyd", "approve"))), 13),
    (granting.Setting("two controllers and a request", controllers=2, votes=(("bob", "approve"), ("ada", "withdraw"), ("bob", "revoke"))), 10),
    (granting.Setting("two controllers and an active grant", controllers=2, ahead=1, votes=(("ada", "drop"), ("bob", "revoke")), begins=_STARTED), 9),
    (granting.Setting("two uses and three requests", spec=(("uses", 2),), requests=3, begins=_STARTED), 13),
    (granting.Setting("an emergency and a revocation", spec=(("emergency", True),), votes=(("bob", "revoke"), ("ada", "drop"))), 13),
    (granting.Setting("a start in the future", spec=(("startAt", "2026-01-01T14:00:00Z"),), votes=(("bob", "approve"), ("ada", "drop"), ("bob", "revoke"))), 11),
    (granting.Setting("an end when nobody uses it", spec=(("idle", "1h"), ("uses", 2)), votes=(("bob", "revoke"),), begins=_STARTED), 12),
    (granting.Setting("an exception that people change", edits=True, votes=(("bob", "revoke"),), begins=_STARTED), 10),
    (granting.Setting("a grant policy that goes", policy_goes=True, votes=(("bob", "approve"), ("ada", "withdraw"))), 12),
)  # fmt: skip
CODES: Final = (
    (redeeming.Setting("requests at the same time", most_requests=3, most_sent=4), 13),
    (redeeming.Setting("two people, two bodies", users=("ada", "eve"), bodies=("x", "y"), most_codes=2), 10),
    (redeeming.Setting("codes that end, spelled in two ways", spelling=True, last_tick=3, most_codes=2), 10),
    (redeeming.Setting("keys that are rotated, a policy that is edited", rotates=True, edits_policy=True, last_tick=2, most_codes=2), 10),
    (redeeming.Setting("updates of one object", operation="UPDATE", tick=timedelta(seconds=30), last_tick=3, bodies=("x", "y"), most_codes=2, most_sent=4), 9),
)  # fmt: skip


def models(deeper: int = 0) -> Iterator[tuple[Any, int]]:
    """Yield each model with the depth to which it is searched."""
    for grant, depth in GRANTS:
        yield Granting(grant), depth + deeper
    for code, depth in CODES:
        yield Redeeming(code), depth + deeper
