"""A real registry on loopback: CNCF's distribution, built from its Go module once, with images and signatures made here.

Images are a manifest and a configuration, and a layer where they are to run. Signatures are kept as their tools keep them: cosign's by tag, bundles and
Notary's as referrers, which this registry does not list itself, so that the index under the fallback tag is written, too.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from .binaries import ToolMissingError, cache, go_command
from .processes import Process, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.engine.images.notaries import Notary

DISTRIBUTION = "v3.1.2"
_MODULE = "github.com/distribution/distribution/v3/cmd/registry"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_EMPTY = "application/vnd.oci.empty.v1+json"
_SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
_BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_NOTATION = "application/vnd.cncf.notary.signature"
_STATEMENT = "application/vnd.in-toto+json"
_SECONDS = 10.0


def program() -> Path:
    """Return the registry, building it where it is not there; raises ToolMissingError without Go or modules."""
    folder = cache().parent / f"distribution-{DISTRIBUTION}"
    found = Path(os.environ.get("KPOLICY_TEST_REGISTRY") or folder / "registry")
    if found.is_file():
        return found
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    done = subprocess.run(
        ["nice", "-n", "15", go_command(), "install", "-trimpath", f"{_MODULE}@{DISTRIBUTION}"],
        env={**environment, "GOBIN": str(folder)},
        check=False,
    )
    if done.returncode or not found.is_file():
        raise ToolMissingError("the registry could not be built (its output is above)")
    return found


@contextmanager
def registry(folder: Path) -> Iterator[Registry]:
    """Run a registry with nothing in it."""
    (port,) = free_ports(1)
    config = folder / "registry.yml"
    config.write_text(
        json.dumps(
            {
                "version": "0.1",
                "log": {"level": "warn"},
                "storage": {"filesystem": {"rootdirectory": str(folder / "images")}},
                "http": {"addr": f"127.0.0.1:{port}"},
            }
        )
    )
    process = Process("registry", [program(), "serve", config], folder)
    try:
        found = Registry(f"127.0.0.1:{port}")
        process.wait_until(found.is_up)
        yield found
    finally:
        process.stop()


@dataclass(frozen=True)
class Registry:
    """Pushes what a test needs; repositories are named below `host`."""

    host: str

    def is_up(self) -> bool:
        """Tell whether it answers."""
        with urllib.request.urlopen(f"http://{self.host}/v2/", timeout=_SECONDS) as answer:
            return bool(answer.status == 200)

    def image(self, repository: str, tag: str, layer: bytes = b"", **config: Any) -> str:
        """Push an image, with one layer (a tar archive) where it is to run, and return its digest."""
        settings: dict[str, Any] = {"architecture": "amd64", "os": "linux", "config": config}
        layers = []
        if layer:
            settings["rootfs"] = {"type": "layers", "diff_ids": [_digest(layer)]}
            layers.append({"mediaType": _LAYER, **self._blob(repository, layer)})
        described = {"mediaType": _CONFIG, **self._blob(repository, settings)}
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": described,
            "layers": layers,
        }
        return self._manifest(repository, manifest, tag)

    def sign(
        self, repository: str, digest: str, key: ec.EllipticCurvePrivateKey, about: str = ""
    ) -> None:
        """Sign a digest as cosign does by tag; with `about` what is signed names another image."""
        critical = {
            "identity": {"docker-reference": f"{self.host}/{repository}"},
            "image": {"docker-manifest-digest": about or digest},
            "type": "cosign container image signature",
        }
        payload = json.dumps({"critical": critical, "optional": None}).encode()
        notes = {"dev.cosignproject.cosign/signature": _signed(key, payload)}
        layer = {"mediaType": _SIMPLE, **self._blob(repository, payload), "annotations": notes}
        config = {"mediaType": _CONFIG, **self._blob(repository, {})}
        manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": config, "layers": [layer]}
        self._manifest(repository, manifest, f"{digest.replace(':', '-')}.sig")

    def bundle(
        self,
        repository: str,
        digest: str,
        key: ec.EllipticCurvePrivateKey,
        kind: str = "https://sigstore.dev/cosign/sign/v1",
        predicate: Any = None,
    ) -> None:
        """Attach a Sigstore bundle with a statement about a digest; without another kind it is a signature."""
        statement = {
            "_type": "https://in-toto.io/Statement/v1",
            "predicateType": kind,
            "subject": [{"name": "image", "digest": {"sha256": digest.partition(":")[2]}}],
            "predicate": predicate or {},
        }
        body = json.dumps(statement).encode()
        signed = b"DSSEv1 %d %b %d %b" % (len(_STATEMENT), _STATEMENT.encode(), len(body), body)
        envelope = {
            "payloadType": _STATEMENT,
            "payload": base64.b64encode(body).decode(),
            "signatures": [{"sig": _signed(key, signed)}],
        }
        content = {
            "mediaType": _BUNDLE,
            "dsseEnvelope": envelope,
            "verificationMaterial": {"publicKey": {"hint": "x"}},
        }
        self._refer(repository, digest, _BUNDLE, json.dumps(content).encode(), _BUNDLE)

    def notarize(self, repository: str, digest: str, notary: Notary, **options: Any) -> None:
        """Attach a Notary signature to an image or artifact."""
        made = notary.sign(digest, **options)
        self._refer(repository, digest, _NOTATION, made.envelope, made.media_type)

    def artifact(self, repository: str, digest: str, kind: str, content: Any) -> str:
        """Attach an artifact to an image and return the artifact's own digest."""
        return self._refer(repository, digest, kind, json.dumps(content).encode(), kind)

    def _refer(self, repository: str, about: str, kind: str, data: bytes, media: str) -> str:
        """Push a manifest that refers to another, and list it where clients look that cannot ask."""
        empty = {"mediaType": _EMPTY, **self._blob(repository, b"{}")}
        size = self._size(repository, about)
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "artifactType": kind,
            "config": empty,
            "layers": [{"mediaType": media, **self._blob(repository, data)}],
            "subject": {"mediaType": _MANIFEST, "digest": about, "size": size},
        }
        digest = self._manifest(repository, manifest)
        fallback = about.replace(":", "-")
        listed = self._listed(repository, fallback)
        size = len(json.dumps(manifest).encode())
        one = {"mediaType": _MANIFEST, "digest": digest, "size": size, "artifactType": kind}
        index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [*listed, one]}
        self._manifest(repository, index, fallback)
        return digest

    def _size(self, repository: str, digest: str) -> int:
        return len(self._get(f"{repository}/manifests/{digest}", _MANIFEST))

    def _listed(self, repository: str, tag: str) -> list[Any]:
        try:
            found = json.loads(self._get(f"{repository}/manifests/{tag}", _INDEX))
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return []
        return list(found["manifests"])

    def _get(self, path: str, accept: str) -> bytes:
        request = urllib.request.Request(
            f"http://{self.host}/v2/{path}", headers={"Accept": accept}
        )
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            return bytes(answer.read())

    def _manifest(self, repository: str, content: Any, tag: str = "") -> str:
        data = json.dumps(content).encode()
        digest = _digest(data)
        path = f"{repository}/manifests/{tag or digest}"
        self._send("PUT", f"http://{self.host}/v2/{path}", data, content["mediaType"])
        return digest

    def _blob(self, repository: str, content: Any) -> dict[str, Any]:
        """Push a blob and return what describes it."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        started = self._send("POST", f"http://{self.host}/v2/{repository}/blobs/uploads/")
        place = urllib.parse.urljoin(f"http://{self.host}", started)
        joint = "&" if "?" in place else "?"
        kind = "application/octet-stream"
        self._send("PUT", f"{place}{joint}digest={_digest(data)}", data, kind)
        return {"digest": _digest(data), "size": len(data)}

    def _send(self, method: str, url: str, data: bytes = b"", kind: str = "") -> str:
        headers = {"Content-Type": kind} if kind else {}
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            return str(answer.headers.get("Location") or "")


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _signed(key: ec.EllipticCurvePrivateKey, data: bytes) -> str:
    return base64.b64encode(key.sign(data, ec.ECDSA(hashes.SHA256()))).decode()
