"""Builds the image of Pods' sandboxes: one program in one layer, as an OCI archive."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.e2e.server.binaries import cache, go_command

from .cluster import PAUSE


def built() -> Path:
    """Return the archive, building it when it is not there."""
    archive = cache() / "pause.tar"
    if not archive.is_file():
        with tempfile.TemporaryDirectory() as work:
            program = Path(work) / "pause"
            shutil.copy(Path(__file__).with_name("pause.go"), Path(work) / "main.go")
            (Path(work) / "go.mod").write_text("module pause\n")
            environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
            subprocess.run([go_command(), "build", "-trimpath", "-ldflags=-s -w", "-o", program, "."], cwd=work, env=environment, check=True)  # fmt: skip
            archive.write_bytes(_archive(program.read_bytes()))
    return archive


def _archive(program: bytes) -> bytes:
    layer = _tar({"pause": program}, mode=0o755)
    packed = gzip.compress(layer, mtime=0)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": ["/pause"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    ).encode()
    kind = "application/vnd.oci.image"
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": f"{kind}.manifest.v1+json",
            "config": _described(f"{kind}.config.v1+json", config),
            "layers": [_described(f"{kind}.layer.v1.tar+gzip", packed)],
        }
    ).encode()
    named = {**_described(f"{kind}.manifest.v1+json", manifest), "annotations": {"io.containerd.image.name": PAUSE, "org.opencontainers.image.ref.name": "1"}}  # fmt: skip
    blobs = {
        f"blobs/sha256/{hashlib.sha256(one).hexdigest()}": one for one in (config, manifest, packed)
    }
    index = json.dumps({"schemaVersion": 2, "manifests": [named]}).encode()
    return _tar({"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": index, **blobs})


def _described(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _tar(files: dict[str, bytes], mode: int = 0o644) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return made.getvalue()
