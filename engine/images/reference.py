"""Image references: `ghcr.io/org/app:v1@sha256:…` taken apart the way Kyverno takes them apart (row V-09).

For `images.*` variables, `image_normalize` and image verification. Apart from extraction because a reference is text only
and knows nothing of objects. The grammar is that of the OCI reference library: registry, path, tag and digest, all
anchored; the default registry is written in front of names that have none.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache

from engine.errors import EvaluationError
from engine.record import record

_PATH_LIMIT = 255
_TEXT_LIMIT = 4096
_SHOWN = 300

_DOMAIN_PART = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = r"[a-z0-9]+(?:(?:__|[._]|-+)[a-z0-9]+)*"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?:(?P<domain>{_DOMAIN})/)?(?P<path>{_PATH_PART}(?:/{_PATH_PART})*)"
    rf"(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
)
_HEX_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
_LOWER_HEX = frozenset("0123456789abcdef")


@record
class RegistryDefaults:
    """What an image without a registry means; the two settings of Kyverno's ConfigMap.

    `registry` completes short names; `mutate` False keeps the registry of short names empty in the result.
    """

    registry: str = "docker.io"
    mutate: bool = True


DOCKER_HUB = RegistryDefaults()


@record
class ImageReference:
    """One parsed image reference.

    `name` is the last part of `path`; `tag` is `latest` when the text had neither tag nor digest; `digest` keeps its
    algorithm prefix. Empty strings stand for what is absent.
    """

    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def repository(self) -> str:
        """Registry and path, without tag and digest."""
        return f"{self.registry}/{self.path}" if self.registry else self.path

    @cached_property
    def reference(self) -> str:
        """The full text; the digest wins over the tag."""
        return f"{self.repository}@{self.digest}" if self.digest else self.reference_with_tag

    @property
    def reference_with_tag(self) -> str:
        """The text by tag. Kyverno keeps the colon of an empty tag, and policies see it."""
        return f"{self.repository}:{self.tag}"

    def to_json(self, pointer: str = "") -> dict[str, str]:
        """Return the fields that a policy sees as `images.containers.<name>` (row V-08); absent ones are left out."""
        shown = {
            "name": self.name,
            "path": self.path,
            "reference": self.reference,
            "referenceWithTag": self.reference_with_tag,
        }
        optional = (("registry", self.registry), ("tag", self.tag), ("digest", self.digest))
        shown.update({key: text for key, text in optional if text})
        if pointer:
            shown["jsonPointer"] = pointer
        return shown


@lru_cache(maxsize=4096)
def parse_reference(text: str, defaults: RegistryDefaults = DOCKER_HUB) -> ImageReference:
    """Return the parts of an image reference (row V-09).

    Raise EvaluationError with Kyverno's text when it is none: `bad image: …: repository name must be lowercase`.
    """
    full = _with_registry(text, defaults.registry)
    found = _REFERENCE.fullmatch(full) if len(full) <= _TEXT_LIMIT else None
    if found is None:
        raise _bad_image(full, defaults, _grammar_reason(full))
    registry, path = found["domain"] or "", found["path"]
    tag, digest = found["tag"] or "", found["digest"] or ""
    reason = _digest_reason(digest) if len(path) <= _PATH_LIMIT else _TOO_LONG
    if reason:
        raise _bad_image(full, defaults, reason)
    if not tag and not digest:
        tag = "latest"
    if full != text and not defaults.mutate:
        registry = ""
    return ImageReference(registry, path, tag, digest)


_TOO_LONG = f"repository name must not be more than {_PATH_LIMIT} characters"


def _with_registry(text: str, registry: str) -> str:
    first, slash, _ = text.partition("/")
    is_host = "." in first or ":" in first or first == "localhost" or first.lower() != first
    return text if slash and is_host else f"{registry}/{text}"


def _grammar_reason(full: str) -> str:
    if len(full) <= _TEXT_LIMIT and _REFERENCE.fullmatch(full.lower()):
        return "repository name must be lowercase"
    return "invalid reference format"


def _digest_reason(digest: str) -> str:
    if not digest:
        return ""
    algorithm, _, encoded = digest.partition(":")
    length = _HEX_LENGTHS.get(algorithm)
    if length is None:
        is_plain = algorithm == algorithm.lower()
        return "unsupported digest algorithm" if is_plain else "invalid checksum digest format"
    if len(encoded) != length:
        return "invalid checksum digest length"
    return "" if _LOWER_HEX.issuperset(encoded) else "invalid checksum digest format"


def _bad_image(full: str, defaults: RegistryDefaults, reason: str) -> EvaluationError:
    shown = full if len(full) <= _SHOWN else full[:_SHOWN] + "…"
    mutate = "true" if defaults.mutate else "false"
    return EvaluationError(
        f"bad image: {shown}, defaultRegistry: {defaults.registry}, "
        f"enableDefaultRegistryMutation: {mutate}: {reason}"
    )
