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
from dataclasses import dataclass
from pathlib import Path

from . import archive
from .wheel import ROOT, version

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


class ProofError(Exception):
    """Something does not work as installed; the text says which command and what it said."""


def run(out: Path) -> int:
    """Install everything that lies in a folder and use it; print how it went and return an exit code."""
    ways = {"wheel": by_pip, "archive": by_link, "files of the image": by_chroot}
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
    """Install wheel and locked packages into an empty environment and use them."""
    venv.create(work / "venv", with_pip=True)
    place = work / "venv" / "bin"
    pip = [str(place / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    locked = ["--require-hashes", "-r", str(archive.LOCK)]
    for words in (locked, ["--no-deps", *map(str, _ours(out))]):
        _do([*pip, *words])
    return use((*PLUGIN, *BY_PIP), work, place)


def by_chroot(_out: Path, work: Path) -> int:
    """Lay out the image's files as its recipe does, with this machine's Python, and run the controllers among nothing else."""
    app, root = work / "app", work / "image"
    venv.create(app, with_pip=False, symlinks=True)
    _do([sys.executable, "-m", "pip", "--python", str(app / "bin" / "python"), "install", "--quiet", "--disable-pip-version-check",
         "--no-compile", "--only-binary=:all:", "--require-hashes", "-r", str(ROOT / "requirements.lock")])  # fmt: skip
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
    venv.create(work / "venv", with_pip=False)
    python = work / "venv" / "bin" / "python"
    _do([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check",
         "--no-index", "--no-deps", *map(str, wheels)])  # fmt: skip
    ours = sysconfig.get_path("purelib", vars={"base": str(work / "venv")})
    (Path(ours) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return use((*PLUGIN, *BY_PIP[:-1]), work, python.parent)


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
    path = [*map(str, places), str(_kubectl(work)), "/usr/bin", "/bin"]
    environment = {
        "PATH": os.pathsep.join(path),
        "HOME": str(work),
        "KPOLICY_SANDBOX_DIR": str(work / "sandbox"),
        "LANG": "C.UTF-8",
    }
    try:
        for check in checks:
            _must(check, work, environment)
    finally:
        last = ["kubectl-kpolicy", "sandbox", "down"]
        subprocess.run(last, cwd=work, env=environment, capture_output=True, check=False)
    return len(checks)


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
