"""Test files found below paths, and everything a test names, loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError, Location
from engine.model import NOBODY, Object, UserInfo
from engine.record import record, replace
from kubectl_kpolicy.apply import mocks
from kubectl_kpolicy.apply.documents import Loaded, objects_of, sort_documents
from kubectl_kpolicy.apply.inventory import Inventory
from kubectl_kpolicy.apply.mock_cluster import MockCluster
from kubectl_kpolicy.apply.names import identity
from kubectl_kpolicy.apply.payloads import Payload, read_payloads
from kubectl_kpolicy.apply.scope import Scopes, namespaces_by_name
from kubectl_kpolicy.apply.shapes import check_shape
from kubectl_kpolicy.apply.values import NO_VALUES, ValueSet, read_user, read_values, values_of
from kubectl_kpolicy.session.sources import files_at, first_document, read_file, read_paths

from .format import TestCase, read_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


FILE_NAME = "kyverno-test.yaml"


@record
class Bench:
    """One test case with everything it names, ready to run."""

    case: TestCase
    loaded: Loaded
    objects: tuple[Object, ...]
    payloads: tuple[Payload, ...]
    targets: tuple[Object, ...]
    scopes: Scopes
    values: ValueSet
    user: UserInfo
    world: MockCluster


@record
class Broken:
    """Why a test file cannot be read."""

    error: EngineError


def find_cases(paths: Iterable[Path], file_name: str = FILE_NAME) -> Iterator[TestCase | Broken]:
    """Yield the test cases of files, and of all files called `file_name` below folders, sorted by path."""
    for path in paths:
        for file in sorted(path.rglob(file_name)) if path.is_dir() else [path]:
            try:
                documents = read_file(file)
            except EngineError as error:
                yield Broken(error)
                continue
            for number, document in enumerate(documents):
                try:
                    yield read_case(file, document, number)
                except EngineError as error:
                    yield Broken(error)


def load_case(case: TestCase) -> Bench:
    """Load what a test names; raises EngineError for a file that cannot be read or is not what it should be."""
    policy_documents = [*read_paths(case.paths("policies")), *read_paths(case.paths("exceptions"))]
    loaded = sort_documents(policy_documents)
    cluster, definitions = _cluster(case)
    scopes = Scopes([*definitions, *(obj for obj in loaded.objects if is_definition(obj))])
    targets = _placed(case.paths("targetResources"), scopes)
    objects = _unique(_placed(case.paths("resources"), scopes))
    values = _values(case)
    world = _world(case, [scopes.placed(obj) for obj in cluster], targets, scopes)
    return Bench(
        case=case,
        loaded=loaded,
        objects=objects,
        payloads=tuple(_payloads(case)),
        targets=targets,
        scopes=scopes,
        values=values,
        user=_user(case),
        world=replace(
            world,
            params=Inventory(_placed(case.paths("paramResources"), scopes)),
            namespaces={**namespaces_by_name(objects), **values.namespaces},
        ),
    )


def _payloads(case: TestCase) -> list[Payload]:
    keys = {
        "jsonPayload": "JSON",
        "jsonPayloads": "JSON",
        "httpPayloads": "HTTP",
        "envoyPayloads": "Envoy",
    }
    return [
        payload for key, mode in keys.items() for payload in read_payloads(case.paths(key), mode)
    ]


def is_definition(obj: Object) -> bool:
    """Return whether an object defines a custom kind."""
    return obj.get("kind") == "CustomResourceDefinition"


def _placed(paths: Iterable[Path], scopes: Scopes) -> tuple[Object, ...]:
    return tuple(scopes.placed(obj) for obj in objects_of(read_paths(paths)))


def _unique(objects: Iterable[Object]) -> tuple[Object, ...]:
    """Leave out objects whose identity came before, as Kyverno's test command does."""
    found: dict[tuple[str, ...], Object] = {}
    for obj in objects:
        found.setdefault(identity(obj), obj)
    return tuple(found.values())


def _values(case: TestCase) -> ValueSet:
    for path in case.paths("variables"):
        return read_values(first_document(path, "values file"))
    inline = case.spec.get("values")
    return values_of(inline) if inline else NO_VALUES


def _user(case: TestCase) -> UserInfo:
    for path in case.paths("userinfo"):
        return read_user(first_document(path, "user info file"))
    return NOBODY


def _cluster(case: TestCase) -> tuple[list[Object], list[Object]]:
    """Return the objects and the custom kinds of the cluster resources of a test."""
    objects: list[Object] = []
    definitions: list[Object] = []
    for path in case.paths("clusterResources"):
        for document in read_file(path):
            file = check_shape(document, mocks.CLUSTER_FILE, what="cluster resources")
            spec = file.get("spec") or {}
            objects += spec.get("resources") or ()
            crds = [path.parent / crd for crd in spec.get("crds") or ()]
            definitions += objects_of(read_paths(crds))
    return objects, definitions


def _world(
    case: TestCase, cluster: list[Object], targets: tuple[Object, ...], scopes: Scopes
) -> MockCluster:
    sources = [
        scopes.placed(obj)
        for expectation in case.expectations
        if expectation.clone_source
        for file in files_at(case.folder / expectation.clone_source)
        for obj in objects_of(read_file(file))
    ]
    entries = case.spec.get("globalContextEntries") or ()
    files = {
        name: objects_of(read_file(case.folder / name))
        for entry in entries
        for name in entry.get("resourceFiles") or ()
    }
    try:
        prepared = mocks.prepared_entries(entries, files)
    except EngineError as error:
        error.at = Location(str(case.path))
        raise
    world = MockCluster(
        targets=Inventory([*targets, *sources]),
        calls=mocks.prepared_calls(case.spec.get("apiCallResponses") or ()),
        entries=prepared,
    )
    if cluster:
        world = mocks.with_objects(world, cluster)
    for path in case.paths("context"):
        world = mocks.with_context(world, first_document(path, "context file"))
    return world
