"""A Client that keeps objects in memory: for tests of whatever is written against `Client`.

It has what controllers rely on: resource versions, conflicts, preconditions, finalizers, generated names, selectors, pages,
watches with bookmarks and expired versions. It knows no schemas, no admission and no rights. For the real behaviour
there is the sandbox; this one starts in no time and fails when told to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from controllers.kube import kinds as known
from controllers.kube.client import APPLY, JSON_PATCH, MERGE, Client, Event, ListPage
from controllers.kube.errors import AlreadyExists, Conflict, Gone, Invalid, KubeError, NotFound
from controllers.kube.kinds import Kind
from controllers.kube.paths import checked_path, field_tests, parse_labels
from tests.clock import ManualClock

from .memory import Memory, Table, copied, json_patched, key_of, merged
from .served import discovery_at

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from controllers.kube.clock import Clock
    from engine.model import Json, Object


WELL_KNOWN = tuple(
    one
    for one in vars(known).values()
    if isinstance(one, Kind) and one.group not in ("authorization.k8s.io", "policies.kyverno.io")
)
"""Kinds that the project itself reads or writes, but for those of policies in CEL."""

VALIDATING_POLICIES, NAMESPACED_VALIDATING_POLICIES = known.CEL_POLICIES[:2]


@dataclass(frozen=True, slots=True)
class Call:
    """One request that was made: the method of Client, the resource, and the object's place."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    body: Json = None
    dry_run: bool = False


class FakeClient(Client):
    """See `client.Client`.

    `calls` lists what was asked; `fail` makes coming calls fail; `expire` and `disconnect` do to watches what servers do.
    `answers` are fixed answers of `raw` by path, `reviews` those of `review` by kind.
    """

    def __init__(
        self, *objects: Object, kinds: Iterable[Kind] = (), clock: Clock | None = None
    ) -> None:
        self.clock: Clock = clock or ManualClock()
        self.calls: list[Call] = []
        self.answers: dict[str, Json] = {}
        self.reviews: dict[str, Callable[[Mapping[str, Any]], Object]] = {}
        self.is_closed = False
        self._kinds = list(dict.fromkeys([*kinds, *WELL_KNOWN]))
        self._memory = Memory(self.clock)
        self._faults: list[tuple[str, str, KubeError]] = []
        self._streams = 0
        for obj in objects:
            self.put(obj)

    def __repr__(self) -> str:
        count = sum(len(table.objects) for table in self._memory.tables.values())
        return f"<FakeClient {count} objects at version {self._memory.last}>"

    # What tests do to it.

    def put(self, obj: Object) -> Object:
        """Store an object as if somebody else had written it; return it as stored."""
        table = self._table(self.kind_of(obj))
        key = key_of(obj)
        return self._memory.store(table, copied(obj), None, old=table.objects.get(key))

    def take(self, kind: Kind, name: str, namespace: str = "") -> None:
        """Remove an object as if somebody else had deleted it."""
        self._memory.remove(self._table(kind), (namespace, name))

    def stored(self, kind: Kind) -> list[Object]:
        """Return all objects of a kind, sorted by namespace and name."""
        table = self._table(kind)
        return [copied(table.objects[key]) for key in sorted(table.objects)]

    def fail(self, verb: str, error: KubeError, *, times: int = 1, resource: str = "") -> None:
        """Make the next calls of a verb (`*`: any) fail, those for one resource only when it is named."""
        self._faults += [(verb, resource, error)] * times

    def expire(self, kind: Kind) -> None:
        """Forget past events: watches from older versions are told 410."""
        table = self._table(kind)
        table.events.clear()
        table.oldest = self._memory.next()
        self.disconnect()

    def disconnect(self) -> None:
        """End all watches, as servers do from time to time."""
        self._streams += 1
        self._memory.wake()

    def bookmark(self, kind: Kind) -> None:
        """Send a bookmark to the watches of a kind."""
        metadata = {"resourceVersion": str(self._memory.next())}
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        self._memory.announce(self._table(kind), Event("BOOKMARK", obj), None)

    def kind_of(self, obj: Object) -> Kind:
        """Return the kind of an object; one that was never mentioned is made up in the usual way."""
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        name = str(obj.get("kind", ""))
        for kind in self._kinds:
            if (kind.group, kind.version, kind.kind) == (group, version, name):
                return kind
        is_namespaced = bool((obj.get("metadata") or {}).get("namespace"))
        kind = Kind(group, version, f"{name.lower()}s", name, is_namespaced)
        self._kinds.append(kind)
        return kind

    # What a Client does.

    async def get(
        self, kind: Kind, name: str, namespace: str = "", *, subresource: str = ""
    ) -> Object:
        """Return one object; raises NotFound."""
        self._called("get", kind, namespace, name)
        return copied(self._memory.one(self._table(kind), name, namespace))

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        resume: str = "",
        metadata_only: bool = False,
        sort_by: str = "",
        only: Sequence[tuple[str, str]] = (),
    ) -> ListPage:
        """Return one page of objects; `only` those at some places, as a report store does."""
        self._called("list", kind, namespace)
        table = self._table(kind)
        fits = _selection(namespace, label_selector, field_selector)
        found = [
            obj
            for key, obj in sorted(table.objects.items())
            if fits(obj) and (not only or key in only)
        ]
        start, version = 0, self._memory.last
        if resume:
            start, version = (int(part) for part in resume.split("/"))
            if version < table.oldest:
                raise Gone("the provided continue parameter is too old", status=410)
        end = start + limit if limit else len(found)
        items = [_shown(obj, metadata_only) for obj in found[start:end]]
        left = max(len(found) - end, 0)
        return ListPage(items, str(version), f"{end}/{version}" if left else "", left)

    async def watch(
        self,
        kind: Kind,
        resource_version: str = "",
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 300,
        metadata_only: bool = False,
    ) -> AsyncIterator[Event]:
        """Yield events after a version, up to those before `disconnect`; raises Gone after `expire`."""
        self._called("watch", kind, namespace)
        table, stream = self._table(kind), self._streams
        seen = int(resource_version or 0)
        fits = _selection(namespace, label_selector, field_selector)
        if seen < table.oldest:
            raise Gone("too old resource version", status=410, reason="Expired")
        while True:
            changed, ends = table.changed, stream != self._streams
            for version, event, old in [one for one in table.events if one[0] > seen]:
                seen = version
                shown = _seen_through(event, old, fits)
                if shown is not None:
                    yield Event(shown.type, _shown(shown.object, metadata_only))
            if ends:
                return
            await changed.wait()

    async def create(
        self, kind: Kind, obj: Object, *, dry_run: bool = False, subresource: str = ""
    ) -> Object:
        """Create an object; raises AlreadyExists."""
        made = {"apiVersion": kind.api_version, "kind": kind.kind, **copied(obj)}
        metadata = made["metadata"] = dict(made.get("metadata") or {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{self._memory.last:05d}"
        namespace, name = key_of(made)
        self._called("create", kind, namespace, name, made, dry_run=dry_run)
        if subresource:
            return made
        if not name:
            raise Invalid("name or generateName is required", status=422, reason="Invalid")
        table = self._table(kind)
        if (namespace, name) in table.objects:
            raise AlreadyExists(
                f'{kind} "{name}" already exists', status=409, reason="AlreadyExists"
            )
        if metadata.pop("resourceVersion", ""):
            raise Invalid("resourceVersion should not be set on objects to be created", status=400)
        return self._memory.store(table, made, None, dry_run=dry_run)

    async def update(
        self, kind: Kind, obj: Object, *, subresource: str = "", dry_run: bool = False
    ) -> Object:
        """Replace an object; raises Conflict when it changed meanwhile."""
        namespace, name = key_of(obj)
        self._called("update", kind, namespace, name, copied(obj), dry_run=dry_run)
        table = self._table(kind)
        old = self._memory.one(table, name, namespace)
        return self._memory.replace(table, old, copied(obj), subresource, dry_run)

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        patch: Json,
        *,
        content_type: str = MERGE,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        """Change an object; strategic and apply patches are taken for merge patches."""
        self._called("patch", kind, namespace, name, copied(patch), dry_run=dry_run)
        table = self._table(kind)
        old = table.objects.get((namespace, name))
        if old is None and content_type == APPLY:
            made = {"apiVersion": kind.api_version, "kind": kind.kind, **copied(patch)}
            return self._memory.store(table, made, None, dry_run=dry_run)
        old = self._memory.one(table, name, namespace)
        if content_type == JSON_PATCH:
            made = json_patched(patch, old)
        else:
            made = merged(copied(old), copied(patch))
            if not (patch.get("metadata") or {}).get("resourceVersion"):
                made["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        return self._memory.replace(table, old, made, subresource, dry_run)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        propagation: str = "",
        dry_run: bool = False,
    ) -> None:
        """Delete an object, with `uid` only that very one; finalizers keep it."""
        self._called("delete", kind, namespace, name, {"uid": uid, "propagation": propagation}, dry_run=dry_run)  # fmt: skip
        table = self._table(kind)
        old = self._memory.one(table, name, namespace)
        if uid and uid != old["metadata"]["uid"]:
            raise Conflict(
                f"the UID in the precondition ({uid}) does not match the UID in record "
                f"({old['metadata']['uid']})",
                status=409,
                reason="Conflict",
            )
        if dry_run:
            return
        if old["metadata"].get("finalizers"):
            made = copied(old)
            made["metadata"].setdefault("deletionTimestamp", self._memory.stamp())
            self._memory.store(table, made, old)
            return
        self._memory.remove(table, (namespace, name))

    async def raw(
        self, method: str, path: str, body: Json = None, *, limit: int = 0, timeout: float = 0
    ) -> Json:
        """Answer from `answers`, discovery of the known kinds, or the objects at a path."""
        self._called("raw", None, "", path, body)
        checked_path(path)
        if path in self.answers:
            answer = self.answers[path]
            if isinstance(answer, KubeError):
                raise answer
            return copied(answer)
        parts = urlsplit(path)
        found = discovery_at(parts.path, self._kinds)
        if found is None and method == "GET":
            found = await self._at(parts.path, parse_qs(parts.query))
        if found is None:
            raise NotFound("the server could not find the requested resource", status=404)
        return found

    async def review(self, kind: Kind, spec: Mapping[str, Any], namespace: str = "") -> Object:
        """Answer from `reviews`; without one everything is allowed."""
        self._called("review", kind, namespace, "", dict(spec))
        decide = self.reviews.get(kind.kind)
        return decide(spec) if decide else {"allowed": True}

    async def close(self) -> None:
        """End all watches."""
        self.is_closed = True
        self.disconnect()

    # How it keeps objects.

    def _called(self, verb: str, kind: Kind | None, namespace: str = "", name: str = "", body: Json = None, *, dry_run: bool = False) -> None:  # fmt: skip
        resource = kind.plural if kind else ""
        self.calls.append(Call(verb, resource, namespace, name, body, dry_run))
        for index, (wanted, where, error) in enumerate(self._faults):
            if wanted in ("*", verb) and where in ("", resource):
                del self._faults[index]
                raise error

    def _table(self, kind: Kind) -> Table:
        """Return the objects of a resource: all versions of a group share them."""
        if kind not in self._kinds:
            self._kinds.append(kind)
        return self._memory.table(kind)

    async def _at(self, path: str, query: Mapping[str, Sequence[str]]) -> Json:
        """Return the object or the list at a path of the API; None where no kind has it."""
        for kind in self._kinds:
            if not path.startswith(kind.root + "/"):
                continue
            rest = path[len(kind.root) + 1 :].split("/")
            namespace = ""
            if len(rest) > 2 and rest[0] == "namespaces" and kind.namespaced:
                namespace, rest = rest[1], rest[2:]
            if rest[0] != kind.plural or len(rest) > 2:
                continue
            if len(rest) == 2:
                return copied(self._memory.one(self._table(kind), rest[1], namespace))
            page = await self.list(
                kind,
                namespace,
                label_selector=query.get("labelSelector", [""])[0],
                field_selector=query.get("fieldSelector", [""])[0],
            )
            metadata = {"resourceVersion": page.resource_version}
            return {
                "apiVersion": kind.api_version,
                "kind": f"{kind.kind}List",
                "metadata": metadata,
                "items": list(page.items),
            }
        return None


def _shown(obj: Object, metadata_only: bool) -> Object:
    made: Object = copied(obj)
    if metadata_only:
        return {key: made.get(key) for key in ("apiVersion", "kind", "metadata")}
    return made


def _selection(namespace: str, labels: str, fields: str) -> Callable[[Object], bool]:
    fits_labels, tests = parse_labels(labels), field_tests(fields)

    def fits(obj: Object) -> bool:
        metadata = obj.get("metadata") or {}
        if namespace and metadata.get("namespace") != namespace:
            return False
        return fits_labels(metadata.get("labels") or {}) and all(one.holds(obj) for one in tests)

    return fits


def _seen_through(event: Event, old: Object | None, fits: Callable[[Object], bool]) -> Event | None:
    """Return how a watch with a selection sees an event: objects enter and leave the selection.

    One that leaves is told as it was before, under the version of the change, as API servers do.
    """
    if event.type == "BOOKMARK":
        return event
    had = old is not None and fits(old)
    has = event.type != "DELETED" and fits(event.object)
    if had and has:
        return Event("MODIFIED", event.object)
    if has:
        return Event("ADDED", event.object)
    if not had or old is None:
        return None
    if event.type == "DELETED":
        return event
    version = event.object["metadata"]["resourceVersion"]
    return Event("DELETED", {**old, "metadata": {**old["metadata"], "resourceVersion": version}})
