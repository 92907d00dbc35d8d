"""What stands in for the cluster, the registry and the network: the mocks of a test or of a context file, as answers.

Where nothing of the kind was given at all there is nobody to ask, and the answer is absent: then values given by hand
stand in, as in Kyverno's CLI without a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import EngineError
from engine.evaluate import (
    Answer,
    ApiCallLookup,
    ConfigMapLookup,
    GlobalLookup,
    HostLookup,
    ImageLookup,
    ListLookup,
    ObjectLookup,
    ServiceLookup,
)
from engine.record import field, record

from .inventory import Inventory
from .names import identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.evaluate import Lookup


@record
class Call:
    """A prepared response to a call; an empty method fits every method."""

    address: str
    method: str
    status: int
    body: Any


class Resolver(Protocol):
    """Somebody who can really be asked: a cluster, a registry."""

    def resolve(self, lookups: Sequence[Lookup]) -> Mapping[Lookup, Answer]:
        """Return an answer to each of `lookups`."""


@record
class MockCluster:
    """Everything that policies may ask for outside the object.

    `objects` are known to stand in the cluster, `targets` may be changed by mutate-existing rules and copied by generate
    rules. `params` are parameters of policies, `namespaces` the Namespaces that objects live in. `has_cluster` says that what is not among `objects` does not exist; otherwise it is unknown.
    """

    objects: Inventory = field(default_factory=Inventory)
    targets: Inventory = field(default_factory=Inventory)
    images: Mapping[str, Any] = field(default_factory=dict)
    calls: Sequence[Call] = ()
    entries: Mapping[str, Any] = field(default_factory=dict)
    has_cluster: bool = False
    params: Inventory = field(default_factory=Inventory)
    namespaces: Mapping[str, Any] = field(default_factory=dict)
    outside: Resolver | None = None

    def answers(self, lookups: Iterable[Lookup]) -> dict[Lookup, Answer]:
        """Return an answer to each of `lookups`: what was given by hand, else what is outside, where that may be asked."""
        found = {lookup: self.answer(lookup) for lookup in lookups}
        if self.outside is None:
            return found
        unknown = [lookup for lookup, answer in found.items() if not self._knows(lookup, answer)]
        asked = self.outside.resolve(unknown) if unknown else {}
        for lookup, answer in asked.items():
            if not answer.is_absent:
                found[lookup] = _with_own(found[lookup], answer)
        return found

    def _knows(self, lookup: Lookup, answer: Answer) -> bool:
        """Tell whether an answer is somebody's word, and not only that nobody gave one."""
        match lookup:
            case ApiCallLookup(method=method, url_path=url):
                return self._prepared(method, url) is not None or answer.value is not None
            case ServiceLookup(method=method, url=url):
                return self._prepared(method, url) is not None
            case ListLookup():
                return False
        return answer.value is not None

    def answer(self, lookup: Lookup) -> Answer:
        """Return what is known about `lookup`."""
        match lookup:
            case ConfigMapLookup(namespace=namespace, name=name):
                return self._config_map(namespace, name)
            case ApiCallLookup(method=method, url_path=url_path):
                return self._call(method, url_path)
            case ServiceLookup(method=method, url=url):
                return self._prepared(method, url) or Answer.absent()
            case ImageLookup(reference=reference):
                return self._image(reference)
            case GlobalLookup(name=name):
                return self._entry(name)
            case ObjectLookup():
                return Answer.found(self._object(lookup))
            case ListLookup():
                return Answer.found(self._objects(lookup))
            case HostLookup(host=host):
                return Answer.failed(f"host name `{host}` cannot be looked up here")
            case _:
                return Answer.absent()

    def _config_map(self, namespace: str, name: str) -> Answer:
        found = self.objects.get("v1", "ConfigMap", namespace, name)
        if found is not None:
            return Answer.found(found)
        return self._unknown(f'configmaps "{name}" not found')

    def _unknown(self, error: str) -> Answer:
        return Answer.failed(error) if self.has_cluster else Answer.absent()

    def _prepared(self, method: str, address: str) -> Answer | None:
        for call in self.calls:
            if call.address == address and call.method in ("", method):
                if call.status >= 400:
                    return Answer.failed(f"HTTP {call.status}")
                return Answer.found(call.body)
        return None

    def _call(self, method: str, url_path: str) -> Answer:
        prepared = self._prepared(method, url_path)
        if prepared is not None:
            return prepared
        if not self.has_cluster or method != "GET":
            return Answer.absent()
        try:
            found = self.objects.at_path(url_path)
        except EngineError as error:
            return Answer.failed(error.message)
        if found is None:
            return Answer.failed("the server could not find the requested resource")
        return Answer.found(found)

    def _image(self, reference: str) -> Answer:
        found = self.images.get(reference)
        if found is None:
            return (
                Answer.absent()
                if not self.images
                else Answer.failed("image is not in the context file")
            )
        return Answer.found(found)

    def _entry(self, name: str) -> Answer:
        if not self.entries:
            return Answer.absent()
        found = self.entries.get(name)
        if found is None:
            return Answer.failed(f"global context entry `{name}` is not among the prepared ones")
        return Answer.found(found)

    def _object(self, lookup: ObjectLookup) -> Any:
        key = (lookup.api_version, lookup.kind, lookup.namespace, lookup.name)
        for known in (self.targets, self.params, self.objects):
            found = known.get(*key)
            if found is not None:
                return found
        return self.namespaces.get(lookup.name) if lookup.kind == "Namespace" else None

    def _objects(self, lookup: ListLookup) -> list[Any]:
        found: list[Any] = []
        for known in (self.targets, self.params, self.objects):
            found += [obj for obj in known.select(lookup) if obj not in found]
        return found


def _with_own(own: Answer, asked: Answer) -> Answer:
    """Return what was asked for, with objects that were given by hand in the place of those of the same identity."""
    if not isinstance(own.value, list) or not isinstance(asked.value, list):
        return asked
    known = {identity(obj) for obj in own.value}
    return Answer.found(own.value + [obj for obj in asked.value if identity(obj) not in known])
