"""Hotkeys and plugin commands of the configuration: what they run, what they show before, and what never becomes a flag or a shell's word."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from engine.errors import EngineError
from engine.record import replace
from kubectl_kpolicy import entry
from kubectl_kpolicy.actions.plugins import Plugin, argv_of, own_keys, values_of
from kubectl_kpolicy.output.rows import Row
from kubectl_kpolicy.session.config import Config, load_config
from kubectl_kpolicy.tui.completing import completions

from .stage import LARGE, console, on_stage, press, settled, text_of, window_of

if TYPE_CHECKING:
    from pathlib import Path

NOTES = "import json, os, sys; open(sys.argv[1], 'a').write(json.dumps([sys.argv[2:], os.environ.get('KUBECONFIG')]) + '\\n')"


def configured(text: str, folder: Path) -> Config:
    path = folder / "kpolicy.toml"
    path.write_text(text)
    return load_config({"KPOLICY_CONFIG": str(path)})


def notes(folder: Path, more: str = "", args: str = '"$NAME", ["-n", "$NAMESPACE"]') -> Config:
    """Return a configuration whose key J lets a program note its arguments."""
    program = json.dumps([sys.executable, "-c", NOTES, str(folder / "noted")])
    first, *rest = json.loads(program)
    given = ", ".join(map(json.dumps, rest))
    return configured(
        f'[plugins.note]\nkey = "Shift-J"\ncommand = {json.dumps(first)}\nargs = [{given}, {args}]\n{more}',
        folder,
    )


def noted(folder: Path) -> list:
    path = folder / "noted"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def own(config: Config, **words):
    return console(own=own_keys(config), screen="grants", **words)


def test_a_hotkey_runs_its_line_and_is_in_help_and_completion(tmp_path) -> None:
    config = configured('[hotkeys]\nf5 = "violations sev=critical"\n', tmp_path)

    async def look(app, pilot) -> None:
        await press(pilot, "f5")
        assert app.current == "violations"
        assert "sev=critical" in text_of(app)
        assert "violations sev=critical" in completions(app, "viol")
        await press(pilot, "?", *"from the configuration")
        assert "f5" in window_of(app)

    on_stage(look, own(config))


@pytest.mark.parametrize("marked", [1, 2])
def test_a_program_in_the_background_gets_the_values_of_each_row_and_its_end_is_told(
    tmp_path, marked: int
) -> None:
    config = notes(tmp_path, "background = true\n")

    async def look(app, pilot) -> None:
        if marked > 1:
            await press(pilot, "space", "j", "space")
        names = [row.text("name") for row in app.rows]
        await press(pilot, "J")
        await settled(app)
        assert noted(tmp_path) == [[[name, "-n", "payments"], "/some/where"] for name in names]
        assert len(names) == marked
        assert app.said[0] == "note: done"
        assert all(name in app.command_log[-1] for name in names)

    on_stage(look, own(config, kubeconfig="/some/where"))


def test_what_is_to_be_confirmed_is_shown_and_runs_only_after_a_yes(tmp_path) -> None:
    config = notes(tmp_path, 'confirm = true\nbackground = true\ndescription = "Note it"\n')

    async def look(app, pilot) -> None:
        name = app.row.text("name")
        await press(pilot, "J")
        assert "Note it" in window_of(app)
        assert "payments" in window_of(app)
        assert name in window_of(app).replace("\n", "")
        await press(pilot, "escape")
        assert (noted(tmp_path), app.said[0]) == ([], "nothing was run")
        await press(pilot, ":", *"not", "tab", "enter")
        await press(pilot, "tab", "enter")
        await settled(app)
        assert len(noted(tmp_path)) == 1

    on_stage(look, own(config), size=LARGE)


@pytest.mark.parametrize(
    "value",
    [
        "-f",
        "--as=admin",
        "x; rm -rf /",
        "$(id)",
        "`id`",
        "a b",
        "a\nb",
        "x'y",
        "*",
        "~",
        "@file",
        "",
    ],
)
@pytest.mark.parametrize("argument", ["$NAME", "--name=$NAME", "kubectl logs $NAME | less"])
def test_a_value_that_is_no_plain_word_is_put_nowhere(value: str, argument: str) -> None:
    plugin = Plugin("logs", "sh", ("-c", argument))
    values = values_of(Row("k", {"name": value}), context="c", user="u")

    with pytest.raises(EngineError):
        argv_of(plugin, values)


def test_arguments_that_go_together_go_where_a_variable_has_no_value() -> None:
    plugin = Plugin("get", "kubectl", ("get", "$KIND", "$NAME", ("-n", "$NAMESPACE"), "$$NAME"))
    row = Row("k", {"name": "one", "kind": "Node", "namespace": ""})

    made = argv_of(plugin, values_of(row, context="c", user="u"))

    assert made == ["kubectl", "get", "Node", "one", "$NAME"]


def test_a_program_is_off_in_read_only_mode_unless_it_is_said_to_change_nothing(tmp_path) -> None:
    async def refused(app, pilot) -> None:
        await press(pilot, "J")
        assert "read-only" in app.said[0]

    async def done(app, pilot) -> None:
        await press(pilot, "J")
        assert app.said[0] == "note: done"

    on_stage(refused, own(notes(tmp_path, "background = true\n"), read_only=True))
    harmless = notes(tmp_path, "background = true\ndangerous = false\n")
    on_stage(done, own(harmless, read_only=True))
    assert len(noted(tmp_path)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [({"acts_as": "bob"}, "the console looks as `bob`"), ({"served": True}, "from a browser")],
)
def test_a_program_is_not_started_for_somebody_else(
    tmp_path, monkeypatch, words: dict, said: str
) -> None:
    if words.pop("served", False):
        monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")

    async def look(app, pilot) -> None:
        await press(pilot, "J")
        assert said in app.said[0]
        assert noted(tmp_path) == []

    on_stage(look, own(notes(tmp_path), **words))


def test_a_program_that_is_not_there_or_fails_is_told(tmp_path) -> None:
    config = notes(tmp_path, "background = true\n")
    keys = own_keys(config)
    note = keys.plugins["note"]
    failing = 'import sys; print("first"); sys.exit("it went wrong")'
    lost, broken = (
        replace(note, command="no-such-program"),
        replace(note, args=("-c", failing, "$NAME")),
    )

    async def look(app, pilot) -> None:
        await press(pilot, "J")
        await settled(app)
        seen.append(app.said[0])

    seen: list[str] = []
    for one in (lost, broken):
        on_stage(look, console(own=replace(keys, plugins={"note": one}), screen="grants"))
    assert "there is no program `no-such-program` on PATH" in seen[0]
    assert seen[1] == "note: exit code 1: it went wrong"


PLUGIN = "[plugins.logs]\nkey = 'J'\ncommand = 'stern'\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[hotkeys]\nenter = 'grants'\n",
            "kpolicy.toml:2: `enter` in `hotkeys` is no key to press",
        ),
        ("[hotkeys]\nr = 'grants'\n", "kpolicy.toml:2: `r` of `hotkeys.r` is the key of `request`"),
        ("[hotkeys]\nf5 = 'grnts'\n", "`grnts` is no screen; did you mean `grants`?"),
        (
            "[plugins.logs]\nkey = 'J'\ncomand = 'x'\n",
            "kpolicy.toml:3: unknown key `comand` in `plugins.logs`\nhelp: did you mean `command`?",
        ),
        (
            "[plugins.logs]\nkey = 'J'\n",
            "kpolicy.toml:1: `command` of `plugins.logs` is the name of one program",
        ),
        ("[plugins.logs]\nkey = 'J'\ncommand = '$NAME'\n", "is the name of one program"),
        (
            f"{PLUGIN}args = ['$NAEM']\n",
            "`plugins.logs` has no `$NAEM` to give\nhelp: did you mean `$NAME`?",
        ),
        (f"{PLUGIN}args = [3]\n", "`args` of `plugins.logs` are texts"),
        (
            f"{PLUGIN}scopes = ['pods']\n",
            "kpolicy.toml:1: `pods` in `scopes` of `plugins.logs` is no screen\nhelp: there are all, pulse",
        ),
        (f"{PLUGIN}confirm = 'yes'\n", "`confirm` in `plugins.logs` is true or false"),
        (
            f"{PLUGIN}[plugins.more]\nkey = 'Shift-J'\ncommand = 'x'\n",
            "`J` of `plugins.more` is the key of `plugins.logs`",
        ),
        ("plugins = 3\n", "`plugins` is a table"),
        (
            "[tui]\ntheme = 'drak'\n",
            "kpolicy.toml:2: there is no theme `drak`\nhelp: there are dark, light",
        ),
    ],
)
def test_mistakes_are_one_sentence_with_the_place(
    tmp_path, monkeypatch, capsys, text: str, words: str
) -> None:
    monkeypatch.setenv("KPOLICY_CONFIG", str(tmp_path / "kpolicy.toml"))
    (tmp_path / "kpolicy.toml").write_text(text)

    assert entry.main(["config", "validate"]) == 1
    assert words in capsys.readouterr().err


def test_a_key_that_was_freed_can_be_taken(tmp_path) -> None:
    config = configured("[keymap]\ntheme = []\n[hotkeys]\nT = 'grants'\n", tmp_path)

    assert [one.keys for one in own_keys(config).actions] == [("T",)]


def test_a_theme_that_there_is_not_is_refused_wherever_it_is_named(
    tmp_path, monkeypatch, capsys
) -> None:
    async def look(app, pilot) -> None:
        before = app.theme
        await press(pilot, ":", *"theme drak", "enter")
        assert "there is no theme `drak`; there are dark, light" in app.said[0]
        assert app.theme == before

    on_stage(look, size=(200, 30))
    assert entry.main(["tui", "--theme", "drak"]) == 2
    assert "there is no `drak`; did you mean `dark`?" in capsys.readouterr().err
    monkeypatch.setenv("KPOLICY_CONFIG", str(tmp_path / "kpolicy.toml"))
    monkeypatch.setenv("KPOLICY_TUI__THEME", "drak")
    assert entry.main(["config", "view"]) == 1
    assert "there is no theme `drak`" in capsys.readouterr().err
