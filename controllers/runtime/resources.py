"""Where the objects of a kind are kept, as a rule writes the kind: for webhook configurations and native policies alike (row A-32)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.lang import wildcard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controllers.kube import Discovery, Kind
    from engine.match import KindFilter

ANY: Final = "*"
NAMESPACED: Final = "Namespaced"
_EPHEMERAL: Final = "pods/ephemeralcontainers"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A group, version and scope, whose resources one rule may name."""

    group: str
    version: str
    scope: str


def resources_of(
    wanted: KindFilter, discovery: Discovery, *, preferred: bool = False
) -> Iterator[tuple[Place, str]]:
    """Yield where a kind is kept: groups and versions as the server has them, wildcards as they are.

    With `preferred`, in one version of each resource.
    """
    if wanted.kind == ANY and not _is_partly_wild(wanted.group, wanted.version):
        place = Place(wanted.group, wanted.version, ANY)
        yield from ((place, resource) for resource in _of_everything(wanted))
        return
    for kind in discovery.matching(wanted.group, wanted.version, wanted.kind, preferred=preferred):
        scope = NAMESPACED if kind.namespaced else ANY
        place = Place(kind.group, kind.version, scope)
        yield from ((place, resource) for resource in _of_kind(kind, wanted.subresource))


def _is_partly_wild(*parts: str) -> bool:
    return any(part != ANY and wildcard.has_wildcard(part) for part in parts)


def _of_everything(wanted: KindFilter) -> tuple[str, ...]:
    if not wanted.subresource:
        return (ANY, _EPHEMERAL) if wanted.group in (ANY, "") else (ANY,)
    return (f"{ANY}/{wanted.subresource}",)


def _of_kind(kind: Kind, subresource: str) -> Iterator[str]:
    if not subresource or subresource == ANY:
        yield kind.plural
        if (kind.group, kind.plural) == ("", "pods"):
            yield _EPHEMERAL
    if subresource and not wildcard.has_wildcard(subresource):
        yield f"{kind.plural}/{subresource}"
    elif subresource:
        found = (one for one in kind.subresources if wildcard.match(subresource, one))
        yield from (f"{kind.plural}/{one}" for one in found)
