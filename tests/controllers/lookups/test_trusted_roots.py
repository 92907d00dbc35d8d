"""Trusted roots out of a TUF repository of our own: what it signs is believed, what anybody else signs is not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp

from controllers.lookups.assembling import TrustedRoots
from controllers.lookups.egress import EgressRules, Gate
from engine.errors import EngineError
from engine.evaluate import TrustLookup
from tests.controllers.kube.apiserver import run, serving

from .fake_registry import HERE

ROOT = {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1", "tlogs": []}


class Repository:
    """Metadata and one target, signed by one key for all roles."""

    def __init__(self, content: bytes = json.dumps(ROOT).encode()) -> None:
        self.signer = CryptoSigner.generate_ed25519()
        expires = datetime.now(UTC) + timedelta(days=1)
        root = Root(expires=expires, consistent_snapshot=False)
        for role in ("root", "targets", "snapshot", "timestamp"):
            root.add_key(self.signer.public_key, role)
        targets = Targets(expires=expires)
        named = "trusted_root.json"
        targets.targets[named] = TargetFile.from_data(named, content)
        self.files = {
            "root.json": self._signed(root),
            "targets.json": self._signed(targets),
            "targets/trusted_root.json": content,
        }
        self.files["snapshot.json"] = self._signed(
            Snapshot(expires=expires, meta={"targets.json": MetaFile()})
        )
        self.files["timestamp.json"] = self._signed(
            Timestamp(expires=expires, snapshot_meta=MetaFile())
        )
        self.asked: list[str] = []

    def _signed(self, part: Any) -> bytes:
        metadata = Metadata(part)
        metadata.sign(self.signer)
        return metadata.to_bytes()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        name = request.path.lstrip("/")
        self.asked.append(name)
        if name not in self.files:
            return web.Response(status=404)
        return web.Response(body=self.files[name])


async def fetched(
    repository: Repository, root: bytes = b"", rules: EgressRules = HERE, within: str = ""
) -> Any:
    async with serving(repository.handle) as server:
        gate = Gate(rules)
        try:
            roots = TrustedRoots(gate)
            text = (root or repository.files["root.json"]).decode()
            lookup = TrustLookup(server.address, text, within)
            first = await roots.root(lookup)
            asked = len(repository.asked)
            assert await roots.root(lookup) == first
            assert len(repository.asked) == asked
            return first
        finally:
            await gate.close()


def test_what_the_repository_signed_is_the_trusted_root() -> None:
    assert run(fetched(Repository())) == ROOT


def test_a_target_that_was_exchanged_is_refused() -> None:
    repository = Repository()
    repository.files["targets/trusted_root.json"] = b'{"tlogs": [1]}'

    with pytest.raises(EngineError, match="does not verify"):
        run(fetched(repository))


def test_a_repository_of_somebody_else_is_refused() -> None:
    with pytest.raises(EngineError, match="does not verify"):
        run(fetched(Repository(), Repository().files["root.json"]))


def test_what_the_gate_refuses_is_not_fetched() -> None:
    repository = Repository()

    with pytest.raises(EngineError):
        run(fetched(repository, rules=EgressRules()))
    assert repository.asked == []


@pytest.mark.parametrize(("mirror", "root"), [("", "{}"), ("https://x", "")])
def test_a_repository_needs_an_address_and_a_root_to_begin_with(mirror: str, root: str) -> None:
    with pytest.raises(EngineError, match="needs both"):
        run(TrustedRoots(Gate()).root(TrustLookup(mirror, root)))


def test_policies_of_namespaces_name_no_repositories() -> None:
    repository = Repository()

    with pytest.raises(EngineError, match="may not name"):
        run(fetched(repository, within="dev"))
    assert repository.asked == []
