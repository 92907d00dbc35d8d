"""Credentials of registries: docker's configuration file, and Kubernetes' pull secrets, which hold the same.

INVARIANT: a credential is only ever given for the registry that its entry names.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.lang import json, wildcard

from .places import Place, registry_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.model import Json, Object

_DOCKER_JSON = ("kubernetes.io/dockerconfigjson", ".dockerconfigjson")
_DOCKER_CFG = ("kubernetes.io/dockercfg", ".dockercfg")


@dataclass(frozen=True, slots=True)
class Credential:
    """A user with a password, or a token to be exchanged (`refresh`), or one to be shown as it is (`bearer`)."""

    user: str = ""
    password: str = field(default="", repr=False)
    refresh: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        """The Authorization header of user and password."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


@dataclass(frozen=True, slots=True)
class Keychain:
    """Credentials by host pattern and path prefix, the most specific first."""

    entries: tuple[tuple[str, str, Credential], ...] = ()

    def find(self, place: Place) -> Credential | None:
        """Return the credential for a repository, None when there is none (row A-90b; Kubernetes' matching)."""
        host = registry_key(place.host)
        for pattern, path, credential in self.entries:
            if not _fits_host(pattern, host):
                continue
            if not path or place.repository == path or place.repository.startswith(f"{path}/"):
                return credential
        return None

    def __add__(self, other: Keychain) -> Keychain:
        """Return a keychain that looks here first, then in the other."""
        return Keychain(self.entries + other.entries)


NOTHING = Keychain()


def keychain_of(document: Json) -> Keychain:
    """Read docker's configuration (`auths`), or the older form that is the inside of it; unreadable entries are left out."""
    if not isinstance(document, dict):
        return NOTHING
    auths = document.get("auths")
    blocks = auths if isinstance(auths, dict) else document
    found = []
    for key, block in blocks.items():
        credential = _credential(block)
        if credential is not None:
            host, path = _place_of_key(str(key))
            found.append((host, path, credential))
    found.sort(key=lambda entry: (-len(entry[1]), "*" in entry[0], entry[0]))
    return Keychain(tuple(found))


def keychain_of_secret(secret: Object) -> Keychain:
    """Read a pull secret; one of another type holds nothing."""
    for kind, key in (_DOCKER_JSON, _DOCKER_CFG):
        if secret.get("type") == kind:
            return keychain_of(_decoded((secret.get("data") or {}).get(key)))
    return NOTHING


def docker_keychain(environment: Mapping[str, str], home: Path) -> Keychain:
    """Read the configuration that docker itself would use: `$DOCKER_CONFIG/config.json`, or the one at home."""
    folder = Path(environment.get("DOCKER_CONFIG") or home / ".docker")
    try:
        return keychain_of(json.load((folder / "config.json").read_bytes()))
    except (OSError, EngineError):
        return NOTHING


def joined(keychains: Iterable[Keychain]) -> Keychain:
    """Return one keychain of many; the earlier ones are looked in first."""
    return sum(keychains, NOTHING)


def _credential(block: Any) -> Credential | None:
    if not isinstance(block, dict):
        return None
    user, password = str(block.get("username") or ""), str(block.get("password") or "")
    if block.get("auth"):
        text = _plain(block["auth"])
        user, colon, password = text.partition(":")
        if not colon:
            return None
    refresh = str(block.get("identitytoken") or "")
    bearer = str(block.get("registrytoken") or "")
    if not (user or refresh or bearer):
        return None
    return Credential(user, password.rstrip("\0"), refresh, bearer)


def _place_of_key(key: str) -> tuple[str, str]:
    """Return host and path of an entry's key: `https://index.docker.io/v1/`, `ghcr.io/org`, `*.example.com:5000`."""
    rest = key.partition("://")[2] if "://" in key else key
    host, _, path = rest.partition("/")
    path = path.strip("/")
    return registry_key(host), "" if path in ("v1", "v2") else path


def _fits_host(pattern: str, host: str) -> bool:
    """Tell whether a host fits label by label; a `*` stands for (a part of) one label, as in Kubernetes."""
    wanted, _, wanted_port = pattern.partition(":")
    name, _, port = host.partition(":")
    labels, found = wanted.split("."), name.split(".")
    if wanted_port != port or len(labels) != len(found):
        return False
    return all(wildcard.match(label, one) for label, one in zip(labels, found, strict=True))


def _plain(text: Any) -> str:
    try:
        return base64.b64decode(str(text), validate=False).decode()
    except (binascii.Error, ValueError):
        return ""


def _decoded(text: Any) -> Json:
    try:
        return json.load(_plain(text))
    except EngineError:
        return None
