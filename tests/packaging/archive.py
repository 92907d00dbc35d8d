"""Builds the archives for krew: LICENSE, both executables and a folder with everything that they import.

krew unpacks an archive and makes a link to one executable; it runs nothing, and what it installs may fetch nothing. So an archive
carries all packages, those with machine code once for each Python that it serves.
"""

from __future__ import annotations

import gzip
import io
import platform as machine
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from .wheel import ROOT, epoch, version

LOCK = ROOT / "requirements-console.lock"
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORMS = {
    "linux-amd64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "linux-arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "darwin-arm64": tuple(f"macosx_{number}_0_arm64" for number in (14, 13, 12, 11)),
    "darwin-amd64": tuple(f"macosx_{number}_x86_64" for number in ("14_0", "13_0", "12_0", "11_0", "10_13", "10_12", "10_9")),
}  # fmt: skip
LAUNCHERS = {"kubectl-kpolicy": "entry", "kubectl_complete-kpolicy": "complete"}
_FOLDER = Path(__file__).parent
_SKIPPED = ("*/tests/*", "*.dist-info/RECORD", "*.dist-info/INSTALLER", "*.pyi", "*.pyx", "*.pxd")


def this_platform() -> str:
    """Return the platform of this machine by krew's names."""
    cpu = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine.machine(), machine.machine())
    return f"{sys.platform}-{cpu}"


def name_of(platform: str) -> str:
    """Return the file name of the archive for a platform."""
    return f"kpolicy-v{version()}-{platform}.tar.gz"


def built(out: Path, platform: str, ours: list[Path]) -> Path:
    """Build the archive for a platform, with wheels of ours, into a folder and return its path; RuntimeError when one of others is not to be had."""
    with tempfile.TemporaryDirectory() as work:
        root = Path(work) / "root"
        _unpack(ours, root / "lib" / "any")
        wheels = {one: _fetched(platform, one, Path(work) / one) for one in PYTHONS}
        shared = set.intersection(*({path.name for path in paths} for paths in wheels.values()))
        _unpack([path for path in wheels[PYTHONS[0]] if path.name in shared], root / "lib" / "any")
        for python, paths in wheels.items():
            own = [path for path in paths if path.name not in shared]
            _unpack(own, root / "lib" / f"cp{python.replace('.', '')}")
        for name, module in LAUNCHERS.items():
            text = (_FOLDER / "launcher.txt").read_text().replace("MODULE", module)
            (root / name).write_text(text)
            (root / name).chmod(0o755)
        shutil.copy(ROOT / "LICENSE", root)
        return packed(root, out / name_of(platform))


def _fetched(platform: str, python: str, folder: Path) -> list[Path]:
    """Fetch the wheels of the lock file for a platform and a Python, judged by their hashes."""
    tags = [word for tag in PLATFORMS[platform] for word in ("--platform", tag)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes",
         "-r", str(LOCK), "--only-binary=:all:", "--implementation", "cp", "--python-version", python, *tags, "-d", str(folder)],
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{platform}, Python {python}: {done.stderr.strip()}")
    return sorted(folder.iterdir())


def _unpack(wheels: list[Path], to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    for path in wheels:
        with zipfile.ZipFile(path) as zipped:
            names = [name for name in zipped.namelist() if ".data/" not in name]
            zipped.extractall(to, [name for name in names if not _is_skipped(name)])


def _is_skipped(name: str) -> bool:
    return any(Path(name).match(pattern) for pattern in _SKIPPED)


def packed(root: Path, path: Path) -> Path:
    """Write a tar.gz whose bytes depend on names, texts and modes alone."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for one in sorted(root.rglob("*")):
            entry = tar.gettarinfo(one, str(one.relative_to(root)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = epoch()
            entry.mode = 0o755 if one.is_dir() or one.name in LAUNCHERS else 0o644
            if one.is_dir():
                tar.addfile(entry)
            else:
                with one.open("rb") as file:
                    tar.addfile(entry, file)
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=epoch()) as smaller:
        smaller.write(plain.getvalue())
    return path
