"""Images read from a registry: what policies see, who is asked with which credentials, what is not believed."""

from __future__ import annotations

import pytest

from controllers.lookups.egress import DEFAULT_RULES
from controllers.lookups.errors import EgressError, OutsideError
from controllers.lookups.registry.keychain import keychain_of
from controllers.lookups.registry.places import place_of
from engine.evaluate import ImageLookup, SignatureLookup
from engine.images import DOCKER_HUB
from tests.controllers.kube.apiserver import run, serving

from .fake_registry import INDEX, FakeRegistry, digest_of, registry

USER = "robot:secret-canary"


def keychain(host: str, user: str = USER):
    name, _, password = user.partition(":")
    return keychain_of({"auths": {host: {"username": name, "password": password}}})


@pytest.mark.parametrize(
    ("text", "name", "host", "identifier"),
    [
        ("nginx", "index.docker.io/library/nginx", "registry-1.docker.io", "latest"),
        ("docker.io/nginx:1", "index.docker.io/library/nginx", "registry-1.docker.io", "1"),
        ("bitnami/redis:7", "index.docker.io/bitnami/redis", "registry-1.docker.io", "7"),
        ("ghcr.io/a/b:v1", "ghcr.io/a/b", "ghcr.io", "v1"),
        ("localhost:5000/a", "localhost:5000/a", "localhost:5000", "latest"),
        (f"ghcr.io/a/b:v1@{digest_of(b'')}", "ghcr.io/a/b", "ghcr.io", digest_of(b"")),
    ],
)
def test_a_reference_says_where_an_image_lies(text, name, host, identifier) -> None:
    place = place_of(text, DOCKER_HUB)

    assert (place.name, place.host, place.identifier) == (name, host, identifier)


def test_policies_see_manifest_and_configuration() -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake) as images:
            digest = fake.image("v1", User="1000")
            found = await images.image(ImageLookup(f"{fake.host}/acme/app:v1"))
            assert found["image"] == f"{fake.host}/acme/app:v1"
            assert found["resolvedImage"] == f"{fake.host}/acme/app@{digest}"
            assert (found["registry"], found["repository"]) == (fake.host, "acme/app")
            assert found["identifier"] == "v1"
            assert found["manifestList"] is None
            assert found["manifest"]["schemaVersion"] == 2
            assert found["configData"]["config"] == {"User": "1000"}

    run(scenario())


def test_of_an_index_the_image_for_linux_counts() -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake) as images:
            digest = fake.image("x", User="me")
            listed = [
                {"digest": "sha256:0", "platform": {"os": "linux", "architecture": "arm64"}},
                {"digest": digest, "platform": {"os": "linux", "architecture": "amd64"}},
            ]
            top = fake.push({"mediaType": INDEX, "manifests": listed}, "multi", kind=INDEX)
            found = await images.image(ImageLookup(f"{fake.host}/acme/app:multi"))
            assert found["resolvedImage"].endswith(top)
            assert found["manifestList"]["manifests"] == listed
            assert found["configData"]["config"] == {"User": "me"}

    run(scenario())


def test_content_that_is_not_what_its_digest_names_is_refused() -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake) as images:
            digest = fake.image("v1")
            path = f"/v2/acme/app/manifests/{digest}"
            kind, data = fake.stored[path]
            fake.stored[path] = (kind, data + b" ")
            with pytest.raises(OutsideError, match="other content than its digest names"):
                await images.image(ImageLookup(f"{fake.host}/acme/app@{digest}"))
            fake.stored[path] = (kind, data)
            blob = next(path for path in fake.stored if "/blobs/" in path)
            fake.stored[blob] = ("application/x", b"{}")
            with pytest.raises(OutsideError, match="other content than its digest names"):
                await images.image(ImageLookup(f"{fake.host}/acme/app@{digest}"))

    run(scenario())


@pytest.mark.parametrize("basic", [True, False])
def test_credentials_are_shown_where_the_registry_asks(basic: bool) -> None:
    async def scenario() -> None:
        fake = FakeRegistry(user=USER, basic=basic)
        async with registry(fake) as images:
            images._registry._keychain = keychain(fake.host)
            fake.image("v1")
            lookup = ImageLookup(f"{fake.host}/acme/app:v1")
            assert (await images.image(lookup))["identifier"] == "v1"
            asked = len(fake.server.requests)
            await images.image(lookup)
            assert len(fake.server.requests) == asked + 2

    run(scenario())


def test_without_credentials_the_error_names_the_registry_only() -> None:
    async def scenario() -> None:
        fake = FakeRegistry(user=USER)
        async with registry(fake) as images:
            fake.image("v1")
            with pytest.raises(OutsideError) as caught:
                await images.image(ImageLookup(f"{fake.host}/acme/app:v1"))
            assert "canary" not in str(caught.value)
            assert "token server of the registry answered with HTTP 403" in str(caught.value)

    run(scenario())


def test_credentials_of_another_registry_are_never_shown() -> None:
    async def scenario() -> None:
        fake = FakeRegistry(user=USER)
        others = keychain("ghcr.io")
        async with registry(fake, keychain=others) as images:
            fake.image("v1")
            with pytest.raises(OutsideError):
                await images.image(ImageLookup(f"{fake.host}/acme/app:v1"))
            assert "cm9ib3Q" not in str(fake.server.requests)

    run(scenario())


@pytest.mark.parametrize(
    "realm", ["http://169.254.169.254/token", "https://169.254.169.254/token", "file:///x", ""]
)
def test_a_token_server_is_judged_like_any_address(realm: str) -> None:
    async def scenario() -> None:
        fake = FakeRegistry(user=USER, realm=realm or "nonsense")
        async with registry(fake) as images:
            images._registry._keychain = keychain(fake.host)
            with pytest.raises(EgressError):
                await images.image(ImageLookup(f"{fake.host}/acme/app:v1"))

    run(scenario())


def test_a_blob_may_lie_elsewhere_and_is_fetched_without_credentials() -> None:
    async def scenario() -> None:
        store = FakeRegistry()
        async with serving(store.handle) as other:
            store.server = other
            fake = FakeRegistry(user=USER, elsewhere=other.address)
            async with registry(fake) as images:
                images._registry._keychain = keychain(fake.host)
                fake.image("v1", User="me")
                store.stored = fake.stored
                found = await images.image(ImageLookup(f"{fake.host}/acme/app:v1"))
                assert found["configData"]["config"] == {"User": "me"}
                assert [seen[2].get("Authorization") for seen in other.requests] == [None]

    run(scenario())


def test_whom_a_registry_redirects_to_names_no_server_that_gets_its_credential() -> None:
    async def scenario() -> None:
        thief = FakeRegistry(user="nobody:x")
        async with serving(thief.handle) as other:
            thief.server = other
            fake = FakeRegistry(user=USER, elsewhere=other.address)
            async with registry(fake) as images:
                images._registry._keychain = keychain(fake.host)
                fake.image("v1")
                with pytest.raises(OutsideError, match="does not let us read"):
                    await images.image(ImageLookup(f"{fake.host}/acme/app:v1"))
                assert [seen[1] for seen in other.requests if "/token" in seen[1]] == []
                assert [seen[2].get("Authorization") for seen in other.requests] == [None]

    run(scenario())


def test_a_registry_on_a_refused_address_is_not_asked() -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake, DEFAULT_RULES) as images:
            fake.image("v1")
            with pytest.raises(EgressError):
                await images.image(ImageLookup(f"{fake.host}/acme/app:v1"))
            data = await images.signatures(SignatureLookup(f"{fake.host}/acme/app:v1"))
            assert "is not called" in data.problem
            assert fake.server.requests == []

    run(scenario())


@pytest.mark.parametrize(
    "reference", ["ghcr.io/UPPER", "a b", "", "ghcr.io/a@sha256:1", "x" * 5000]
)
def test_what_is_no_reference_is_an_error(reference: str) -> None:
    async def scenario() -> None:
        async with registry(FakeRegistry()) as images:
            with pytest.raises(Exception, match="bad image"):
                await images.image(ImageLookup(reference))
            assert (await images.signatures(SignatureLookup(reference))).problem

    run(scenario())


@pytest.mark.parametrize(
    "content",
    [b"[]", b"canary", b"{}", b'{"config": 5}', b'{"manifests": 5}', b'{"manifests": [5]}'],
)
def test_a_manifest_that_is_none_is_an_error(content: bytes) -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake) as images:
            fake.push(content, "v1")
            with pytest.raises(OutsideError) as caught:
                await images.image(ImageLookup(f"{fake.host}/acme/app:v1"))
            assert "canary" not in str(caught.value)

    run(scenario())
