"""Which kinds a server has: asked of its lists of groups and resources, and found by address, resource, name or wildcards.

`resources_of` finds where the objects of a kind are kept that a rule names, for webhook configurations and native policies alike
(row A-32).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.lang import wildcard

from .errors import Gone, KubeError, NotFound
from .kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engine.match import KindFilter

    from .client import Client


class Discovery:
    """The kinds that a server has, in the order of its preference: groups as listed, versions from best to worst.

    Nothing is asked before `refresh`; lookups on a Discovery that was never refreshed find nothing. Groups whose server
    does not answer are named in `missing` and keep the kinds they had.
    """

    def __init__(self, client: Client, kinds: Iterable[Kind] = ()) -> None:
        self._client = client
        self._kinds = tuple(kinds)
        self.missing: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    async def refresh(self) -> None:
        """Ask the server; raises KubeError when not even its list of groups can be had."""
        lists = await _resource_lists(self._client)
        found: list[Kind] = []
        missing = []
        for group_version, resources in lists:
            if resources is None:
                missing.append(group_version)
                found += [kind for kind in self._kinds if kind.api_version == group_version]
            else:
                found += _kinds_of(group_version, resources)
        self._kinds, self.missing = tuple(found), tuple(missing)

    def find(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind that objects with this `apiVersion` and `kind` belong to."""
        return next(
            (k for k in self._kinds if k.kind == kind and k.api_version == api_version), None
        )

    def of_resource(self, group: str, plural: str, version: str = "") -> Kind | None:
        """Return a kind by its resource name, in the given or the preferred version."""
        return next(
            (
                k
                for k in self._kinds
                if (k.group, k.plural) == (group, plural) and version in ("", k.version)
            ),
            None,
        )

    def named(self, text: str) -> Kind | None:
        """Return the kind that a person means: kind, plural, singular or short name, `name.group` too."""
        name, _, group = text.lower().partition(".")
        for kind in self._kinds:
            spellings = (kind.kind.lower(), kind.plural, kind.singular, *kind.short_names)
            if name in spellings and group in ("", kind.group):
                return kind
        return None

    def matching(
        self, group: str, version: str, kind: str, *, preferred: bool = False
    ) -> list[Kind]:
        """Return the kinds that fit wildcards (row A-32); `preferred` leaves one version of each resource.

        An empty group is the core group, as in a Kind; `*` stands for all.
        """
        found = [
            one
            for one in self._kinds
            if wildcard.match(group, one.group)
            and wildcard.match(version, one.version)
            and wildcard.match(kind, one.kind)
        ]
        if not preferred:
            return found
        return list({(one.group, one.plural): one for one in reversed(found)}.values())[::-1]


ResourceLists = list[tuple[str, "Sequence[dict[str, Any]] | None"]]


async def _resource_lists(client: Client) -> ResourceLists:
    """Return (group/version, resources) of everything; resources are None where their server does not answer."""
    core = await client.raw("GET", "/api")
    versions = [*(core.get("versions") or ()), *await _group_versions(client)]
    lists: ResourceLists = []
    for group_version in versions:
        root = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        try:
            answer = await client.raw("GET", root)
        except (NotFound, Gone):
            continue
        except KubeError as error:
            if error.status < 500:
                raise
            lists.append((group_version, None))
        else:
            lists.append((group_version, answer.get("resources") or ()))
    return lists


async def _group_versions(client: Client) -> list[str]:
    """Return `group/version` of all groups, the preferred version of each first."""
    found: list[str] = []
    for group in (await client.raw("GET", "/apis")).get("groups") or ():
        versions = [str(one["groupVersion"]) for one in group.get("versions") or ()]
        best = (group.get("preferredVersion") or {}).get("groupVersion")
        found += [version for version in versions if version == best]
        found += [version for version in versions if version != best]
    return found


def _kinds_of(group_version: str, resources: Iterable[dict[str, Any]]) -> Iterator[Kind]:
    """Yield the kinds of one list, each with the names of its subresources."""
    group, _, version = group_version.rpartition("/")
    listed = list(resources)
    below: dict[str, list[str]] = {}
    for one in listed:
        plural, slash, subresource = str(one.get("name", "")).partition("/")
        if slash:
            below.setdefault(plural, []).append(subresource)
    for one in listed:
        plural = str(one.get("name", ""))
        if "/" in plural:
            continue
        yield Kind(
            group,
            version,
            plural,
            str(one.get("kind", "")),
            bool(one.get("namespaced")),
            tuple(one.get("verbs") or ()),
            tuple(below.get(plural, ())),
            str(one.get("singularName") or ""),
            tuple(one.get("shortNames") or ()),
            tuple(one.get("categories") or ()),
        )


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
