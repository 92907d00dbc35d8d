"""What a policy in CEL says of its evaluation, and what counts where it says nothing."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model.kinds import KUBERNETES, is_enabled, mode_of


@pytest.mark.parametrize(
    ("evaluation", "mode"),
    [
        (None, KUBERNETES),
        ({}, KUBERNETES),
        ({"mode": None}, KUBERNETES),
        ({"mode": "HTTP"}, "HTTP"),
    ],
)
def test_a_policy_that_names_no_mode_judges_objects(evaluation: Any, mode: str) -> None:
    assert mode_of({"evaluation": evaluation}) == mode


@pytest.mark.parametrize(
    ("name", "usual"),
    [
        ("admission", True),
        ("background", True),
        ("generateExisting", False),
        ("mutateExisting", False),
        ("orphanDownstreamOnPolicyDelete", False),
        ("synchronize", False),
    ],
)
def test_admission_and_background_are_on_until_turned_off_and_all_else_off_until_turned_on(
    name: str, usual: bool
) -> None:
    for silent in (None, {}, {name: None}, {name: {}}, {name: {"enabled": None}}):
        assert is_enabled({"evaluation": silent}, name) is usual
    for said in (True, False):
        assert is_enabled({"evaluation": {name: {"enabled": said}}}, name) is said
