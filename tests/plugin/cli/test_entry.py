"""The way in: commands, global flags, exit codes, and the two lines an error is."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tomllib
import types
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.errors import EngineError, Location
from kubectl_kpolicy import cli, entry
from kubectl_kpolicy.actions.screens import SCREENS, own_command
from kubectl_kpolicy.cli import parsing, version
from kubectl_kpolicy.output.diagnostics import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch):
    """Put a command called `probe` in place whose `run` is the given function."""

    def place(run, **parts):
        module = types.ModuleType("kubectl_kpolicy.cli.probe")
        module.add_arguments = parts.pop("add_arguments", lambda flags: None)
        module.run = run
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(cli.COMMANDS, "probe", "probe something")

    return place


def test_help_lists_every_command_under_kubectls_name(capsys) -> None:
    assert entry.main(["--help"]) == 0

    printed = capsys.readouterr().out
    assert printed.startswith("usage: kubectl kpolicy COMMAND")
    assert all(f"\n  {name} " in printed for name in cli.COMMANDS)


@pytest.mark.parametrize("columns", [20, 57, 80, 200])
def test_the_programs_help_is_laid_out_as_that_of_commands(monkeypatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    top = parsing.top_parser()
    laid_out = argparse.ArgumentParser.format_help(top)
    *_, options, of_all, commands = cli.help_text().split("\n\n", 4)
    assert options in laid_out
    assert of_all in laid_out
    assert laid_out.endswith(commands)
    assert laid_out.startswith(cli.help_text().partition("\n")[0])


def helps() -> dict[str, str]:
    """Return the help of the program, of every command and of every verb."""

    def below(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
        yield parser.prog, parser.format_help()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for verb in action.choices.values():
                    yield from below(verb)

    names = [*cli.COMMANDS, *(name for name in SCREENS if own_command(name))]
    found = {"kubectl kpolicy": cli.help_text()}
    for name in names:
        found.update(below(parsing.parser_of(name)[0]))
    return found


def test_no_line_of_any_help_is_wider_than_the_terminal(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = helps()

    assert len(found) > 2 * len(cli.COMMANDS)
    assert {name: line for name, text in found.items() for line in text.splitlines() if len(line) > 80} == {}  # fmt: skip


def test_usage_names_what_must_be_given_and_nothing_else() -> None:
    usages = {name: text.partition("\n\n")[0] for name, text in helps().items()}

    assert (
        usages["kubectl kpolicy apply"]
        == "usage: kubectl kpolicy apply POLICY [POLICY ...] [flags]"
    )
    assert usages["kubectl kpolicy grant"] == "usage: kubectl kpolicy grant VERB ... [flags]"
    assert all(usage.endswith("[flags]") for usage in usages.values())
    assert not [usage for usage in usages.values() if "[-" in usage]


def test_no_help_has_a_word_of_python_in_it() -> None:
    assert [name for name, text in helps().items() if re.search(r"\bNone\b", text)] == []


def test_a_command_that_help_breaks_is_the_same_command_to_a_shell(monkeypatch) -> None:
    examples = {}
    for columns in (80, 400):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = helps()["kubectl kpolicy grant"]
        _, _, examples[columns] = text.partition("example:")

    assert "\n" in examples[80].strip()
    as_read = examples[80].replace("\\\n", "")
    assert shlex.split(as_read) == shlex.split(examples[400])


@pytest.mark.parametrize("word", ["version", "--version", "--help"])
def test_nothing_is_loaded_to_print_the_version_or_the_help(word: str) -> None:
    code = f"import sys; before = {{*sys.modules}}; sys.argv[1:] = [{word!r}]; from kubectl_kpolicy.entry import main; main(); print(*{{*sys.modules}} - before)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {one for one in done.stdout.split("\n")[-2].split() if "kpolicy" not in one}
    assert loaded.isdisjoint({"argparse", "collections", "enum", "functools", "re", "typing"})


def test_no_words_at_all_print_the_help(capsys) -> None:
    assert entry.main([]) == 0
    assert "commands:" in capsys.readouterr().out


def test_an_unknown_command_is_a_usage_error_that_names_the_nearest(capsys) -> None:
    assert entry.main(["aply"]) == ExitCode.USAGE
    assert capsys.readouterr().err == "error: unknown command `aply`\nhelp: did you mean `apply`?\n"


def test_an_unknown_flag_is_a_usage_error_that_names_the_command(capsys) -> None:
    assert entry.main(["version", "--outpt"]) == ExitCode.USAGE
    assert "help: see `kubectl kpolicy version --help`" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--color", "never", "-v", "probe"],
        ["probe", "--color", "never", "-v"],
        ["--color=never", "probe", "-v"],
    ],
)
def test_global_flags_stand_before_and_after_the_command(command, words: list[str]) -> None:
    seen = []
    command(lambda args: seen.append(args) or 0)

    assert entry.main(words) == 0
    assert (seen[0].color, seen[0].verbose, seen[0].quiet) == ("never", True, False)


def test_a_commands_own_flag_wins_over_the_global_one_of_the_same_letter(command) -> None:
    seen = []
    command(
        lambda args: seen.append(args) or 0,
        add_arguments=lambda flags: flags.text("-q --query-file", "FILE", "a file"),
    )

    assert entry.main(["probe", "-q", "file"]) == 0
    assert seen[0].query_file == "file"


def test_a_module_may_say_more_than_its_summary_and_what_is_run(command, capsys) -> None:
    def add_arguments(flags) -> None:
        flags.parser.description = "Probes."
        flags.example("probe")
        flags.add("thing")
        flags.parser.set_defaults(run=lambda args: len(args.thing))

    command(None, add_arguments=add_arguments)

    assert entry.main(["probe", "abc"]) == 3
    assert entry.main(["probe", "--help"]) == 0
    assert "Probes." in capsys.readouterr().out


def test_an_engine_error_is_printed_with_place_and_help(command, capsys) -> None:
    def run(_args):
        raise EngineError(
            "unknown field `specc`", at=Location("p.yaml", 3, "spec"), help="did you mean `spec`?"
        )

    command(run)

    assert entry.main(["probe"]) == ExitCode.FAILED
    assert (
        capsys.readouterr().err
        == "error: p.yaml:3: spec: unknown field `specc`\nhelp: did you mean `spec`?\n"
    )


def test_an_unexpected_error_is_called_one_and_shows_its_trace_only_on_request(
    command, capsys
) -> None:
    def run(_args):
        raise ZeroDivisionError("by\x1b[31mzero")

    command(run)

    assert entry.main(["probe"]) == ExitCode.FAILED
    printed = capsys.readouterr().err
    assert "internal error: ZeroDivisionError: by\\x1b[31mzero" in printed
    assert "Traceback" not in printed
    entry.main(["probe", "-v"])
    assert "Traceback" in capsys.readouterr().err


def test_a_file_error_names_the_file(command, capsys) -> None:
    def run(_args):
        Path("/nowhere/at/all").read_text()

    command(run)

    assert entry.main(["probe"]) == ExitCode.FAILED
    assert capsys.readouterr().err == "error: `/nowhere/at/all`: no such file or directory\n"


def test_an_interrupt_ends_with_130(command) -> None:
    def run(_args):
        raise KeyboardInterrupt

    command(run)

    assert entry.main(["probe"]) == ExitCode.INTERRUPTED


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_version_is_data_on_request(capsys, form: str) -> None:
    assert entry.main(["version", "-o", form]) == 0

    printed, err = capsys.readouterr()
    assert err == ""
    assert version.VERSION in printed
    if form == "json":
        assert json.loads(printed)["clientVersion"]["version"] == version.VERSION


def test_version_is_the_version_of_the_project(capsys) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert entry.main(["--version"]) == 0
    assert capsys.readouterr().out == f"Client Version: v{project['version']}\n"


@pytest.mark.parametrize(
    "name", [name for name in cli.COMMANDS if (ROOT / f"kubectl_kpolicy/cli/{name}.py").exists()]
)
def test_every_command_has_help_with_an_example(capsys, name: str) -> None:
    assert entry.main([name, "--help"]) == 0

    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: kubectl kpolicy {name}")
    assert "kubectl kpolicy " in printed.partition("\n\n")[2]


def test_words_that_kubectl_s_users_write_are_read_as_they_mean_them(command) -> None:
    seen = []
    command(
        lambda args: seen.append(args) or 0,
        add_arguments=lambda flags: flags.text("--sort-by", "COLUMN", "a column"),
    )

    assert entry.main(["probe", "-v=6", "--sort-by", "-age"]) == 0
    assert entry.main(["probe", "--v=2", "--sort-by", "age"]) == 0
    assert [(one.verbose, one.sort_by) for one in seen] == [(True, "-age"), (True, "age")]
    assert entry.main(["probe", "--sort-by", "--verbose"]) == ExitCode.USAGE


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("explain -f {gone}", "`{gone}`: no such file"),
        ("explain Pod/web -p {gone}", "`{gone}`: no such file"),
        ("explain Pod/web --as-of nope", "`nope` as an instant"),
        ("check -f {gone}", "`{gone}`: no such file"),
        ("check -f {here} --baseline {gone}", "`{gone}`: no such file"),
        ("audit verify --checkpoint {binary}", "as a checkpoint"),
        ("grant request p/r -f {binary} --reason x", "not encoded as UTF-8"),
        ("grant request p/r -f {broken} --reason x", "{broken}:"),
        ("otp redeem -f {binary}", "not encoded as UTF-8"),
        ("audit verify -f {gone}", "`{gone}`: no such file"),
        ("verify -f {here} -k {gone}", "`{gone}`: no such file"),
        ("check -f {here} --as-of nope", "`nope` as an instant"),
        ("apply {gone} --cluster", "`{gone}`: no such file"),
        ("apply {here} --cluster --values-file {gone}", "`{gone}`: no such file"),
        ("audit verify --checkpoint nope", "`nope` as a checkpoint"),
        ("report violations --format htm", "there is no `htm`; did you mean `html`?"),
        ("tui --theme dakr", "there is no `dakr`; did you mean `dark`?"),
        ("completion cmd", "there is no `cmd`; there are bash, zsh, fish, powershell, install"),
        ("grant list --state actve", "there is no state `actve`"),
        ("violations -o jsn", "there is no format `jsn`"),
        ("violations --limt 3", "unknown flag `--limt`; did you mean `--limit`?"),
        ("apply {here} --warn-exit-code many", "invalid int value: `many`"),
        ("grant list --stat active", "unknown flag `--stat`; did you mean `--state`?"),
        ("grant preview p Pod/web --for 9h", "unknown flag `--for`: it belongs to `request`"),
        ("status now", "unexpected argument `now`"),
        ("create cluster-rol", "unknown command `cluster-rol`; did you mean `cluster-role`?"),
        (
            "create cluster-role x -r pods --verbs get --globa v",
            "unknown flag `--globa`; there is none like it",
        ),
        ("otp issue --rulex r", "help: see `kubectl kpolicy otp issue --help`"),
        ("otp --rulex r", "help: see `kubectl kpolicy otp list --help`"),
        ("apply {broken} --cluster", "{broken}:"),
        ("apply {here} --cluster --values-file {broken}", "{broken}:"),
        ("explain -f {broken}", "{broken}:"),
        ("check -f {broken}", "{broken}:"),
        ("otp issue web --out-file {gone}/code", "there is no folder `{gone}`"),
    ],
)
def test_what_was_typed_wrong_is_told_before_a_cluster_is_needed(
    words: str, named: str, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-kubeconfig"))
    places = {name: tmp_path / f"{name}.yaml" for name in ("here", "gone", "broken", "binary")}
    places["here"].write_text("{apiVersion: v1, kind: Pod, metadata: {name: web}}")
    places["broken"].write_text("kind: [")
    places["binary"].write_bytes(b"a: \xff\xfe")

    assert entry.main(words.format(**places).split()) != 0

    told = capsys.readouterr().err
    assert named.format(**places) in told
    assert "kubeconfig" not in told
