"""What stands for the state of an object, and by which labels uses are found."""

from __future__ import annotations

from controllers.store.uses import ABSENT, labels_of, state_of

POD = {"metadata": {"name": "web", "labels": {"a": "1"}}, "spec": {"hostPID": True}}


def test_the_state_of_an_object_is_what_people_decide_about():
    assert state_of(None) == ABSENT
    assert state_of(POD) != ABSENT
    assert state_of({**POD, "status": {"phase": "Running"}}) == state_of(POD)
    assert state_of({**POD, "spec": {}}) != state_of(POD)
    for part in ("labels", "annotations"):
        assert state_of({**POD, "metadata": {"name": "web", part: {"b": "2"}}}) != state_of(POD)


def test_labels_hold_no_names_and_are_short_enough_for_any():
    found = labels_of("oidc:somebody@example.com" * 20, "shop/no-host")

    assert sorted(found) == ["kpolicy.io/policy-hash", "kpolicy.io/user-hash"]
    assert all(len(value) == 32 and value.isalnum() for value in found.values())
