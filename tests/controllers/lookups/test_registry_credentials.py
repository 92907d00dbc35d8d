"""Which credential is shown to which registry."""

from __future__ import annotations

import base64
import json

import pytest

from controllers.kube.errors import Forbidden
from controllers.lookups.assembling import secret_reader
from controllers.lookups.registry.keychain import (
    NOTHING,
    docker_keychain,
    keychain_of,
    keychain_of_secret,
)
from controllers.lookups.registry.places import place_of
from engine.images import DOCKER_HUB
from tests.controllers.kube.apiserver import run
from tests.controllers.kube.fake import FakeClient


def auth(user: str, password: str = "p") -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


def user_for(reference: str, **auths) -> str:
    found = keychain_of({"auths": auths}).find(place_of(reference, DOCKER_HUB))
    return found.user if found else ""


def user_of(reference: str, auths) -> str:
    return user_for(reference, **auths)


@pytest.mark.parametrize(
    ("key", "reference", "fits"),
    [
        ("ghcr.io", "ghcr.io/a/b", True),
        ("https://ghcr.io", "ghcr.io/a/b", True),
        ("https://ghcr.io/v2/", "ghcr.io/a/b", True),
        ("GHCR.io", "ghcr.io/a/b", True),
        ("ghcr.io/a", "ghcr.io/a/b", True),
        ("ghcr.io/a/b", "ghcr.io/a/b", True),
        ("ghcr.io/a", "ghcr.io/ab/c", False),
        ("ghcr.io", "ghcr.io.evil.test/a/b", False),
        ("ghcr.io", "evil-ghcr.io/a/b", False),
        ("ghcr.io", "ghcr.io:8443/a/b", False),
        ("ghcr.io:8443", "ghcr.io:8443/a/b", True),
        ("*.example.com", "r.example.com/a", True),
        ("*.example.com", "a.r.example.com/a", False),
        ("*.example.com", "example.com/a", False),
        ("*.com", "evil.test/a", False),
        ("https://index.docker.io/v1/", "nginx", True),
        ("docker.io", "docker.io/bitnami/redis", True),
        ("registry-1.docker.io", "nginx", True),
        ("docker.io", "ghcr.io/a/b", False),
        ("", "ghcr.io/a/b", False),
    ],
)
def test_an_entry_is_for_its_registry_only(key: str, reference: str, fits: bool) -> None:
    assert bool(user_of(reference, {key: auth("me")})) is fits


def test_the_most_specific_entry_wins() -> None:
    auths = {"ghcr.io": auth("wide"), "ghcr.io/a/b": auth("narrow"), "*.io": auth("any")}

    assert user_of("ghcr.io/a/b", auths) == "narrow"
    assert user_of("ghcr.io/c", auths) == "wide"
    assert user_of("quay.io/c", auths) == "any"


@pytest.mark.parametrize(
    "block", [None, 5, {}, {"auth": "%%%"}, {"auth": auth("x")["auth"][:3]}, {"auth": 5}, []]
)
def test_entries_that_cannot_be_read_are_left_out(block) -> None:
    assert keychain_of({"auths": {"ghcr.io": block, "quay.io": auth("me")}}).entries[0][0] == "quay.io"  # fmt: skip


@pytest.mark.parametrize("document", [None, [], "x", {"auths": None}, {}])
def test_what_is_no_configuration_holds_nothing(document) -> None:
    assert keychain_of(document) == NOTHING


def pull_secret(name: str, namespace: str, user: str):
    text = json.dumps({"auths": {"ghcr.io": auth(user)}})
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(text.encode()).decode()},
    }


def test_pull_secrets_of_both_types_are_read() -> None:
    old = {
        "type": "kubernetes.io/dockercfg",
        "data": {".dockercfg": base64.b64encode(json.dumps({"quay.io": auth("o")}).encode())},
    }
    old["data"][".dockercfg"] = old["data"][".dockercfg"].decode()

    assert keychain_of_secret(pull_secret("a", "dev", "me")).entries[0][2].user == "me"
    assert keychain_of_secret(old).entries[0][2].user == "o"


@pytest.mark.parametrize(
    "secret", [{}, {"type": "Opaque", "data": {".dockerconfigjson": "e30="}},
               {"type": "kubernetes.io/dockerconfigjson"},
               {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "%"}}]
)  # fmt: skip
def test_other_secrets_hold_nothing(secret) -> None:
    assert keychain_of_secret(secret) == NOTHING


def test_secrets_are_read_where_they_were_named() -> None:
    client = FakeClient(
        pull_secret("pull", "kyverno", "ours"), pull_secret("pull", "dev", "theirs")
    )
    read = secret_reader(client, "kyverno", clock=client.clock)
    place = place_of("ghcr.io/a", DOCKER_HUB)

    assert run(read(("pull",))).find(place).user == "ours"
    assert run(read(("dev/pull",))).find(place).user == "theirs"
    assert run(read(("ops/pull", "missing"))).find(place) is None


def test_secrets_that_we_may_not_read_hold_nothing_and_the_others_count() -> None:
    client = FakeClient(pull_secret("pull", "dev", "me"))
    client.fail("get", Forbidden("no", status=403))
    read = secret_reader(client, "kyverno", always=("dev/pull",), clock=client.clock)

    assert run(read(("x",))).find(place_of("ghcr.io/a", DOCKER_HUB)).user == "me"


def test_secrets_are_read_once_for_the_requests_of_an_image() -> None:
    client = FakeClient(pull_secret("pull", "dev", "me"))
    read = secret_reader(client, "kyverno", clock=client.clock)

    async def scenario() -> None:
        await read(("dev/pull",))
        await read(("dev/pull",))
        assert len(client.calls) == 1
        await client.clock.advance(31)
        await read(("dev/pull",))
        assert len(client.calls) == 2

    run(scenario())


def test_the_command_line_uses_dockers_own_configuration(tmp_path) -> None:
    (tmp_path / ".docker").mkdir()
    path = tmp_path / ".docker" / "config.json"
    path.write_text(json.dumps({"auths": {"ghcr.io": auth("me")}, "credsStore": "x"}))
    place = place_of("ghcr.io/a", DOCKER_HUB)

    assert docker_keychain({}, tmp_path).find(place).user == "me"
    assert docker_keychain({"DOCKER_CONFIG": str(path.parent)}, tmp_path / "x").find(place)
    assert docker_keychain({}, tmp_path / "x") == NOTHING
    path.write_text("{")
    assert docker_keychain({}, tmp_path) == NOTHING


def test_credentials_are_not_shown_in_texts() -> None:
    found = keychain_of({"auths": {"ghcr.io": auth("me", "canary")}})

    assert "canary" not in repr(found)
