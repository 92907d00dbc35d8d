"""The pages of docs/ and the README: what they tell to type is typed, what they show is valid, what they name is there."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from controllers.manifests import SAMPLES
from engine.lang import yaml
from kubectl_kpolicy import cli, entry
from kubectl_kpolicy.actions.catalog import ALL as ALL_ACTIONS
from kubectl_kpolicy.cli.lint import _check_path
from tests.contracts.source import ROOT
from tests.site import hooks, reference

README = (ROOT / "README.md").read_text()
PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
ALL = {**PAGES, "README": README}
TYPED = [name for name, text in PAGES.items() if "\n```sh\n" in text]
ON_A_SANDBOX = [name for name in TYPED if "sandbox up" in PAGES[name]]
IN_PROCESS = [name for name in TYPED if name not in ON_A_SANDBOX]
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")


def lines_of(name: str, kinds: str = "sh") -> list[str]:
    """Return the commands of a page's blocks of these kinds."""
    blocks = re.findall(rf"^```(?:{kinds})\n(.*?)^```$", ALL[name], re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def files_of(name: str) -> dict[str, str]:
    """Return the files that a page shows, by their names."""
    shown = re.findall(r'^```yaml title="(.*?)"\n(.*?)^```$', ALL[name], re.MULTILINE | re.DOTALL)
    return dict(shown)


@pytest.fixture(params=TYPED)
def page(request, tmp_path):
    """A page with commands to type, and a folder with the files that it shows."""
    for file, text in files_of(request.param).items():
        (tmp_path / file).write_text(text)
    return request.param


@pytest.mark.parametrize("page", IN_PROCESS, indirect=True)
def test_the_commands_of_a_page_about_files_go_as_they_are_printed(
    page, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for line in lines_of(page):
        words = shlex.split(line, comments=True)
        assert words[:2] == ["kubectl", "kpolicy"], line
        if bool(entry.main(words[2:])) is not line.endswith("# refused"):
            wrong.append((line, capsys.readouterr()))
    assert wrong == []


def played(lines: list[str], place, home) -> list[tuple[str, int, str]]:
    """Type lines into one shell; return each with the exit code and what it printed."""
    shims = home / "bin"
    shims.mkdir()
    plugin = shims / "kubectl-kpolicy"
    plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kubectl_kpolicy "$@"\n')
    plugin.chmod(0o755)
    script = "".join(
        f"echo '@@{number}'\n{line}\necho \"@@rc $?\"\n" for number, line in enumerate(lines)
    )
    environment = {
        **os.environ,
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{shims}{os.pathsep}{os.environ['PATH']}",
        "KPOLICY_SANDBOX_DIR": str(home / "sandbox"),
    }
    try:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=280,
        )
    finally:
        down = [str(plugin), "sandbox", "down"]
        subprocess.run(down, env=environment, capture_output=True, check=False)
    parts = re.split(r"^@@\d+\n", done.stdout, flags=re.MULTILINE)[1:]
    found = [re.fullmatch(r"(.*?)@@rc (\d+)\n", part, re.DOTALL) for part in parts]
    assert all(found), done.stdout
    return [(line, int(one[2]), one[1]) for line, one in zip(lines, found, strict=True) if one]


@needs_kubectl
@pytest.mark.timeout(300)
def test_the_quick_start_and_the_incident_go_as_they_are_printed_on_one_sandbox(tmp_path):
    """Both begin with `sandbox up`, which leaves a sandbox that runs as it is."""
    assert ON_A_SANDBOX == ["incident", "quick-start"]
    place = tmp_path / "clone" / SAMPLES.relative_to(ROOT) / "incident"
    shutil.copytree(SAMPLES / "incident", place)
    for file, text in files_of("quick-start").items():
        (tmp_path / "clone" / file).write_text(text)

    lines = [*lines_of("quick-start"), *lines_of("incident")]
    said = played(lines, tmp_path / "clone", tmp_path)

    wrong = [one for one in said if bool(one[1]) is not one[0].endswith("# refused")]
    assert wrong == []
    told = {line.split("  #")[0].strip(): text for line, _, text in said}
    assert (
        "no  pattern" in told["kubectl kpolicy apply no-root.yaml --resource shell.yaml --explain"]
    )
    assert "no-root" in told["kubectl kpolicy violations list -A --blocks"]
    assert re.search(r"\bactive +0:?0?0?:?5\d:\d\d", told["kubectl kpolicy grant list -n shop"])
    assert "PolicyException" in told["kubectl kpolicy cleanup list -n shop"]
    assert "No resources found" in told["kubectl get policyexceptions -n shop"]
    log = told["kubectl kpolicy audit log"]
    verbs = ("request", "approve", "active", "expired", "use")
    assert all(re.search(rf"\b{verb}\b", log) for verb in verbs)
    assert "whole" in told["kubectl kpolicy audit verify"]


def test_a_newcomer_has_a_first_denial_explained_within_a_minute_of_commands(
    tmp_path, monkeypatch, capsys
):
    for file, text in files_of("quick-start").items():
        (tmp_path / file).write_text(text)
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    for line in lines_of("quick-start"):
        code = entry.main(shlex.split(line, comments=True)[2:])
        if "=> fail" in capsys.readouterr().out:
            break
    assert (code, time.monotonic() - began < 60) == (1, True)


def test_commands_that_are_shown_exist_with_their_flags():
    shown = 0
    for name in ALL:
        for line in lines_of(name, "sh|console"):
            for part in line.split("kubectl kpolicy ")[1:]:
                shown += 1
                _parsed(_words(part), f"{name}: {line}")
    assert shown > 60


def test_commands_that_any_text_or_hint_names_exist_with_their_flags(capsys):
    """Within sentences of pages, and in whatever the program or what is installed says; a name may stand without arguments."""
    places = {
        **ALL,
        **{
            path.name: path.read_text()
            for folder in ("kubectl_kpolicy", "controllers", "engine")
            for path in (ROOT / folder).rglob("*.py")
        },
    }
    named = {
        (part, name)
        for name, text in places.items()
        for part in re.findall(r"`kubectl kpolicy ([a-z][^`{}…\n]*)`", text)
    }
    wrong = []
    for part, name in sorted(named):
        words = _words(re.sub(r"\[[^\]]*\]", "", part))
        with contextlib.suppress(SystemExit):
            cli.parser_of(words[0])[0].parse_args(entry._plain(words[1:]))
        if (said := capsys.readouterr().err) and "required" not in said:
            wrong.append((name, part, said))
    assert wrong == []
    assert len(named) > 60


def _words(text: str) -> list[str]:
    """Return the words of a command up to what ends it in a shell."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: word != "2" and word[:1] not in "|()<>;&", lexer))


def _parsed(words: list[str], where: str) -> None:
    """Read a command as it is declared: a flag, verb or argument that there is not ends the test."""
    if words[0].isupper():
        return
    parser, _ = cli.parser_of(words[0])
    try:
        parser.parse_args(entry._plain(words[1:]))
    except SystemExit:
        pytest.fail(f"this cannot be typed: {where}")


@pytest.mark.parametrize("name", [name for name in ALL if files_of(name)])
def test_files_that_are_shown_have_no_mistakes(name, tmp_path):
    for file, text in files_of(name).items():
        (tmp_path / file).write_text(text)
        _, found = _check_path(str(tmp_path / file), "strict")
        assert not [line for line in found if line.severity == "error"], file


def test_every_block_of_yaml_can_be_read():
    for text in ALL.values():
        for block in re.findall(r"^```yaml[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            assert list(yaml.load_all(block))


def test_the_example_of_a_grant_policy_names_every_field():
    from controllers.manifests.crds.native import GRANT_POLICY

    (text,) = files_of("grant-policy").values()
    spec = yaml.load(text)["spec"]
    assert set(spec) == set(GRANT_POLICY.fields)
    for name, node in GRANT_POLICY.fields.items():
        for field in getattr(node, "fields", {}) if name != "requesters" else ():
            assert f"`{name}.{field}`" in ALL["grant-policy"], field


def test_the_reference_has_every_command_and_kind():
    commands, kinds = reference.commands(), reference.kinds()
    assert [line[3:] for line in commands.splitlines() if line.startswith("## ")][1:] == [
        *cli.COMMANDS
    ]
    assert "`--due-in`" in commands
    assert "| `spec.maxDuration` | string | The longest exception" in kinds
    assert "\n## ClusterPolicy (kyverno.io)\n" in kinds


def test_the_reference_has_every_key_word_and_setting_of_the_console():
    told = reference.console()
    for one in ALL_ACTIONS:
        assert f"`{one.id}`" in told, one.id
        assert all(
            f"`{key}`".replace("|", "\\|").replace("<", "&lt;") in told for key in one.keys
        ), one.id
    assert "| `ns` | a namespace, or all |" in told
    assert "| `tui.motion` | `true` | changed rows flash" in told
    assert "| `plugins.NAME.confirm` | `false` |" in told


@pytest.mark.parametrize("name", [name for name in ALL if "```toml" in ALL[name]])
def test_configurations_that_are_shown_are_valid(name, tmp_path, monkeypatch, capsys):
    blocks = re.findall(
        r'^```toml title="kpolicy.toml"\n(.*?)^```$', ALL[name], re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == ALL[name].count("```toml")
    for block in blocks:
        (tmp_path / "kpolicy.toml").write_text(block)
        monkeypatch.setenv("KPOLICY_CONFIG", str(tmp_path / "kpolicy.toml"))
        assert entry.main(["config", "validate"]) == 0, capsys.readouterr().err


def test_every_page_has_a_place_in_the_site():
    config = SimpleNamespace(nav=[{"Start": ["quick-start.md", "concepts.md"]}])
    hooks.on_config(config)
    assert {*config.nav[0]["Start"], *config.nav[1]["More"]} == {f"{name}.md" for name in PAGES}


def test_the_table_of_commands_is_complete():
    section = README.split("\n## Commands\n")[1].split("\n## ")[0]
    assert set(re.findall(r"`([a-z][a-z-]*)`", section)) - {"kpolicy"} == set(cli.COMMANDS)


def test_pictures_and_files_that_are_named_exist():
    for name in re.findall(r"\]\(((?!http)[^)]+)\)", README):
        assert (ROOT / name).exists(), name
    for target in re.findall(r"`?make ([a-z0-9]+)", README):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


def test_figures_of_packages_are_those_of_the_lock_files():
    from tests.packaging.parts import LOCKS, pinned

    there = {name: len(pinned(lock)) for name, lock in LOCKS.items()}
    told = f"time {there['image']} packages are needed, {there['console']} with the console"
    assert told in " ".join(README.split())
