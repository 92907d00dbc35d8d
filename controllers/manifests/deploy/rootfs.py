"""Lays out the files of the controllers' image: an environment, the Python below it, and the libraries that both load.

Run by the Dockerfile with the environment's own Python, before anything of ours can be imported; so it stands on the standard
library alone. There is no shell, no pip and no other program in what it makes, and each file carries the same instant.
"""

from __future__ import annotations

import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

USER = 65532
_ETC = {
    "passwd": f"root:x:0:0:root:/:/none\nkpolicy:x:{USER}:{USER}:kpolicy:/:/none\n",
    "group": f"root:x:0:\nkpolicy:x:{USER}:\n",
    "nsswitch.conf": "hosts: files dns\n",
}
_KEPT = ("/etc/ssl/certs/ca-certificates.crt", "/etc/ld.so.cache")
_LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "site-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tests", "tkinter", "turtledemo",
    "venv", "config-*", "_tkinter*", "*.a", "*.pyi",
)  # fmt: skip
_LOADED = re.compile(r"(?:=> )?(/\S+) \(0x")


def lay_out(root: Path) -> None:
    """Fill an empty folder with the files of the image."""
    for name in (sys.prefix, sysconfig.get_path("stdlib", vars=_BASE)):
        _copy_tree(Path(name), root)
    _copy(Path(os.path.realpath(sys.executable)), root)
    for library in _libraries(root):
        _copy(library, root)
    for name in _KEPT:
        if Path(name).exists():
            _copy(Path(name), root)
    for name, text in _ETC.items():
        path = _placed(Path("/etc") / name, root)
        path.write_text(text)
    (root / "tmp").mkdir(exist_ok=True)
    _compile(root)
    _settle(root, int(os.environ.get("SOURCE_DATE_EPOCH") or 0))


_BASE = {"base": sys.base_prefix, "installed_base": sys.base_prefix}


def _placed(path: Path, root: Path) -> Path:
    """Return where a file lies in the image, with its folder made."""
    to = root / path.relative_to("/")
    to.parent.mkdir(parents=True, exist_ok=True)
    return to


def _copy(path: Path, root: Path) -> None:
    shutil.copy(path, _placed(path, root))


def _copy_tree(path: Path, root: Path) -> None:
    """Copy a folder; of an environment without what people start it by, of Python without what nobody imports here."""
    is_environment = path == Path(sys.prefix)
    left_out = shutil.ignore_patterns("__pycache__", "activate*", "Activate*", "include") if is_environment else _LEFT_OUT  # fmt: skip
    shutil.copytree(path, _placed(path, root), symlinks=True, ignore=left_out, dirs_exist_ok=True)
    if is_environment:
        names = _placed(path / "bin" / "python", root).parent
        for one in names.iterdir():
            one.unlink()
        for name in ("python", "python3"):
            (names / name).symlink_to(os.path.realpath(sys.executable))


def _libraries(root: Path) -> set[Path]:
    """Return the libraries outside the image that the programs and modules in it load."""
    found = set()
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            done = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False)  # noqa: S603, S607 - the build stage's own
            found |= {Path(name) for name in _LOADED.findall(done.stdout)}
    return {path for path in found if not path.is_relative_to(root)}


def _compile(root: Path) -> None:
    """Compile all modules; unchecked, because nobody can change them, and so that no instant gets into the files."""
    for path in sorted(root.rglob("*.py")):
        py_compile.compile(
            str(path),
            dfile=f"/{path.relative_to(root)}",
            doraise=False,
            quiet=2,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


def _settle(root: Path, instant: int) -> None:
    """Give every file one instant, and nobody more rights than to read, and to run what is a program or a library."""
    for path in sorted(root.rglob("*"), reverse=True):
        if not path.is_symlink():
            runs = path.is_dir() or (path.suffix != ".py" and os.access(path, os.X_OK))
            path.chmod(0o755 if runs else 0o644)
        os.utime(path, (instant, instant), follow_symlinks=False)
    (root / "tmp").chmod(0o1777)


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
