"""A webhook of somebody else, for the proof of the sandbox alone: it knows nothing of ours, and refuses ConfigMaps that are called `bad`.

`python webhook.py` prints the ValidatingWebhookConfiguration that registers it, in one line, once it listens.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import json
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "127.0.0.1"


def certificate(folder: Path) -> Path:
    """Write a certificate for this machine, signed by itself, and its key into one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = folder / "webhook.pem"
    encoding = serialization.Encoding.PEM
    secret = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())  # fmt: skip
    path.write_bytes(made.public_bytes(encoding) + secret)
    return path


def configuration(port: int, authority: bytes) -> dict[str, Any]:
    """Return what registers the webhook."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}  # fmt: skip
    client = {"url": f"https://{HOST}:{port}/", "caBundle": base64.b64encode(authority).decode()}
    hook = {"name": "names.example.com", "rules": [rule], "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"]}  # fmt: skip
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "names"}, "webhooks": [hook]}  # fmt: skip


async def answer(request: web.Request) -> web.Response:
    """Answer an AdmissionReview."""
    review = await request.json()
    asked = review["request"]
    response = {"uid": asked["uid"], "allowed": asked["name"] != "bad", "status": {"message": "it is called bad"}}  # fmt: skip
    return web.json_response({**review, "response": response})


async def main() -> None:
    """Serve until the process is ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = certificate(Path(folder))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(path)
        authority = path.read_bytes().partition(b"-----BEGIN PRIVATE")[0]
    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0, ssl_context=context).start()
    print(json.dumps(configuration(runner.addresses[0][1], authority)), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
