"""`image_normalize`: image references in full, by the grammar of the distribution project (row F-08).

The same rules as row V-09 with upstream's defaults, which is what the function uses there too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang import regex

from .signature import Table, fail

if TYPE_CHECKING:
    from .env import Env

table = Table()

_REGISTRY: Final = "docker.io"
_LABEL: Final = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST: Final = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE: Final = (
    rf"^(?:({_HOST})/)?({_PART}(?:/{_PART})*)(?::([\w][\w.-]{{0,127}}))?(?:@({_DIGEST}))?$"
)
_LONGEST_NAME: Final = 255
_LONGEST: Final = 4_096
_HEX_DIGITS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}


@table.function(
    "image_normalize(string) string", "the image with registry, and with a tag or digest"
)
def image_normalize(_env: Env, image: str) -> str:
    """Return the image reference in full. Raises EvaluationError with upstream's text."""
    full = _with_registry(image)
    found = _groups(full)
    if found is None:
        raise _bad(full, _reason(full))
    host, path, tag, digest = found
    if len(host) + len(path) > _LONGEST_NAME:
        raise _bad(full, f"repository name must not be more than {_LONGEST_NAME} characters")
    if digest:
        _check_digest(full, digest)
    name = f"{host}/{path}" if host else path
    return f"{name}@{digest}" if digest else f"{name}:{tag or 'latest'}"


def _with_registry(image: str) -> str:
    first, slash, _ = image.partition("/")
    is_host = "." in first or ":" in first or first == "localhost" or first.lower() != first
    return image if slash and is_host else f"{_REGISTRY}/{image}"


def _groups(image: str) -> tuple[str, ...] | None:
    if len(image) > _LONGEST:
        return None
    return regex.compile(_REFERENCE).groups(image)


def _reason(image: str) -> str:
    if _groups(image.lower()) is not None:
        return "repository name must be lowercase"
    return "invalid reference format"


def _check_digest(image: str, digest: str) -> None:
    algorithm, _, digits = digest.partition(":")
    if algorithm not in _HEX_DIGITS:
        raise _bad(image, "unsupported digest algorithm")
    if len(digits) != _HEX_DIGITS[algorithm]:
        raise _bad(image, "invalid checksum digest length")
    if digits.lower() != digits:
        raise _bad(image, "invalid checksum digest format")


def _bad(image: str, reason: str) -> Exception:
    return fail(
        "image_normalize",
        f"bad image: {image}, defaultRegistry: {_REGISTRY}, enableDefaultRegistryMutation: true: {reason}",
    )
