"""What is promised of grants and codes holds in every interleaving to a depth, and each promise that is broken is found."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from controllers.store import uses as stored_uses
from controllers.webhook import grants as granting_at_admission
from engine import exceptions
from engine.codes import binding, minting, spelling
from engine.grants import approvals, lifecycle
from engine.grants.cause import Granted
from tests.conftest import COUNTED

from . import granting, redeeming
from .granting import ROBOT, Granting
from .redeeming import Redeeming
from .search import Found, search
from .settings import CODES, GRANTS, models


def grants(begin: str) -> granting.Setting:
    return next(one for one, _ in GRANTS if one.name.startswith(begin))


def codes(begin: str) -> redeeming.Setting:
    return next(one for one, _ in CODES if one.name.startswith(begin))


def searched(setting: Any, depth: int = 12) -> Found[Any]:
    granting.forget()
    is_grant = isinstance(setting, granting.Setting)
    return search(Granting(setting) if is_grant else Redeeming(setting), depth)


def promise(found: Found[Any]) -> str:
    assert found.break_ is not None, f"nothing was found in {found}"
    return found.break_.promise


@pytest.mark.parametrize(
    ("model", "depth"), list(models()), ids=[model.name for model, _ in models()]
)
def test_every_interleaving_keeps_the_promises(model, depth, record_property):
    granting.forget()
    found = search(model, depth)

    record_property(COUNTED, f"  {found}")
    assert found.break_ is None, str(found.break_)
    assert found.interleavings > 10_000


def test_requests_do_pass_where_they_may():
    class Reaching(Granting):
        def broken(self, step: str, before: granting.World, after: granting.World) -> str:
            return "passed" if after.passed else ""

    for setting in (grants("a request"), grants("two levels"), grants("two people"), grants("an emergency")):  # fmt: skip
        assert promise(search(Reaching(setting), 14)) == "passed"


def test_codes_do_let_requests_pass():
    class Reaching(Redeeming):
        def broken(self, step: str, before: redeeming.World, after: redeeming.World) -> str:
            return "stored" if after.transitions else ""

    assert all(promise(search(Reaching(setting), 6)) == "stored" for setting, _ in CODES)


# Each promise is found broken where what keeps it is taken out.


def test_four_eyes_are_missed_where_requesters_approve_their_own(monkeypatch):
    monkeypatch.setattr(approvals, "may_approve", lambda user, *_: user != ROBOT)

    assert "four eyes" in promise(searched(grants("a request")))


def test_four_eyes_are_missed_where_robots_approve(monkeypatch):
    monkeypatch.setattr(approvals, "may_approve", lambda user, *_: user != granting.REQUESTER)

    assert "four eyes" in promise(searched(grants("a request")))


def test_four_eyes_are_missed_where_one_person_counts_on_two_levels(monkeypatch):
    def each_for_itself(agreeing, levels):
        return tuple(max(0, level.count - sum(vote.by in level.users for vote in agreeing)) for level in levels)  # fmt: skip

    monkeypatch.setattr(approvals, "_missing", each_for_itself)

    assert "four eyes" in promise(searched(grants("two levels"), 13))


def test_four_eyes_are_missed_where_nobody_is_asked(monkeypatch):
    agreed = SimpleNamespace(denied_by="", is_approved=True)
    monkeypatch.setattr(lifecycle, "standing", lambda *_: agreed)

    assert "four eyes" in promise(searched(grants("a request")))


def test_a_later_end_is_found_where_what_is_over_can_begin_again(monkeypatch):
    monkeypatch.setattr(lifecycle, "FINAL", frozenset())
    monkeypatch.setitem(lifecycle._STEPS, "expired", lifecycle._pending)

    assert "the end only comes nearer" in promise(searched(grants("two controllers and an active")))


def test_a_later_end_is_found_where_instants_are_settled_again(monkeypatch):
    settled = lifecycle._active

    def again(grant, policy, facts, status):
        return settled(grant, policy, facts, lifecycle.replace(status, expires_at=facts.now + grant.for_))  # fmt: skip

    monkeypatch.setitem(lifecycle._STEPS, "active", again)

    assert "the end only comes nearer" in promise(searched(grants("two controllers and an active")))


def test_a_later_end_is_found_where_exceptions_outlive_their_instant(monkeypatch):
    monkeypatch.setattr(exceptions.CompiledException, "is_expired", lambda *_: False)

    assert "let pass after it" in promise(searched(grants("an exception that people")))


def test_a_later_end_is_found_where_the_instant_itself_still_counts(monkeypatch):
    monkeypatch.setattr(
        exceptions.CompiledException, "is_expired", lambda self, now: now > self.expires_at
    )

    assert "let pass after it" in promise(searched(grants("an exception that people")))


def test_a_later_end_is_found_where_exceptions_of_ended_grants_come_back(monkeypatch):
    monkeypatch.setattr(granting_at_admission, "state_of", lambda _: "active")

    assert "an exception is made for a grant that is" in promise(searched(grants("an exception that people")))  # fmt: skip


def test_a_later_end_is_found_where_controllers_write_over_what_they_have_not_read():
    blind = replace(grants("two controllers and a request"), writes_blindly=True)

    assert "a grant that is withdrawn stays so" in promise(searched(blind))


def test_an_unrecorded_pass_is_found_where_two_requests_take_the_same_use():
    blind = replace(grants("two uses"), takes_blindly=True)

    assert "there is no record of a use" in promise(searched(blind))


def test_more_uses_are_found_where_each_replica_has_places_of_its_own(monkeypatch):
    numbers = itertools.count()
    monkeypatch.setattr(Granted, "place", lambda *_: f"place-{next(numbers)}")

    assert "used no more often" in promise(searched(grants("two uses"), 13))


def test_an_unrecorded_pass_is_found_where_the_trail_is_written_last():
    late = replace(grants("a request"), records_last=True)

    assert "the trail does not know" in promise(searched(late))


def test_a_second_use_is_found_where_replicas_look_and_then_write():
    assert "at most once" in promise(searched(replace(codes("requests"), looks_first=True)))


def test_an_unrecorded_pass_is_found_where_lost_uses_are_given_back():
    back = replace(codes("requests"), gives_back=True)

    assert "there is no use of what is stored" in promise(searched(back))


def test_an_unrecorded_pass_is_found_where_any_request_of_a_person_is_the_same_attempt(monkeypatch):
    monkeypatch.setattr(stored_uses, "is_same", lambda attempt, spec: spec["user"] == attempt.user)

    assert "there is no use of what is stored" in promise(searched(codes("requests")))


def test_a_second_use_is_found_where_updates_are_the_same_attempt_for_ever(monkeypatch):
    monkeypatch.setattr(stored_uses, "SAME_ATTEMPT", stored_uses.timedelta(days=1))

    assert "at most once" in promise(searched(codes("updates")))


def test_a_second_use_is_found_where_a_code_is_known_by_its_spelling(monkeypatch):
    verify = minting.verify
    monkeypatch.setattr(minting, "verify", lambda keys, bound, given, slot: given if verify(keys, bound, given, slot) else None)  # fmt: skip

    assert "at most once" in promise(searched(codes("codes that end")))


@pytest.mark.parametrize("part", ["username", "violation"])
def test_a_transplanted_code_is_found_where_it_is_not_bound_to_a_part(monkeypatch, part):
    whole = binding.Binding.bytes
    monkeypatch.setattr(binding.Binding, "bytes", lambda self: whole(binding_without(self, part)))

    assert "but what it was offered for" in promise(searched(codes("two people")))


def test_a_code_of_the_old_policy_is_found_where_it_is_not_bound_to_its_text(monkeypatch):
    whole = binding.Binding.bytes
    monkeypatch.setattr(
        binding.Binding, "bytes", lambda self: whole(binding_without(self, "policy_hash"))
    )

    assert "void once its policy was edited" in promise(searched(codes("keys")))


def test_a_code_that_never_ends_is_found(monkeypatch):
    verify = minting.verify

    def ever(keys, bound, given, slot):
        return next((found for at in range(slot - 4, slot + 1) if (found := verify(keys, bound, given, at))), None)  # fmt: skip

    monkeypatch.setattr(minting, "verify", ever)

    assert "ends with the slot after its own" in promise(searched(codes("codes that end")))


def test_a_code_that_is_written_in_two_ways_is_one_code():
    assert minting.canonical(spelling.shown("0" * 20)) == minting.canonical("0" * 20)


def binding_without(whole: Any, part: str) -> Any:
    from engine.record import replace as changed

    return changed(whole, **{part: ""})
