"""What Events about denied requests carry for the Blocks screen, beside upstream's text."""

from __future__ import annotations

from controllers.store.events import OBJECT_UID, marks_of
from engine import vocabulary
from engine.grants.blocks import Block, is_signed, read_block_id
from engine.model import Review, RuleResult, RuleType, Status, UserInfo

KEY = b"k"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "uid": "u1"}}  # fmt: skip
REVIEW = Review(POD, kind="Pod", user=UserInfo(username="chip"), request={"uid": "r1"})


def result(rule: str = "needs-team") -> RuleResult:
    return RuleResult("shop/team", rule, RuleType.VALIDATION, Status.FAIL, "a team is needed")


def test_a_denial_names_who_asked_and_the_id_to_ask_by():
    found = dict(marks_of(REVIEW, KEY)(result()))
    asked = (found[vocabulary.USER], found[OBJECT_UID], found[vocabulary.REQUEST_UID])
    assert asked == ("chip", "u1", "r1")
    assert is_signed(found[vocabulary.BLOCK], KEY)
    block = Block("shop/team", ("needs-team",), "Pod", "web", "shop")
    assert read_block_id(found[vocabulary.BLOCK]) == block


def test_what_is_not_known_is_left_out():
    found = dict(marks_of(Review(POD, kind="Pod"), KEY)(result("")))
    assert found == {OBJECT_UID: "u1"}
