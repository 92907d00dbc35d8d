"""What stands for the state of an object, and by which labels uses are found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controllers.store.uses import ABSENT, CodeUseRecord, is_same, labels_of, state_of, use_document

POD = {"metadata": {"name": "web", "labels": {"a": "1"}}, "spec": {"hostPID": True}}


def test_the_state_of_an_object_is_what_people_decide_about():
    assert state_of(None) == ABSENT
    assert state_of(POD) != ABSENT
    assert state_of({**POD, "status": {"phase": "Running"}}) == state_of(POD)
    assert state_of({**POD, "spec": {}}) != state_of(POD)
    for part in ("labels", "annotations"):
        assert state_of({**POD, "metadata": {"name": "web", part: {"b": "2"}}}) != state_of(POD)


def test_a_change_and_its_opposite_lead_to_another_state_but_what_programs_note_does_not():
    def at(part, **metadata):
        return state_of({"metadata": {"name": "web", **metadata}, "data": {"a": "1"}, **part})

    assert at({}, resourceVersion="1") != at({}, resourceVersion="3")
    assert at({"status": {}}, generation=1) != at({"status": {}}, generation=3)
    assert at({"status": {}}, resourceVersion="1") == at({"status": {}}, resourceVersion="3")
    assert at({}, resourceVersion="1", generation=1) == at({}, resourceVersion="3", generation=1)


def test_labels_hold_no_names_and_are_short_enough_for_any():
    found = labels_of("oidc:somebody@example.com" * 20, "shop/no-host")

    assert sorted(found) == ["kpolicy.io/policy-hash", "kpolicy.io/user-hash"]
    assert all(len(value) == 32 and value.isalnum() for value in found.values())


@pytest.mark.parametrize(
    ("seconds", "same"),
    [(0, True), (40, True), (41, False), (-5, True), (-6, False), (-3600, False)],
)
def test_an_update_is_the_same_attempt_for_a_short_time_whichever_clock_is_ahead(seconds, same):
    at = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def attempt(at):
        return CodeUseRecord("use-a", "ada", "p", ("r",), "UPDATE", {"uid": "u"}, "f", "minted", at)

    written = use_document(attempt(at), "kyverno", b"k")["spec"]

    assert is_same(attempt(at + timedelta(seconds=seconds)), written) is same
