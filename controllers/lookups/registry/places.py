"""Where an image lies: the registry's host, the repository in it, and the tag or digest."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.images import RegistryDefaults, parse_reference

_HUB = "index.docker.io"
_HUB_HOST = "registry-1.docker.io"
_HUB_NAMES = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})


@dataclass(frozen=True, slots=True)
class Place:
    """A repository with what is wanted of it; `registry` is the name people know, `host` the one that answers."""

    registry: str
    host: str
    repository: str
    tag: str = ""
    digest: str = ""
    secrets: tuple[str, ...] = ()
    is_insecure: bool = False

    @property
    def identifier(self) -> str:
        """The digest, else the tag."""
        return self.digest or self.tag

    @property
    def name(self) -> str:
        """Registry and repository."""
        return f"{self.registry}/{self.repository}"

    def at(self, identifier: str) -> Place:
        """Return the same repository at another tag or digest."""
        is_digest = ":" in identifier
        return replace(
            self, tag="" if is_digest else identifier, digest=identifier if is_digest else ""
        )


def place_of(
    text: str,
    defaults: RegistryDefaults,
    *,
    secrets: tuple[str, ...] = (),
    is_insecure: bool = False,
) -> Place:
    """Return where a reference points; raises EvaluationError for what is none."""
    found = parse_reference(text, defaults)
    registry = found.registry or defaults.registry
    is_hub = registry in _HUB_NAMES
    path = f"library/{found.path}" if is_hub and "/" not in found.path else found.path
    return Place(
        _HUB if is_hub else registry,
        _HUB_HOST if is_hub else registry,
        path,
        found.tag,
        found.digest,
        secrets,
        is_insecure,
    )


def registry_key(host: str) -> str:
    """Return the name under which credentials of a registry are looked for; Docker Hub has several."""
    return _HUB if host.lower() in _HUB_NAMES else host.lower()
