"""What stands in for the cluster, the registry and the network: the mocks of a test or of a context file, as answers.

Where nothing of the kind was given at all there is nobody to ask, and the answer is absent: then values given by hand
stand in, as in Kyverno's CLI without a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import evaluate
from engine.errors import EngineError
from engine.record import field, record

from .inventory import Inventory
from .names import identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .outside import Outside


@record
class Call:
    """A prepared response to a call; an empty method fits every method."""

    address: str
    method: str
    status: int
    body: Any


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
    outside: Outside | None = None

    def answers(self, lookups: Iterable[evaluate.Lookup]) -> dict[evaluate.Lookup, evaluate.Answer]:
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

    def _knows(self, lookup: evaluate.Lookup, answer: evaluate.Answer) -> bool:
        """Tell whether an answer is somebody's word, and not only that nobody gave one."""
        match lookup:
            case evaluate.ApiCallLookup(method=method, url_path=url):
                return self._prepared(method, url) is not None or answer.value is not None
            case evaluate.ServiceLookup(method=method, url=url):
                return self._prepared(method, url) is not None
            case evaluate.ListLookup():
                return False
        return answer.value is not None

    def answer(self, lookup: evaluate.Lookup) -> evaluate.Answer:
        """Return what is known about `lookup`."""
        match lookup:
            case evaluate.ConfigMapLookup(namespace=namespace, name=name):
                return self._config_map(namespace, name)
            case evaluate.ApiCallLookup(method=method, url_path=url_path):
                return self._call(method, url_path)
            case evaluate.ServiceLookup(method=method, url=url):
                return self._prepared(method, url) or evaluate.Answer.absent()
            case evaluate.ImageLookup(reference=reference):
                return self._image(reference)
            case evaluate.GlobalLookup(name=name):
                return self._entry(name)
            case evaluate.ObjectLookup():
                return evaluate.Answer.found(self._object(lookup))
            case evaluate.ListLookup():
                return evaluate.Answer.found(self._objects(lookup))
            case evaluate.HostLookup(host=host):
                return evaluate.Answer.failed(f"host name `{host}` cannot be looked up here")
            case _:
                return evaluate.Answer.absent()

    def _config_map(self, namespace: str, name: str) -> evaluate.Answer:
        found = self.objects.get("v1", "ConfigMap", namespace, name)
        if found is not None:
            return evaluate.Answer.found(found)
        if not self.has_cluster:
            return evaluate.Answer.absent()
        return evaluate.Answer.failed(f'configmaps "{name}" not found')

    def _prepared(self, method: str, address: str) -> evaluate.Answer | None:
        for call in self.calls:
            if call.address == address and call.method in ("", method):
                if call.status >= 400:
                    return evaluate.Answer.failed(f"HTTP {call.status}")
                return evaluate.Answer.found(call.body)
        return None

    def _call(self, method: str, url_path: str) -> evaluate.Answer:
        prepared = self._prepared(method, url_path)
        if prepared is not None:
            return prepared
        if not self.has_cluster or method != "GET":
            return evaluate.Answer.absent()
        try:
            found = self.objects.at_path(url_path)
        except EngineError as error:
            return evaluate.Answer.failed(error.message)
        if found is None:
            return evaluate.Answer.failed("the server could not find the requested resource")
        return evaluate.Answer.found(found)

    def _image(self, reference: str) -> evaluate.Answer:
        if not self.images:
            return evaluate.Answer.absent()
        found = self.images.get(reference)
        if found is None:
            return evaluate.Answer.failed("image is not in the context file")
        return evaluate.Answer.found(found)

    def _entry(self, name: str) -> evaluate.Answer:
        if not self.entries:
            return evaluate.Answer.absent()
        if name in self.entries:
            return evaluate.Answer.found(self.entries[name])
        entry, _, projection = name.partition(".")
        if entry in self.entries:
            text = f'projection "{projection}" not found in global context entry "{entry}"'
            return evaluate.Answer.failed(text)
        text = f"global context entry `{name}` is not among the prepared ones"
        return evaluate.Answer.failed(text, is_missing=True)

    def _object(self, lookup: evaluate.ObjectLookup) -> Any:
        key = (lookup.api_version, lookup.kind, lookup.namespace, lookup.name)
        for known in (self.targets, self.params, self.objects):
            found = known.get(*key)
            if found is not None:
                return found
        return self.namespaces.get(lookup.name) if lookup.kind == "Namespace" else None

    def _objects(self, lookup: evaluate.ListLookup) -> list[Any]:
        found: list[Any] = []
        for known in (self.targets, self.params, self.objects):
            found += [obj for obj in known.select(lookup) if obj not in found]
        return found


def _with_own(own: evaluate.Answer, asked: evaluate.Answer) -> evaluate.Answer:
    """Return what was asked for, with objects that were given by hand in the place of those of the same identity."""
    if not isinstance(own.value, list) or not isinstance(asked.value, list):
        return asked
    known = {identity(obj) for obj in own.value}
    return evaluate.Answer.found(
        own.value + [obj for obj in asked.value if identity(obj) not in known]
    )
