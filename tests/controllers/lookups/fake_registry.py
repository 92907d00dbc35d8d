"""A registry on loopback: repositories in memory, token authentication, redirections of blobs, all as the test wants."""

from __future__ import annotations

import base64
import hashlib
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

from controllers.lookups.addresses import networks
from controllers.lookups.egress import EgressRules, Gate
from controllers.lookups.registry.client import Registry
from controllers.lookups.registry.images import Images
from tests.controllers.kube.apiserver import Seen, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HERE = EgressRules(networks=networks(("127.0.0.0/8",)))
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass
class FakeRegistry:
    """`user` asks for credentials, `basic` by Basic instead of a token; `elsewhere` is where blobs are redirected to."""

    user: str = ""
    basic: bool = False
    realm: str = ""
    elsewhere: str = ""
    has_referrers: bool = True
    stored: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    referring: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    server: Seen = field(default_factory=Seen)

    @property
    def host(self) -> str:
        return self.server.address.partition("//")[2]

    def push(self, content: Any, *names: str, kind: str = MANIFEST, repository: str = "acme/app") -> str:  # fmt: skip
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        for name in (digest_of(data), *names):
            self.stored[f"/v2/{repository}/manifests/{name}"] = (kind, data)
        return digest_of(data)

    def blob(self, content: Any, *, repository: str = "acme/app") -> dict[str, Any]:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.stored[f"/v2/{repository}/blobs/{digest_of(data)}"] = ("application/x", data)
        return {"digest": digest_of(data), "size": len(data)}

    def image(self, tag: str, **config: Any) -> str:
        settings = {"config": config, "architecture": "amd64", "os": "linux"}
        content = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, **self.blob(settings)},
            "layers": [],
        }
        return self.push(content, tag)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/token":
            return self._token(request)
        shown = request.headers.get("Authorization", "")
        if self.user and shown != (self._basic() if self.basic else "Bearer pass"):
            realm = self.realm or f"{self.server.address}/token"
            challenge = f'Bearer realm="{realm}",service="fake",scope="x"'
            if self.basic:
                challenge = 'Basic realm="fake"'
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        if self.elsewhere and "/blobs/" in request.path:
            return web.Response(status=307, headers={"Location": self.elsewhere + request.path})
        return self._stored(request.path)

    def _basic(self) -> str:
        return "Basic " + base64.b64encode(self.user.encode()).decode()

    def _token(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != self._basic():
            return web.Response(status=403)
        return web.json_response({"token": "pass", "expires_in": 300})

    def _stored(self, path: str) -> web.Response:
        if "/referrers/" in path:
            if not self.has_referrers:
                return web.Response(status=404)
            listed = self.referring.get(path.rpartition("/")[2], [])
            return web.json_response({"manifests": listed}, content_type=INDEX)
        if path not in self.stored:
            return web.json_response({"errors": [{"message": "canary"}]}, status=404)
        kind, data = self.stored[path]
        return web.Response(body=data, content_type=kind)


@asynccontextmanager
async def registry(fake: FakeRegistry, rules: EgressRules = HERE, **options) -> AsyncIterator[Images]:  # fmt: skip
    async with serving(fake.handle) as server:
        fake.server = server
        gate = Gate(rules)
        try:
            yield Images(Registry(gate, **options))
        finally:
            await gate.close()
