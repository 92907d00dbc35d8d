"""Outcomes and texts of rules with `pattern` and `anyPattern`."""

from __future__ import annotations

from engine.evaluate.patterns import any_pattern_outcome, failed_at, miss_outcome
from engine.lang.pattern import CompiledPattern, compile_pattern
from engine.model import Json, Outcome, Status

ONE = compile_pattern({"a": "1"})
TWO = compile_pattern({"b": "2"})
IF = compile_pattern({"(a)": "1", "b": "2"})
SHORT = compile_pattern({"l": [["a"]]})


def outcome_of(message: str | None, pattern: CompiledPattern, resource: Json) -> Outcome:
    miss = pattern.check(resource)
    assert miss is not None
    return miss_outcome("r", lambda: message, miss)


def test_a_failing_rule_says_its_message_and_the_path() -> None:
    outcome = outcome_of("set a", ONE, {})
    assert outcome.status is Status.FAIL
    assert outcome.message == "validation error: set a. rule r failed at path /a/"
    assert outcome.path == "/a/"
    assert outcome_of("", ONE, {}).message == "validation error: rule r failed at path /a/"


def test_a_period_is_added_only_where_there_is_none() -> None:
    assert failed_at("r", "x.", "/") == "validation error: x. rule r failed at path /"
    assert failed_at("r", "x!", "/") == "validation error: x!. rule r failed at path /"
    assert failed_at("r", "x ", "/") == "validation error: x . rule r failed at path /"


def test_a_message_that_could_not_be_resolved_gives_way_to_the_mismatch() -> None:
    outcome = outcome_of(None, ONE, {"a": "3"})
    assert outcome.status is Status.FAIL
    assert outcome.message == (
        "validation error: variables substitution error in rule r execution error: "
        "resource value '3' does not match '1' at path /a/"
    )


def test_a_message_is_asked_for_only_on_failure() -> None:
    def late() -> str:
        raise AssertionError

    assert any_pattern_outcome("r", late, [ONE], {"a": "1"}).status is Status.PASS
    miss = IF.check({})
    assert miss is not None
    assert miss_outcome("r", late, miss).status is Status.SKIP


def test_a_rule_that_does_not_apply_is_skipped_with_the_reason() -> None:
    outcome = outcome_of("m", IF, {"a": "2"})
    assert outcome.status is Status.SKIP
    assert outcome.message.startswith("conditional anchor mismatch: resource value '2'")


def test_a_failure_without_a_place_is_an_error() -> None:
    outcome = outcome_of("m", SHORT, {"l": []})
    assert outcome.status is Status.ERROR
    assert outcome.message.startswith("validation error: m. rule r execution error: validate Array")


def test_any_pattern_passes_with_the_first_that_does() -> None:
    outcome = any_pattern_outcome("r", lambda: "", [ONE, TWO], {"b": "2"})
    assert outcome.status is Status.PASS
    assert outcome.message == "validation rule 'r' anyPattern[1] passed."


def test_any_pattern_names_every_failure_and_leaves_out_what_does_not_apply() -> None:
    both = any_pattern_outcome("r", lambda: "m", [ONE, TWO], {})
    assert both.message == (
        "validation error: m. rule r[0] failed at path /a/ rule r[1] failed at path /b/"
    )
    assert both.path == "/a/"
    assert any_pattern_outcome("r", lambda: "", [IF, TWO], {}).message == (
        "validation error: rule r[1] failed at path /b/"
    )
    unresolved = any_pattern_outcome("r", lambda: None, [ONE], {})
    assert unresolved.status is Status.FAIL
    assert "variables substitution error in rule r execution error: rule r[0]" in unresolved.message


def test_any_pattern_is_skipped_only_when_none_applies() -> None:
    outcome = any_pattern_outcome("r", lambda: "m", [IF, IF], {"a": "2"})
    assert outcome.status is Status.SKIP
    assert outcome.message.startswith("rule r[0] skipped: conditional anchor mismatch")
    assert " rule r[1] skipped: " in outcome.message


def test_any_pattern_without_a_place_shows_the_error() -> None:
    outcome = any_pattern_outcome("r", lambda: "", [SHORT], {"l": []})
    assert outcome.status is Status.FAIL
    assert "rule r[0] execution error: validate Array failed" in outcome.message
