"""Policies, objects and tests that lie elsewhere: git repositories and files of the web."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from aiohttp import web

from engine.errors import DocumentError
from kubectl_kpolicy.apply import remote
from kubectl_kpolicy.apply.remote import GitPlace, git_place, localised
from kubectl_kpolicy.entry import main
from tests.controllers.kube.apiserver import answering, serving

from .backgrounds import in_background

POLICY = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-team}
spec:
  rules:
  - name: check
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      message: label team is required
      pattern: {metadata: {labels: {team: "?*"}}}
"""
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: dev, labels: {team: x}}\n"
TEST = """
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: t}
policies: [policy.yaml]
resources: [object.yaml]
results:
- {policy: require-team, rule: check, resources: [a], kind: ConfigMap, result: pass}
"""


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    """Fetch anew in every test, and keep git from the machine's own settings."""
    monkeypatch.setattr(remote, "_fetched", {})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)


def git(folder, *words: str) -> None:
    person = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", *person, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path) -> str:
    """Return the address of a repository with a policy, a test, a link out of it, and a branch `other`."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "team" / "policies.git"
    (folder / "good").mkdir(parents=True)
    (folder / "good" / "policy.yaml").write_text(POLICY)
    (folder / "good" / "object.yaml").write_text(OBJECT)
    (folder / "good" / "kyverno-test.yaml").write_text(TEST)
    (tmp_path / "secret.yaml").write_text("canary: true\n")
    (folder / "link").symlink_to(tmp_path)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "checkout", "-q", "-b", "other")
    (folder / "good" / "policy.yaml").write_text(POLICY.replace("require-team", "other-team"))
    git(folder, "commit", "-q", "-a", "-m", "two")
    git(folder, "checkout", "-q", "main")
    return f"file://{folder}"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://github.com/a/b", GitPlace("https://github.com/a/b")),
        ("https://github.com/a/b/", GitPlace("https://github.com/a/b")),
        ("https://github.com/a/b/c/d", GitPlace("https://github.com/a/b", "", "c/d")),
        ("https://github.com/a/b/tree/x/c/d", GitPlace("https://github.com/a/b", "x", "c/d")),
        ("https://github.com/a/b/blob/x/c.yaml", GitPlace("https://github.com/a/b", "x", "c.yaml")),
        ("https://gitlab.com/a/b/-/tree/x/c", GitPlace("https://gitlab.com/a/b", "x", "c")),
        ("https://example.com/a/b.git", GitPlace("https://example.com/a/b.git")),
        ("https://example.com/a/b.git/c/", GitPlace("https://example.com/a/b.git", "", "c")),
        ("https://x.github.dev/a.git/c", GitPlace("https://x.github.dev/a.git", "", "c")),
        ("git@example.com:a/b.git", GitPlace("git@example.com:a/b.git")),
        ("ssh://git@example.com/a/b", GitPlace("ssh://git@example.com/a/b")),
        ("https://example.com/policy.yaml", None),
        ("https://raw.githubusercontent.com/a/b/main/p.yaml", None),
        ("https://github.com/a/b/raw/main/p.yaml", None),
        ("http://github.com/a/b", None),
        ("https://github.com/a", None),
    ],
)
def test_an_address_means_a_repository_or_a_file(address: str, expected) -> None:
    assert git_place(address) == expected


def test_a_branch_counts_where_the_address_names_none() -> None:
    assert git_place("https://github.com/a/b", "x").branch == "x"
    assert git_place("https://github.com/a/b/tree/y", "x").branch == "y"


@pytest.mark.parametrize("address", ["git://example.com/a.git", "oci://example.com/a"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(DocumentError, match="addresses of this kind are not read"):
        localised([address])


def test_policies_and_objects_are_read_from_a_repository(repository, capsys) -> None:
    code = main(["apply", f"{repository}/good/policy.yaml", "-r", f"{repository}/good/object.yaml"])

    assert code == 0
    assert "pass: 1, fail: 0" in capsys.readouterr().out


def test_a_branch_is_followed(repository, capsys) -> None:
    words = [f"{repository}/good/policy.yaml", "-r", f"{repository}/good/object.yaml"]

    assert main(["apply", *words, "-b", "other", "-o", "json"]) == 0
    assert "other-team" in capsys.readouterr().out


def test_tests_are_found_in_a_repository(repository, capsys) -> None:
    assert main(["test", f"{repository}/good"]) == 0
    assert "1 tests passed and 0 tests failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "path", ["link/secret.yaml", "../../secret.yaml", "link/../../secret.yaml"]
)
def test_a_repository_does_not_lead_out_of_itself(repository, capsys, path) -> None:
    assert main(["apply", f"{repository}/{path}", "-r", f"{repository}/good/object.yaml"]) == 1
    assert "canary" not in str(capsys.readouterr())


def test_what_git_says_is_told_in_one_line(tmp_path, capsys) -> None:
    assert main(["apply", f"file://{tmp_path}/none.git", "-r", "x.yaml"]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: cannot read `file://{tmp_path}/none.git`: ")
    assert len(told.splitlines()) == 2


@pytest.mark.parametrize("branch", ["--upload-pack=touch x", "-b", "a b", "a\nb", ""])
def test_a_branch_is_no_option(repository, branch) -> None:
    if branch:
        with pytest.raises(DocumentError, match="is not the name of a branch"):
            localised([repository], branch)
    else:
        assert localised([repository], branch)


@pytest.mark.parametrize("address", ["ext::sh -c x", "https://x/a.git?ext::sh"])
def test_no_other_program_is_started(address) -> None:
    assert not remote.is_address("ext::sh -c x")
    assert git_place("https://x/a.git?ext::sh") is None


def test_without_git_the_command_says_so(repository, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(DocumentError, match="git is not installed"):
        localised([repository])


def test_a_file_of_the_web_is_read(capsys, tmp_path) -> None:
    (tmp_path / "object.yaml").write_text(OBJECT)
    moved = web.Response(status=302, headers={"Location": "/there.yaml"})
    there = web.Response(body=POLICY.encode())

    with in_background(serving(answering(moved, there))) as server:
        code = main(["apply", f"{server.address}/p.yaml", "-r", str(tmp_path / "object.yaml")])

    assert code == 0
    assert server.paths == ["/p.yaml", "/there.yaml"]
    assert "pass: 1, fail: 0" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_an_error(capsys, tmp_path) -> None:
    (tmp_path / "object.yaml").write_text(OBJECT)

    with in_background(serving(answering((404, "canary")))) as server:
        code = main(["apply", f"{server.address}/p.yaml", "-r", str(tmp_path / "object.yaml")])

    assert code == 1
    told = capsys.readouterr().err
    assert "HTTP status 404" in told
    assert "canary" not in told


def test_metadata_services_are_not_read(capsys) -> None:
    assert main(["apply", "http://169.254.169.254/latest", "-r", "x.yaml"]) == 1
    assert "it is link-local" in capsys.readouterr().err


def test_settings_are_local_files(capsys, tmp_path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    words = [str(tmp_path / "policy.yaml"), "-r", str(tmp_path / "policy.yaml")]

    assert main(["apply", *words, "--json", "https://example.com/x.json"]) == 1
    assert "cannot read `https:" in capsys.readouterr().err


def test_policies_elsewhere_are_checked_under_the_address_they_have(repository, capsys) -> None:
    main(["lint", repository, "-o", "json"])
    printed = capsys.readouterr()
    assert "1 " in printed.err
    assert "/tmp/kpolicy-" not in printed.out

    assert main(["lint", f"{repository}/none.git"]) == 1
    assert f"{repository}/none.git" in capsys.readouterr().out
