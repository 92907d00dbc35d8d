"""Completion: kubectl's line format, candidates for commands, verbs, flags and values, and never a failure."""

from __future__ import annotations

import pytest

from kubectl_kpolicy import cli, complete


def printed(capsys, *words: str) -> list[str]:
    assert complete.main(list(words)) == 0
    return capsys.readouterr().out.splitlines()


def test_the_first_word_is_a_command(capsys) -> None:
    lines = printed(capsys, "ver")

    assert [line.partition("\t")[0] for line in lines] == ["verify", "version", ":4"]
    assert all("\t" in line for line in lines[:-1])


def test_an_empty_first_word_offers_every_command(capsys) -> None:
    assert len(printed(capsys, "")) == len(cli.COMMANDS) + 1


def test_verbs_of_a_command_are_offered(capsys) -> None:
    assert [line.partition("\t")[0] for line in printed(capsys, "create", "")][:-1] == [
        "exception",
        "test",
        "values",
        "user-info",
        "cluster-role",
    ]


def test_flags_of_a_verb_are_offered(capsys) -> None:
    assert [line.partition("\t")[0] for line in printed(capsys, "create", "exception", "--p")] == [
        "--policy-rules",
        ":4",
    ]


def test_values_of_a_flag_with_choices_are_offered_and_no_files(capsys) -> None:
    assert printed(capsys, "version", "-o", "j") == ["json", ":4"]


def test_after_a_flag_with_a_free_value_the_shell_offers_files(capsys) -> None:
    assert printed(capsys, "create", "test", "-p", "") == [":0"]


@pytest.mark.parametrize(
    "words", [[], ["nosuch", ""], ["create", "nosuch", "-"], ["version", "\ud800"]]
)
def test_nonsense_never_fails(capsys, words: list[str]) -> None:
    assert printed(capsys, *words)[-1].startswith(":")


def test_a_broken_command_never_fails(capsys, monkeypatch) -> None:
    monkeypatch.setitem(cli.COMMANDS, "broken", "has no module")

    assert printed(capsys, "broken", "") == [":0"]
