"""Fulcio and Rekor as two small servers on loopback, backed by the tests' own authority and logs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import rfc8785
from cryptography import x509

from tests.engine.manifests.private_sigstore import (
    ISSUER,
    SUBJECT,
    LeafWish,
    PrivateSigstore,
    b64,
    certificate_pem,
    der_of,
    sign,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class LoopbackSigstore(PrivateSigstore):
    """The private instance with an address; `answers` replaces the status of a path, `requests` lists what came."""

    def __init__(self, now: datetime) -> None:
        super().__init__()
        self.start = now - timedelta(days=100)
        self.root = self._authority("root", self.root_key, None)
        self.middle = self._authority("intermediate", self.middle_key, self.root)
        self.now = now
        self.url = ""
        self.has_promise = True
        self.answers: dict[str, int] = {}
        self.requests: list[str] = []

    def respond(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.requests.append(path)
        if path in self.answers:
            return self.answers[path], {"message": "refused"}
        if path == "/api/v2/signingCert":
            return 200, self._certify(body)
        if path == "/api/v1/log/entries":
            return 201, self._log_entry(body)
        return 404, {}

    def _certify(self, body: dict[str, Any]) -> Any:
        request = x509.load_pem_x509_csr(base64.b64decode(body["certificateSigningRequest"]))
        leaf = self.issue(request.public_key(), LeafWish(from_time=self.now - timedelta(minutes=1)))
        chain = [certificate_pem(one) for one in (leaf, self.middle, self.root)]
        return {"signedCertificateEmbeddedSct": {"chain": {"certificates": chain}}}

    def _log_entry(self, body: dict[str, Any]) -> Any:
        canonical = rfc8785.dumps(body)
        bundle = self.record(canonical, self.now)
        payload = bundle["Payload"]
        root_hash = hashlib.sha256(b"\0" + canonical).digest()
        note = f"loopback - 1\n1\n{b64(root_hash)}\n"
        key_hint = hashlib.sha256(der_of(self.log_key)).digest()[:4]
        signed = b64(key_hint + sign(self.log_key, note.encode()))
        verification: dict[str, Any] = {
            "inclusionProof": {
                "checkpoint": f"{note}\n— loopback {signed}\n",
                "hashes": [],
                "logIndex": 0,
                "rootHash": root_hash.hex(),
                "treeSize": 1,
            }
        }
        if self.has_promise:
            verification["signedEntryTimestamp"] = bundle["SignedEntryTimestamp"]
        return {"0" * 64: {**payload, "verification": verification}}

    @property
    def trust_config(self) -> dict[str, Any]:
        valid = {"start": self.start.isoformat().replace("+00:00", "Z")}
        service = {"url": self.url, "majorApiVersion": 1, "validFor": valid, "operator": "test"}
        return {
            "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
            "trustedRoot": self.trusted_root,
            "signingConfig": {
                "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
                "caUrls": [service],
                "oidcUrls": [service],
                "rekorTlogUrls": [service],
                "tsaUrls": [],
                "rekorTlogConfig": {"selector": "ANY"},
            },
        }


def identity_token(now: datetime) -> str:
    """Return a token that the library accepts; nobody checks its signature here."""
    claims = {
        "iss": ISSUER,
        "sub": SUBJECT,
        "job_workflow_ref": SUBJECT,
        "aud": "sigstore",
        "iat": int(now.timestamp()) - 5,
        "exp": int(now.timestamp()) + 600,
    }
    parts = [_url64({"alg": "HS256", "typ": "JWT"}), _url64(claims)]
    mac = hmac.digest(b"test", ".".join(parts).encode(), "sha256")
    return ".".join([*parts, base64.urlsafe_b64encode(mac).decode().rstrip("=")])


def _url64(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@contextmanager
def served() -> Iterator[LoopbackSigstore]:
    """Run the instance until the block ends."""
    instance = LoopbackSigstore(datetime.now(UTC).replace(microsecond=0))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = instance.respond(self.path, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    instance.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield instance
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
