"""The grammar of image references, as the OCI reference library has it: registry, path, tag and digest, all anchored.

Stands below everything that reads references the way classic policies do (`images.*` variables, image rules and the function
`image_normalize`), so that there is one grammar. CEL's `image()` follows another library and has its own.
"""

from __future__ import annotations

import re

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


def parse(text: str, defaults: RegistryDefaults | None = None) -> tuple[str, str, str, str]:
    """Return registry, path, tag and digest of an image (row V-09); without `defaults` short names are of Docker Hub.

    Raises EvaluationError with Kyverno's text.
    """
    given = defaults or DOCKER_HUB
    full = _with_registry(text, given.registry)
    found = _REFERENCE.fullmatch(full) if len(full) <= _TEXT_LIMIT else None
    if found is None:
        raise _bad_image(full, given, _grammar_reason(full))
    path, tag, digest = found["path"], found["tag"] or "", found["digest"] or ""
    reason = _digest_reason(digest) if len(path) <= _PATH_LIMIT else _TOO_LONG
    if reason:
        raise _bad_image(full, given, reason)
    if not tag and not digest:
        tag = "latest"
    is_completed = full != text and not given.mutate
    return "" if is_completed else found["domain"] or "", path, tag, digest


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
    return EvaluationError(
        f"bad image: {shown}, defaultRegistry: {defaults.registry}, "
        f"enableDefaultRegistryMutation: {'true' if defaults.mutate else 'false'}: {reason}"
    )
