"""The network namespace in which a node lives, and how everything in it goes again, also after a crash."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tests.e2e.server.processes import family

ADDRESS = "10.10.0.1"
_NAMESPACES = Path("/run/netns")


def make(name: str, folder: Path) -> None:
    """Make the namespace, with a bridge for an interface: many machines' kernels have no dummy device."""
    remove(name, folder)
    folder.mkdir(parents=True, mode=0o700)
    _ip("netns", "add", name)
    for words in (
        ("link", "set", "lo", "up"),
        ("link", "add", "eth0", "type", "bridge"),
        ("addr", "add", f"{ADDRESS}/24", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("route", "add", "default", "dev", "eth0"),
    ):
        _ip("-n", name, *words)
    subprocess.run([*entering(name), "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)


def entering(name: str) -> list[str]:
    """Return the words before a command that is to run in the namespace; `ip netns exec` would hide the control groups from it."""
    return ["nsenter", f"--net={_NAMESPACES / name}"]


def remove(name: str, folder: Path) -> None:
    """End every process of the namespace and of the Pods that its programs started, and take away namespaces, mounts and files."""
    if (_NAMESPACES / name).exists():
        theirs = family(_processes(name))
        inodes = {_inode(f"/proc/{pid}/ns/net") for pid in theirs} - {
            _inode("/proc/self/ns/net"),
            0,
        }
        for pid in theirs - {os.getpid()}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _wait_for_end(theirs - {os.getpid()})
        for path in _NAMESPACES.iterdir():
            if path.name == name or (path.name.startswith("cni-") and _inode(str(path)) in inodes):
                subprocess.run(["ip", "netns", "del", path.name], check=False)
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((one for one in mounts if one.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "-l", mount], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _processes(name: str) -> set[int]:
    said = subprocess.run(
        ["ip", "netns", "pids", name], capture_output=True, text=True, check=False
    )
    return {int(pid) for pid in said.stdout.split()}


def _wait_for_end(pids: set[int]) -> None:
    end = time.monotonic() + 10
    while any(_is_there(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)


def _is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _inode(path: str) -> int:
    try:
        return Path(path).stat().st_ino
    except OSError:
        return 0


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
