"""Installs what was built where nothing else is, by pip and from the unpacked archive as krew does, and uses it as people do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import archive
from .wheel import ROOT, SANDBOX, version

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 300
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: debug}
spec:
  hostIPC: true
  containers: [{name: shell, image: "busybox:1.36"}]
"""
POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-host}
spec:
  rules:
  - name: host-ipc
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: no host ipc, pattern: {spec: {"=(hostIPC)": false}}}
"""


@dataclass(frozen=True, slots=True)
class Check:
    """A command, the exit code it must have and a pattern of what it must say."""

    command: str
    says: str
    code: int = 0


PLUGIN = (
    Check("kubectl kpolicy version", rf"Client Version: v{re.escape(version())}"),
    Check("kubectl kpolicy apply policy.yaml --resource pod.yaml", r"fail: 1", 1),
    Check("kubectl kpolicy lint policy.yaml", r""),
    Check("kubectl kpolicy tui --help", r"usage: kubectl kpolicy tui"),
    Check("kubectl kpolicy install", r"kind: CustomResourceDefinition[\s\S]*kind: Deployment"),
    Check("kubectl kpolicy sandbox up --engine", r"the engine runs beside it"),
    Check("kubectl --kubeconfig sandbox/kubeconfig get clusterpolicies", r"No resources found"),
    Check("kubectl kpolicy doctor --kubeconfig sandbox/kubeconfig", r"(?i)webhook"),
    Check("kubectl kpolicy sandbox down", r"the sandbox is stopped"),
)
COMPLETION = Check("kubectl __complete kpolicy viol", r"violations\t")
BY_PIP = (
    COMPLETION,
    Check("python -m controllers --help", r"usage: "),
    Check("python -c 'import kubectl_kpolicy.tui.app'", r""),
    Check("python -m pip check", r"No broken requirements found"),
)
_KUBECTL = "kubectl --kubeconfig cluster/kubeconfig"
ALONE = (
    Check("python -c 'import engine'", r"No module named 'engine'", 1),
    Check("kpolicy-sandbox --help", r"usage: kpolicy-sandbox"),
    Check(f"{_KUBECTL} apply -f webhook.json", r"names created"),
    Check(f"{_KUBECTL} create configmap good --from-literal=a=b", r"configmap/good created"),
    Check(f"{_KUBECTL} create configmap bad", r'admission webhook "names.example.com" denied the request: it is called bad', 1),
    Check(f"{_KUBECTL} get configmaps -o name", r"configmap/good"),
    Check(f"{_KUBECTL} create deployment web --image=nginx", r"deployment.apps/web created"),
    Check(f"{_KUBECTL} rollout status deployment web --timeout=60s", r"successfully rolled out"),
)  # fmt: skip


class ProofError(Exception):
    """Something does not work as installed; the text says which command and what it said."""


def run(out: Path) -> int:
    """Install everything that lies in a folder and use it; print how it went and return an exit code."""
    ways = {
        "wheels": by_pip,
        "sandbox alone": by_itself,
        "archive": by_link,
        "files of the image": by_chroot,
    }
    if os.geteuid():
        print("files of the image: not tried, for that takes root", flush=True)
        del ways["files of the image"]
    failed = 0
    for name, way in ways.items():
        with tempfile.TemporaryDirectory(prefix="kpolicy-packaging-") as work:
            try:
                print(f"{name}: {way(out, Path(work))} commands work", flush=True)
            except ProofError as error:
                failed += 1
                print(f"FAILED {name}: {error}", flush=True)
    print(f"{len(ways) - failed} passed, {failed} failed", flush=True)
    return int(failed > 0)


def by_pip(out: Path, work: Path) -> int:
    """Install our wheels and locked packages into an empty environment and use them."""
    place = _installed(work, archive.LOCK, _ours(out))
    return use((*PLUGIN, *BY_PIP), work, place)


def by_itself(out: Path, work: Path) -> int:
    """Install the sandbox and its locked packages into an empty environment, and try a webhook of somebody else with it."""
    place = _installed(work, ROOT / SANDBOX / "requirements.lock", _ours(out)[1:])
    return use_alone((*ALONE, BY_PIP[-1]), work, place)


def _installed(work: Path, lock: Path, wheels: list[Path]) -> Path:
    """Install locked packages and wheels of ours into an empty environment; return where its executables are."""
    venv.create(work / "venv", with_pip=True)
    place = work / "venv" / "bin"
    pip = [str(place / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for words in (
        ["--no-deps", "--require-hashes", "-r", str(lock)],
        ["--no-deps", *map(str, wheels)],
    ):
        _do([*pip, *words])
    return place


def by_chroot(_out: Path, work: Path) -> int:
    """Lay out the image's files as its recipe does, with this machine's Python, and run the controllers among nothing else."""
    app, root = work / "app", work / "image"
    venv.create(app, with_pip=False, symlinks=True)
    _do([sys.executable, "-m", "pip", "--python", str(app / "bin" / "python"), "install", "--quiet", "--disable-pip-version-check",
         "--no-compile", "--only-binary=:all:", "--no-deps", "--require-hashes", "-r", str(ROOT / "requirements.lock")])  # fmt: skip
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(app)}))
    for name in ("engine", "controllers"):
        shutil.copytree(ROOT / name, packages / name, ignore=shutil.ignore_patterns("sandbox"))
    _do([str(app / "bin" / "python"), str(ROOT / "controllers/manifests/deploy/rootfs.py"), str(root)])  # fmt: skip
    for words in (["-m", "controllers", "--help"], ["-c", "import ssl, aiohttp, orjson, re2, cryptography, yaml"]):  # fmt: skip
        _do(["chroot", "--userspec=65532:65532", str(root), str(app / "bin" / "python"), "-I", *words])  # fmt: skip
    programs = {path.name for path in root.rglob("*") if path.name in ("sh", "bash", "pip", "gcc")}
    if programs:
        raise ProofError(f"the image has {', '.join(sorted(programs))}")
    return 2


def by_neighbours(wheels: tuple[Path, ...], work: Path) -> int:
    """Install wheels into an environment that borrows all other packages from ours, without any network, and use it."""
    return use((*PLUGIN, *BY_PIP[:-1]), work, _borrowing(wheels, work))


def alone_by_neighbours(wheel: Path, work: Path) -> int:
    """Install the wheel of the sandbox into an environment that borrows all other packages from ours, and use it as `by_itself` does."""
    return use_alone(ALONE, work, _borrowing((wheel,), work))


def _borrowing(wheels: tuple[Path, ...], work: Path) -> Path:
    venv.create(work / "venv", with_pip=False)
    python = work / "venv" / "bin" / "python"
    _do([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check",
         "--no-index", "--no-deps", *map(str, wheels)])  # fmt: skip
    ours = sysconfig.get_path("purelib", vars={"base": str(work / "venv")})
    (Path(ours) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def by_link(out: Path, work: Path) -> int:
    """Unpack the archive, link to both executables, as krew does to one, and use them with a Python that has no packages."""
    with tarfile.open(out / archive.name_of(archive.this_platform())) as packed:
        packed.extractall(work / "store", filter="data")
    place = _bare(work)
    for name in archive.LAUNCHERS:
        (place / name).symlink_to(work / "store" / name)
    return use((*PLUGIN, COMPLETION), work, place)


def use(checks: tuple[Check, ...], work: Path, *places: Path) -> int:
    """Run commands in a folder with these places before a bare path; return how many, raise ProofError for the first that fails."""
    (work / "pod.yaml").write_text(POD)
    (work / "policy.yaml").write_text(POLICY)
    environment = _environment(work, *places)
    try:
        for check in checks:
            _must(check, work, environment)
    finally:
        last = ["kubectl-kpolicy", "sandbox", "down"]
        subprocess.run(last, cwd=work, env=environment, capture_output=True, check=False)
    return len(checks)


def use_alone(checks: tuple[Check, ...], work: Path, place: Path) -> int:
    """Run commands while a sandbox and a webhook run from one place; return how many, raise ProofError for the first that fails."""
    environment = _environment(work, place)
    hook = [str(place / "python"), str(Path(__file__).with_name("webhook.py"))]
    server = [str(place / "kpolicy-sandbox"), "--dir", str(work / "cluster")]
    with _running(server, work, environment), _running(hook, work, environment) as registration:
        (work / "webhook.json").write_text(registration)
        for check in checks:
            _must(check, work, environment)
    return len(checks)


@contextmanager
def _running(command: list[str], work: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run a program until the end of the block, which begins with the first line that it prints."""
    with (work / "errors.log").open("a") as errors, subprocess.Popen(
        command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
    ) as process:  # fmt: skip
        assert process.stdout is not None, "it is a pipe"
        try:
            line = process.stdout.readline()
            if not line:
                raise ProofError(f"{' '.join(command)}:\n{(work / 'errors.log').read_text()}")
            yield line
        finally:
            process.terminate()


def _environment(work: Path, *places: Path) -> dict[str, str]:
    """Return an environment in which these places come before a bare path."""
    path = [*map(str, places), str(_kubectl(work)), "/usr/bin", "/bin"]
    return {
        "PATH": os.pathsep.join(path),
        "HOME": str(work),
        "KPOLICY_SANDBOX_DIR": str(work / "sandbox"),
        "LANG": "C.UTF-8",
    }


def _must(check: Check, work: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", check.command], cwd=work, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    if done.returncode != check.code or not re.search(check.says, done.stdout):
        raise ProofError(f"`{check.command}` ended with {done.returncode} and said:\n{done.stdout}")


def _bare(work: Path) -> Path:
    """Return a folder for executables with a `python3` that has no packages, not even of the user."""
    place = work / "bin"
    place.mkdir()
    venv.create(work / "bare", with_pip=False)
    (place / "python3").symlink_to(work / "bare" / "bin" / "python3")
    return place


def _kubectl(work: Path) -> Path:
    """Return a folder with nothing but kubectl."""
    found = shutil.which("kubectl")
    if found is None:
        raise ProofError("kubectl is not on the path (https://kubernetes.io/docs/tasks/tools/)")
    place = work / "kubectl"
    place.mkdir(exist_ok=True)
    if not (place / "kubectl").exists():
        (place / "kubectl").symlink_to(found)
    return place


def _ours(out: Path) -> list[Path]:
    """Return the wheels of both distributions."""
    return [_one(out, f"{name}-*.whl") for name in ("kubectl_kpolicy", "kpolicy_sandbox")]


def _one(out: Path, pattern: str) -> Path:
    found = sorted(out.glob(pattern))
    if not found:
        raise ProofError(f"there is no {pattern} in {out}; build it first")
    return found[-1]


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProofError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
