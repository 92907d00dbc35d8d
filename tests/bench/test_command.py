"""Whoever asks for help or for a benchmark that there is none of waits for no measurement."""

from __future__ import annotations

import pytest

from tests.bench import __main__ as command


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch):
    monkeypatch.setattr(command, "PARTS", {"slow": list, "bad": lambda: ["bad: 9.00 x"]})


def test_help_prints_help(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    assert "one of slow, bad" in capsys.readouterr().out


def test_an_unknown_name_is_one_sentence(capsys):
    assert command.main(["slow", "growht"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "no benchmark is called `growht`; there are slow, bad\n"


@pytest.mark.parametrize(("names", "code"), [(["slow"], 0), (["bad"], 1), ([], 1), (["--list"], 0)])
def test_what_is_named_is_measured_and_everything_without_a_name(names, code):
    assert command.main(names) == code
