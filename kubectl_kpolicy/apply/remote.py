"""Sources that lie elsewhere, brought here first: git repositories by the git binary, single files over the web.

For `apply` and `test`, which read what is fetched as local files and folders. What comes from elsewhere gets no chance to
be more than text: no hooks, no links out of the repository, no prompts, no other protocols (rows K-03 and K-04).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import DocumentError
from engine.record import record
from kubectl_kpolicy.session.sources import ADDRESSES

if TYPE_CHECKING:
    from collections.abc import Iterable

_FORGES = ("github.com", "www.github.com", "gitlab.com", "bitbucket.org", "codeberg.org")
_DOCUMENTS = (".yaml", ".yml", ".json")
_CLONE_SECONDS = 300
_FETCH_SECONDS = 30.0
_MOST_BYTES = 16 * 1024 * 1024
_HOPS = 5
_REPOSITORY = re.compile(r"(.+?\.git)(/.*)?")
_BRANCH = re.compile(r"(?!-)[\w./+@-]{1,200}")

_folders: list[tempfile.TemporaryDirectory[str]] = []
"""Kept until the process ends, because results name the files in them."""
_fetched: dict[tuple[str, str], Path] = {}


@record
class GitPlace:
    """A repository, the branch or tag wanted of it (empty: its own choice), and the path in it."""

    repository: str
    branch: str = ""
    path: str = ""


def is_address(path: str) -> bool:
    """Tell whether a path is an address."""
    return path.startswith(ADDRESSES)


def localised(paths: Iterable[str], branch: str = "") -> list[str]:
    """Return the paths with every address fetched, as the path where it now lies; raises DocumentError.

    `branch` counts for repositories whose address names none. An address is fetched once per process.
    """
    return [str(_local(path, branch)) if is_address(path) else path for path in paths]


def _local(address: str, branch: str) -> Path:
    known = _fetched.get((address, branch))
    if known is None:
        place = git_place(address, branch)
        known = _downloaded(address) if place is None else _cloned(place, address)
        _fetched[address, branch] = known
    return known


def git_place(address: str, branch: str = "") -> GitPlace | None:
    """Return which repository an address means, None for a file of the web; raises DocumentError for other addresses.

    Repositories are addresses with `.git` in their path (`https://host/team/repo.git/folder`), all over ssh, and those of
    the well-known forges, with or without `/tree/BRANCH/` or `/blob/BRANCH/`.
    """
    if address.startswith(("git://", "oci://")):
        raise DocumentError(
            f"cannot read `{address}`: addresses of this kind are not read",
            help="name a git repository by https or ssh, or a file by https",
        )
    found = _REPOSITORY.fullmatch(address)
    if found is not None:
        return GitPlace(found[1], branch, (found[2] or "").strip("/"))
    if address.startswith(("git@", "ssh://", "file://")):
        return GitPlace(address.rstrip("/"), branch)
    return _on_forge(address, branch)


def _on_forge(address: str, branch: str) -> GitPlace | None:
    scheme, _, rest = address.partition("://")
    host, *parts = [part for part in rest.partition("?")[0].split("/") if part] or [""]
    if host not in _FORGES or len(parts) < 2 or scheme != "https":
        return None
    repository = f"https://{host}/{parts[0]}/{parts[1]}"
    below = parts[2:]
    if below[:1] == ["-"]:
        below = below[1:]
    if below[:1] in (["tree"], ["blob"], ["src"]) and len(below) > 1:
        branch, below = below[1], below[2:]
    elif below[:1] == ["raw"]:
        return None
    return GitPlace(repository, branch, "/".join(below))


def _cloned(place: GitPlace, address: str) -> Path:
    if place.branch and not _BRANCH.fullmatch(place.branch):
        raise DocumentError(f"`{place.branch}` is not the name of a branch")
    folder = _new_folder()
    target = folder / "repository"
    _run_git(place, target, address)
    found = (target / place.path).resolve()
    if not found.is_relative_to(target.resolve()):
        raise DocumentError(f"cannot read `{address}`: its path leads out of the repository")
    if not found.exists():
        raise DocumentError(
            f"cannot read `{address}`: there is no `{place.path}` in the repository"
        )
    return found


def _run_git(place: GitPlace, target: Path, address: str) -> None:
    allowed = "file" if place.repository.startswith("file://") else "https:ssh"
    branch = ["--branch", place.branch] if place.branch else []
    words = ["git", "-c", "core.symlinks=false", "-c", "core.hooksPath=/dev/null", "clone", "--quiet",
             "--depth", "1", "--single-branch", "--no-tags", *branch, "--", place.repository, str(target)]  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command; what people name stands behind `--` or was checked
            words,
            env=_environment(allowed),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_CLONE_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise DocumentError(
            f"cannot read `{address}`: git is not installed", help="install git, or clone it first"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise DocumentError(f"cannot read `{address}`: git took too long") from error
    if done.returncode:
        reason = _reason(done.stderr)
        raise DocumentError(
            f"cannot read `{address}`: {reason}", help="see what `git clone` says about it"
        )


def _environment(allowed: str) -> dict[str, str]:
    """Return git's environment: the person's own, for proxies and keys, but nobody is asked for anything."""
    import os

    return {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": allowed, "LC_ALL": "C",
            "GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")}  # fmt: skip


def _reason(text: str) -> str:
    """Return git's last word, short and in one line."""
    lines = [line for line in text.splitlines() if line.strip()]
    last = (lines[-1] if lines else "git failed").removeprefix("fatal: ")
    return "".join(char for char in last[:300] if char.isprintable())


def _downloaded(address: str) -> Path:
    import asyncio

    data = asyncio.run(_fetch(address))
    name = address.partition("?")[0].rstrip("/").rpartition("/")[2]
    path = _new_folder() / (name if name.endswith(_DOCUMENTS) else "document.yaml")
    path.write_bytes(data)
    return path


async def _fetch(address: str) -> bytes:
    from controllers.lookups.assembling import PERSON
    from controllers.lookups.egress import Gate, Request
    from controllers.lookups.errors import OutsideError

    gate = Gate(PERSON)
    try:
        received = await gate.send(
            Request("GET", address), limit=_MOST_BYTES, seconds=_FETCH_SECONDS, hops=_HOPS
        )
    except OutsideError as error:
        raise DocumentError(f"cannot read `{address}`: {error.message}") from error
    finally:
        await gate.close()
    if received.status != 200:
        raise DocumentError(f"cannot read `{address}`: HTTP status {received.status}")
    return received.body


def _new_folder() -> Path:
    made = tempfile.TemporaryDirectory(prefix="kpolicy-")
    _folders.append(made)
    return Path(made.name)
