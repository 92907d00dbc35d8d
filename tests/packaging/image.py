"""`python -m tests.packaging.image [--out DIR]`: builds the controllers' image from the Dockerfile, without Docker and without a registry.

The base is made of Debian packages (mmdebstrap), or is the one that IMAGE_BASE names: an image by its digest, or the path of an archive.
buildah carries out the Dockerfile; wheels are fetched by the hashes of the lock file before, so that the build itself needs no network.
Into the folder go the OCI archive, a list of its files with their digests, and a list of its parts (CycloneDX). Takes root.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from .archive import LOCK
from .wheel import ROOT, version

DOCKERFILE = ROOT / "controllers" / "manifests" / "deploy" / "Dockerfile"
NAME = "ghcr.io/kpolicy/kpolicy"
SUITE = "bookworm"
PACKAGES = ("python3", "python3-venv", "python3-pip", "python-is-python3", "ca-certificates")
TOOLS = ("buildah", "mmdebstrap")
LARGEST = 120 << 20
_METADATA = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)-(?P<version>[^-]+)\.dist-info/METADATA$")


class ImageError(Exception):
    """No image can be built; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that was built: its archive, its name with its tag, and the digest of its manifest (`sha256:…`)."""

    archive: Path
    name: str
    digest: str
    files: dict[str, str]

    @property
    def pinned(self) -> str:
        """The name by digest."""
        return f"{self.name.rpartition(':')[0]}@{self.digest}"


def main() -> int:
    """Build; return 0, or 1 when it cannot be built or is not what it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.packaging.image", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR")
    parser.add_argument("--twice", action="store_true", help="build again and compare the bytes")
    args = parser.parse_args()
    try:
        made = built(args.out.absolute())
        if args.twice:
            with tempfile.TemporaryDirectory(prefix="kpolicy-image-") as place:
                again = built(Path(place))
            if again.digest != made.digest:
                raise ImageError(f"built twice, it is {made.digest} and {again.digest}")
            print("built twice, the same bytes", flush=True)
    except ImageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    size = made.archive.stat().st_size / (1 << 20)
    print(f"{made.pinned}  {len(made.files)} files, {size:.1f} MiB  {made.archive}")
    return 0


def built(out: Path) -> Image:
    """Build the image into a folder; raises ImageError."""
    install_tools(TOOLS)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kpolicy-image-") as work:
        builder = _Builder(Path(work))
        archive = out / f"kpolicy-image-{version()}.tar"
        name = f"{NAME}:v{version()}"
        builder.build(base(), archive, name)
    made = read(archive, name)
    _check(made)
    listing = "".join(f"{digest}  {path}\n" for path, digest in sorted(made.files.items()))
    archive.with_suffix(".files.txt").write_text(listing)
    archive.with_suffix(".cdx.json").write_text(json.dumps(_parts(made), indent=2) + "\n")
    return made


def install_tools(names: tuple[str, ...], programs: tuple[str, ...] = ()) -> None:
    """Install Debian packages whose programs are not there; raises ImageError where that cannot be done."""
    if os.geteuid():
        raise ImageError("this takes root: containers are built and run")
    if all(shutil.which(one) for one in programs or names):
        return
    if not shutil.which("apt-get"):
        raise ImageError(f"{', '.join(names)} are needed, and there is no apt-get to install them")
    for words in (["update"], ["install", "-y", "--no-install-recommends", *names]):
        _do("apt-get", "-q", *words, env={"DEBIAN_FRONTEND": "noninteractive"})


def base() -> str:
    """Return what the image is built on: what IMAGE_BASE names, or the path of an archive of Debian packages, made when it is not there."""
    if named := os.environ.get("IMAGE_BASE"):
        if not Path(named).is_file() and "@sha256:" not in named:
            raise ImageError(f"IMAGE_BASE is `{named}`, which a tag names; name it by its digest: IMAGE@sha256:DIGEST")  # fmt: skip
        return named
    recipe = hashlib.sha256(" ".join((SUITE, *PACKAGES)).encode()).hexdigest()[:12]
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kpolicy" / "image"
    path = place / f"base-{recipe}.tar"
    if not path.is_file():
        place.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.tar")
        include = f"--include={','.join(PACKAGES)}"
        _do("mmdebstrap", "--quiet", "--variant=minbase", include, SUITE, part, env={"SOURCE_DATE_EPOCH": "0"})  # fmt: skip
        part.rename(path)
    return str(path)


class _Builder:
    """buildah with a store of its own, which needs neither a daemon nor what other users of the machine have."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._places = ("--root", work / "store", "--runroot", work / "run", "--storage-driver", "vfs")  # fmt: skip

    def build(self, base: str, archive: Path, name: str) -> None:
        started_from = self._of_archive(Path(base)) if Path(base).is_file() else base
        wheels = self._wheels(started_from)
        told = (f"BASE={started_from}", "PIP_FIND_LINKS=/wheels", "PIP_NO_INDEX=1")
        arguments = [word for one in told for word in ("--build-arg", one)]
        self._buildah("bud", "-q", "--isolation", "chroot", "--timestamp", "0", "--volume", f"{wheels}:/wheels:ro", *arguments, "-f", DOCKERFILE, "-t", name, self._context())  # fmt: skip
        archive.unlink(missing_ok=True)
        self._buildah("push", "-q", name, f"oci-archive:{archive}:{name}")

    def _of_archive(self, path: Path) -> str:
        container = self._buildah("from", "scratch")
        self._buildah("add", "-q", container, path, "/")
        self._buildah("commit", "-q", "--timestamp", "0", container, "localhost/base:1")
        return "localhost/base:1"

    def _wheels(self, started_from: str) -> Path:
        """Fetch the wheels for the Python of the base, by the hashes of the lock file."""
        container = self._buildah("from", started_from)
        said = self._buildah("run", "--isolation", "chroot", container, "python", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")  # fmt: skip
        folder = self._work / "wheels"
        _do(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes",
            "--only-binary=:all:", f"--python-version={said}", "-r", LOCK, "-d", folder)  # fmt: skip
        return folder

    def _context(self) -> Path:
        """Lay out what the Dockerfile copies: what is committed, so that nothing else that lies about gets in."""
        folder = self._work / "context"
        folder.mkdir()
        packed = subprocess.run(["git", "archive", "--format=tar", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout  # fmt: skip
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extractall(folder, filter="data")
        return folder

    def _buildah(self, *words: str | Path) -> str:
        return _do("buildah", *self._places, *words).strip()


def _do(*words: str | Path, env: dict[str, str] | None = None) -> str:
    command = [str(word) for word in words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, **(env or {})})  # fmt: skip
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise ImageError(f"`{' '.join(command[:3])}` ended with {done.returncode}:\n{end}")
    return done.stdout


def read(archive: Path, name: str) -> Image:
    """Read what an OCI archive holds: the digest of its manifest, and the digest of each file of its one layer."""
    with tarfile.open(archive) as tar:
        index = json.loads(_member(tar, "index.json"))
        digest = index["manifests"][0]["digest"]
        manifest = json.loads(_blob(tar, digest))
        if len(manifest["layers"]) != 1:
            raise ImageError(f"the image has {len(manifest['layers'])} layers, not one")
        config = json.loads(_blob(tar, manifest["config"]["digest"]))["config"]
        layer = _blob(tar, manifest["layers"][0]["digest"])
    if config.get("User") != "65532:65532":
        raise ImageError(f"the image runs as `{config.get('User')}`")
    files = {}
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer))) as inner:
        for one in inner:
            if one.isfile():
                found = inner.extractfile(one)
                assert found is not None
                files[one.name] = hashlib.sha256(found.read()).hexdigest()
            elif one.issym():
                files[one.name] = f"-> {one.linkname}"
    return Image(archive, name, digest, files)


def _blob(tar: tarfile.TarFile, digest: str) -> bytes:
    return _member(tar, "blobs/" + digest.replace(":", "/"))


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    found = tar.extractfile(name)
    assert found is not None, name
    return found.read()


def _check(image: Image) -> None:
    """Raise ImageError for an image that is too large, or that holds a shell, a compiler or a package manager."""
    if image.archive.stat().st_size > LARGEST:
        raise ImageError(f"the archive has {image.archive.stat().st_size >> 20} MiB; at most {LARGEST >> 20}")  # fmt: skip
    forbidden = re.compile(r"(^|/)s?bin/(?!python)[^/]+$|/site-packages/(pip|setuptools)/|/(cc1|ld|as)$")  # fmt: skip
    if found := sorted(path for path in image.files if forbidden.search(path)):
        raise ImageError(f"the image holds {', '.join(found[:5])}")


def _parts(image: Image) -> dict[str, object]:
    """Return the list of parts: the packages of the environment, from their own metadata, and the base."""
    found = sorted({(one["name"], one["version"]) for path in image.files if (one := _METADATA.search(path))})  # fmt: skip
    made_of = os.environ.get("IMAGE_BASE") or f"debian:{SUITE} with {', '.join(PACKAGES)}"
    base_path = base()
    digest = hashlib.sha256(Path(base_path).read_bytes()).hexdigest() if Path(base_path).is_file() else base_path.rpartition(":")[2]  # fmt: skip
    started = {"type": "container", "name": made_of, "hashes": [{"alg": "SHA-256", "content": digest}]}  # fmt: skip
    packages = [{"type": "library", "name": name, "version": number, "purl": f"pkg:pypi/{name.lower()}@{number}"} for name, number in found]  # fmt: skip
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": NAME, "version": f"v{version()}", "bom-ref": image.digest}},
        "components": [started, *packages],
    }  # fmt: skip


if __name__ == "__main__":
    began = time.monotonic()
    code = main()
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(code)
