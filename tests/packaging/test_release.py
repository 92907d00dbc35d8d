"""What is released: the same bytes each time, everything in it that is needed, nothing that is not, and it works."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tarfile
import tomllib
import zipfile

import pytest

from controllers.manifests.deploy import deployment
from engine.lang import yaml
from tests.packaging import archive, image, krew, parts, proof, wheel

BUDGET = 37
"""14 of them are the `kubernetes` package and what it brings, which log-ins by auth providers need."""
INPUTS = ("pyproject.toml", "README.md", "LICENSE", "engine", "controllers", "kubectl_kpolicy")
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")


SANDBOX = wheel.ROOT / wheel.SANDBOX


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return wheel.built(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    return wheel.built(tmp_path_factory.mktemp("sandbox"), SANDBOX)


def copied(tree):
    """Return a copy of what is built, which nobody else changes meanwhile, with times and modes of its own."""
    for name in INPUTS:
        source = wheel.ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    for path in tree.rglob("*.py"):
        os.utime(path, (1, 1_000_000_000))
        path.chmod(0o600)
    return tree


def test_a_copy_of_the_tree_gives_the_same_wheel_byte_by_byte(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(wheel.epoch()))
    (tmp_path / "tree").mkdir()
    tree = copied(tmp_path / "tree")
    built = wheel.built(tmp_path / "first", tree)
    tree = shutil.move(tree, tmp_path / "moved")
    for path in tree.rglob("*.py"):
        os.utime(path, (2, 1_100_000_000))
        path.chmod(0o644)
    again = wheel.built(tmp_path / "second", tree)

    assert again.name == built.name
    assert again.read_bytes() == built.read_bytes()


def test_the_wheel_of_the_sandbox_carries_the_sandbox_and_is_the_same_each_time(sandbox, tmp_path):
    names = set(zipfile.ZipFile(sandbox).namelist())
    kept = {
        str(path.relative_to(SANDBOX))
        for path in (SANDBOX / "kpolicy_sandbox").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert {name for name in names if ".dist-info/" not in name} == kept
    assert "kpolicy_sandbox-0.1.0.dist-info/licenses/LICENSE" in names
    assert wheel.built(tmp_path, SANDBOX).read_bytes() == sandbox.read_bytes()


def test_a_source_archive_is_the_same_each_time(tmp_path):
    (tmp_path / "tree").mkdir()
    tree = copied(tmp_path / "tree")
    first, second = wheel.source(tmp_path / "a", tree), wheel.source(tmp_path / "b", tree)

    assert first.read_bytes() == second.read_bytes()


def test_the_wheel_carries_code_and_data_and_nothing_else(built):
    names = set(zipfile.ZipFile(built).namelist())
    kept = {
        str(path.relative_to(wheel.ROOT))
        for folder in ("engine", "controllers", "kubectl_kpolicy")
        for path in (wheel.ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and SANDBOX not in path.parents
    }

    assert {name for name in names if ".dist-info/" not in name} == kept
    assert {name.partition("/")[2] for name in names if ".dist-info/" in name} == {
        "METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip
    assert {"controllers/manifests/samples/jobs/1-ttl.yaml", "kubectl_kpolicy/tui/styles/console.tcss",
            "kubectl_kpolicy/signing/public_good/trusted_root.json", "engine/py.typed"} <= names  # fmt: skip


@needs_kubectl
@pytest.mark.timeout(300)
def test_the_wheels_work_where_they_are_installed(built, sandbox, tmp_path):
    assert proof.by_neighbours((built, sandbox), tmp_path) > 10


@needs_kubectl
@pytest.mark.timeout(300)
def test_the_sandbox_works_where_nothing_else_of_ours_is_installed(sandbox, tmp_path):
    assert proof.alone_by_neighbours(sandbox, tmp_path) == len(proof.ALONE)


def test_the_version_is_the_same_everywhere():
    from kubectl_kpolicy.cli.version import VERSION

    image = deployment()["spec"]["template"]["spec"]["containers"][0]["image"]
    asked = wheel.project()["optional-dependencies"]["sandbox"]
    assert {VERSION, image.rpartition(":v")[2], wheel.project(SANDBOX)["version"]} == {wheel.version()}  # fmt: skip
    assert asked == [f"kpolicy-sandbox=={wheel.version()}"]


def test_at_run_time_there_are_no_more_packages_than_the_budget_and_all_of_them_are_locked():
    locked = parts.pinned(parts.LOCKS["image"])

    assert len(locked) <= BUDGET, sorted(locked)
    wanted = {re.split(r"[<>=~! ]", one)[0].lower() for one in wheel.project()["dependencies"]}
    assert wanted <= {name.lower() for name in locked}
    assert all(hashes for _, hashes in locked.values())


def test_what_is_released_is_what_was_tested():
    tested = parts.pinned(wheel.ROOT / "requirements-dev.lock")
    for lock in parts.LOCKS.values():
        assert parts.pinned(lock).items() <= tested.items(), f"`make lock` for {lock.name}"


def test_the_sandbox_has_locked_what_it_needs_and_nothing_that_the_plugin_does_not_have():
    locked = parts.pinned(SANDBOX / "requirements.lock")
    wanted = {re.split(r"[<>=~! ]", one)[0].lower() for one in wheel.project(SANDBOX)["dependencies"]}  # fmt: skip

    assert wanted <= {name.lower() for name in locked}
    assert locked.items() <= parts.pinned(parts.LOCKS["image"]).items(), "`make lock`"


def test_the_lists_of_parts_name_each_locked_package_with_its_version(tmp_path):
    for path, lock in zip(parts.lists(tmp_path), parts.LOCKS.values(), strict=True):
        told = json.loads(path.read_text())
        found = {one["purl"] for one in told["components"]}
        assert found == {f"pkg:pypi/{name}@{number}" for name, (number, _) in parts.pinned(lock).items()}  # fmt: skip
        assert told["metadata"]["component"]["version"] == wheel.version()


def small_archive(folder, name):
    """Return an archive as it is released, without the packages of others."""
    root = folder / name
    root.mkdir(parents=True)
    for one in archive.LAUNCHERS:
        (root / one).write_text("#!/usr/bin/env python3\n")
    shutil.copy(wheel.ROOT / "LICENSE", root)
    return archive.packed(root, folder / archive.name_of(name))


def test_archives_carry_the_licence_and_both_executables_and_are_the_same_each_time(tmp_path):
    one, two = small_archive(tmp_path / "a", "linux-amd64"), small_archive(tmp_path / "b", "linux-amd64")  # fmt: skip
    with tarfile.open(one) as packed:
        modes = {entry.name: stat.S_IMODE(entry.mode) for entry in packed}

    assert modes == {"LICENSE": 0o644, "kubectl-kpolicy": 0o755, "kubectl_complete-kpolicy": 0o755}
    assert one.read_bytes() == two.read_bytes()


def test_the_manifest_for_krew_says_what_krew_asks_for(tmp_path):
    archives = {name: small_archive(tmp_path, name) for name in archive.PLATFORMS}
    told = yaml.load(krew.manifest(tmp_path, archives).read_text())
    spec = told["spec"]

    assert told["metadata"]["name"] == "kpolicy"
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])
    assert len(spec["shortDescription"]) <= 50
    assert not spec["shortDescription"].endswith(".")
    for one in spec["platforms"]:
        assert re.fullmatch(r"[0-9a-f]{64}", one["sha256"])
        assert one["uri"].startswith(f"{krew.RELEASES}/{spec['version']}/kpolicy-")
        with tarfile.open(tmp_path / one["uri"].rpartition("/")[2]) as packed:
            assert {"LICENSE", one["bin"]} <= set(packed.getnames())
    chosen = [one["selector"]["matchLabels"] for one in spec["platforms"]]
    assert len({json.dumps(one) for one in chosen}) == len(chosen) == len(archive.PLATFORMS)


def test_what_is_locked_is_installed_as_it_stands_and_nothing_is_resolved_anew():
    recipes = [wheel.ROOT / "Makefile", wheel.ROOT / "action.yml", image.DOCKERFILE]
    recipes += (
        wheel.ROOT / "tests" / "packaging" / name for name in ("proof.py", "image.py", "archive.py")
    )
    lines = [
        line
        for path in recipes
        for line in path.read_text().splitlines()
        if "--require-hashes" in line
    ]

    assert len(lines) >= len(recipes)
    assert [line for line in lines if "--no-deps" not in line] == []


def test_the_recipe_of_the_image_pins_its_base_and_its_packages_and_leaves_no_shell():
    text = image.DOCKERFILE.read_text()
    stages = re.findall(r"^FROM (\S+)", text, re.MULTILINE)

    assert re.fullmatch(r"\$\{BASE\}", stages[0])
    assert re.search(r"^ARG BASE=python:3\.\d+\.\d+-slim-\w+", text, re.MULTILINE)
    assert stages[-1] == "scratch"
    assert "--require-hashes -r requirements.lock" in text
    user = re.search(r"^USER (\d+):(\d+)$", text, re.MULTILINE)
    assert user is not None
    assert int(user[1]) >= 10_000
    pod = deployment()["spec"]["template"]["spec"]["securityContext"]
    assert (pod["runAsUser"], pod["runAsGroup"]) == (int(user[1]), int(user[2]))
    for source in re.findall(r"^COPY (?!--)(.+) \S+$", text, re.MULTILINE):
        assert all((wheel.ROOT / one).exists() for one in source.split()), source


def test_extras_are_named_where_they_are_asked_for():
    extras = tomllib.loads((wheel.ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]  # fmt: skip
    asked = {
        found
        for folder in ("controllers", "kubectl_kpolicy")
        for path in (wheel.ROOT / folder).rglob("*.py")
        for found in re.findall(r"kubectl-kpolicy\[([\w-]+)\]", path.read_text())
    }
    assert asked <= set(extras)
