"""What the flags of `apply` and `explain` name, loaded: policies, exceptions, objects, and the setting they meet in."""

from __future__ import annotations

from os.path import exists, isdir, isfile
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO

from engine.errors import DocumentError, EngineError, Location
from engine.lang import wildcard
from engine.model import NOBODY, Object, Policy
from engine.record import record, replace
from kubectl_kpolicy.output.diagnostics import report
from kubectl_kpolicy.session import sources

from .documents import Loaded, expanded, objects_of, sort_documents, without_strays
from .inventory import Inventory
from .mock_cluster import MockCluster
from .names import identity, resource_path
from .payloads import Payload, read_payloads
from .processor import Processor, Setting
from .scope import Scopes, labels_by_namespace, namespaces_by_name
from .values import ValueSet, parse_sets, read_user, read_values, values_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from engine.lang.yaml import Document

    from .outside import Outside

POLICY_EXCEPTION = ("kyverno.io", "PolicyException")


@record
class ApplyRequest:
    """What is applied to what, and how it is shown: what the flags of `apply` say, by their names."""

    policies: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    target_resources: tuple[str, ...] = ()
    stdin: bool = False
    set: tuple[str, ...] = ()
    values_file: str = ""
    userinfo: str = ""
    context_file: str = ""
    exceptions: tuple[str, ...] = ()
    exceptions_with_resources: bool = False
    exceptions_within_policies: bool = False
    json_payload: tuple[str, ...] = ()
    http_payload: tuple[str, ...] = ()
    envoy_payload: tuple[str, ...] = ()
    parameter_resources: tuple[str, ...] = ()
    crd_paths: tuple[str, ...] = ()
    validate: str = "strict"
    resolve_values: bool = False
    seed: str = ""
    cluster: bool = False
    namespace: str = ""
    cluster_wide_resources: bool = False
    kubeconfig: str = ""
    context: str = ""
    registry: bool = False
    git_branch: str = ""
    output: str = ""
    table: bool = False
    detailed_results: bool = False
    diff: bool = False
    explain: bool = False
    policy_report: bool = False
    output_format: str = "yaml"
    generate_exceptions: bool = False
    generated_exception_ttl: str = "720h"
    remove_color: bool = False
    color: str = "auto"
    quiet: bool = False
    fail_on: str = "fail"
    audit_warn: bool = False
    warn_exit_code: int = 0
    warn_no_pass: bool = False
    continue_on_error: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        """Everything that is read: files, folders, addresses."""
        single = tuple(filter(None, (self.values_file, self.userinfo, self.context_file)))
        many = (
            self.policies,
            self.resources,
            self.target_resources,
            self.exceptions,
            self.json_payload,
            self.http_payload,
            self.envoy_payload,
            self.parameter_resources,
            self.crd_paths,
        )
        return (*(path for paths in many for path in paths), *single)

    @property
    def has_files(self) -> bool:
        """Whether the objects come from files."""
        return bool(self.resources or self.stdin or self.has_payloads)

    @property
    def has_payloads(self) -> bool:
        """Whether there are documents that are no objects."""
        return bool(self.json_payload or self.http_payload or self.envoy_payload)


@record
class ApplyInputs:
    """Everything that one run of `apply` works on."""

    loaded: Loaded
    objects: list[Object]
    setting: Setting
    payloads: list[Payload]
    places: Mapping[str, Location] = MappingProxyType({})
    """Where objects stand in files, by `namespace/Kind/name`; only for formats that tell it."""

    def processor(
        self,
        policies: Sequence[Policy],
        *,
        trace: bool = False,
        kinds: Collection[str] | None = None,
    ) -> Processor:
        """Return what applies some of the policies, with all exceptions and bindings, in the setting."""
        exceptions, bindings = self.loaded.exceptions, self.loaded.bindings
        return Processor(
            policies, exceptions, bindings=bindings, setting=self.setting, trace=trace, kinds=kinds
        )


def load_inputs(
    flags: ApplyRequest, now: datetime, *, strict: bool = True, outside: Outside | None = None
) -> ApplyInputs:
    """Load what the flags name; raises EngineError for what cannot be read.

    `strict` refuses unknown policy fields; `outside` is the cluster and the registries where the flags name any.
    """
    loaded, documents = _loaded(flags, strict=strict)
    objects = objects_of(documents)
    namespaces: list[Object] = []
    if outside is not None and flags.cluster:
        objects += live_objects(
            outside,
            loaded,
            namespace=flags.namespace,
            named=_names(flags),
            wide=flags.cluster_wide_resources,
        )
        namespaces = outside.namespaces()
    targets = objects_of(sources.read_paths(_places(flags, flags.target_resources)))
    kinds = objects_of(without_strays(sources.read_paths(split(flags.crd_paths)), loaded.strays))
    scopes = Scopes(
        obj for obj in (*objects, *targets, *kinds) if obj.get("kind") == "CustomResourceDefinition"
    )
    placed = [scopes.placed(obj) for obj in objects]
    params = [
        scopes.placed(o) for o in objects_of(sources.read_paths(split(flags.parameter_resources)))
    ]
    setting = _setting(flags, now, [*namespaces, *placed], [scopes.placed(o) for o in targets])
    world = replace(setting.world, params=Inventory(params), outside=outside)
    places: dict[str, Location] = {}
    if flags.output in ("sarif", "junit", "github"):
        places = {resource_path(scopes.placed(value)): Location(found.file, found.line) for found, value in expanded(documents)}  # fmt: skip
    return ApplyInputs(loaded, placed, replace(setting, world=world), _payloads(flags), places)


def _loaded(flags: ApplyRequest, *, strict: bool) -> tuple[Loaded, list[Document]]:
    """Return the policies and exceptions that the flags name, and the documents of objects."""
    loaded = sort_documents(sources.read_paths(_places(flags, flags.policies)), strict=strict)
    if not flags.exceptions_within_policies:
        loaded.exceptions.clear()
    documents = without_strays(_resource_documents(flags), loaded.strays)
    given = sources.read_paths(_places(flags, flags.exceptions))
    if flags.exceptions_with_resources:
        given += [found for found in documents if _is_exception(found)]
        documents = [found for found in documents if not _is_exception(found)]
    extra = sort_documents(given, strict=strict)
    loaded.exceptions.extend(extra.exceptions)
    loaded.bindings.extend(extra.bindings)
    loaded.problems.extend(extra.problems)
    return loaded, documents


def _places(flags: ApplyRequest, paths: Iterable[str]) -> list[str]:
    return brought(split(paths), flags.git_branch)


def brought(paths: list[str], branch: str) -> list[str]:
    """Return local paths, with everything that lies elsewhere fetched; raises DocumentError."""
    if not any(path.startswith(sources.ADDRESSES) for path in paths):
        return paths
    from .remote import localised

    return localised(paths, branch)


def check_named(flags: ApplyRequest) -> None:
    """Raise DocumentError for what the flags name and cannot be read, before a cluster is asked for the rest."""
    names = _names(flags) if flags.cluster else ()
    paths = [path for path in split(flags.named) if path not in names]
    sources.check_there(paths)
    # What is read is kept; a pipe could be read only once.
    sources.read_paths(path for path in paths if isfile(path) or isdir(path))


def _names(flags: ApplyRequest) -> list[str]:
    """Return the values of --resource that are no files: with --cluster those are names of objects in it."""
    return [path for path in split(flags.resources) if not _is_place(path)]


def _is_place(path: str) -> bool:
    return path.startswith(sources.ADDRESSES) or exists(path)


def policies_named(loaded: Loaded, name: str, err: TextIO | None = None) -> list[Policy]:
    """Return the policies whose names fit; warns where none does, because nothing is judged then."""
    found = [one for one in loaded.policies if wildcard.match(name, one.key)]
    if not found:
        named = "" if name == "*" else f" called `{name}`"
        report(EngineError(f"there are no policies{named} to judge by"), err=err, word="warning")
    return found


def _payloads(flags: ApplyRequest) -> list[Payload]:
    """Read the documents that are no objects, each kind by its flag."""
    given = {"JSON": flags.json_payload, "HTTP": flags.http_payload, "Envoy": flags.envoy_payload}
    return [
        payload for mode, paths in given.items() for payload in read_payloads(split(paths), mode)
    ]


def _resource_documents(flags: ApplyRequest) -> list[Document]:
    is_live = flags.cluster
    paths = [path for path in split(flags.resources) if not is_live or _is_place(path)]
    if flags.stdin:
        paths.append("-")
    if not (paths or is_live or flags.has_payloads):
        raise DocumentError(
            "no resources given",
            help="name files or folders with --resource, or pipe them with --stdin",
        )
    return sources.read_paths(_places(flags, paths))


def split(paths: Iterable[str]) -> list[str]:
    """Split `a.yaml,b.yaml`, as Kyverno's flags do; a path that exists as written stays whole."""
    return [
        part
        for path in paths
        for part in ([path] if "," not in path or exists(path) else path.split(","))
    ]


def _is_exception(document: Document) -> bool:
    value = document.value
    if not isinstance(value, dict):
        return False
    group = str(value.get("apiVersion", "")).rpartition("/")[0]
    return (group, value.get("kind")) == POLICY_EXCEPTION


def _setting(
    flags: ApplyRequest, now: datetime, objects: list[Object], targets: list[Object]
) -> Setting:
    values = _values(flags)
    namespaces = {**namespaces_by_name(objects), **values.namespaces}
    world = MockCluster(targets=Inventory(targets), namespaces=namespaces)
    if flags.context_file:
        from .mocks import with_context

        world = with_context(
            world, sources.first_document(sources.placed(flags.context_file), "context file")
        )
    user = NOBODY
    if flags.userinfo:
        user = read_user(sources.first_document(sources.placed(flags.userinfo), "user info file"))
    return Setting(
        now=now,
        seed=flags.seed.encode(),
        user=user,
        values=values,
        world=world,
        namespace_labels=labels_by_namespace(objects),
        resolve_values=flags.resolve_values,
    )


def _values(flags: ApplyRequest) -> ValueSet:
    overrides = parse_sets(flags.set)
    if not flags.values_file:
        return values_of({}, overrides=overrides)
    return read_values(
        sources.first_document(sources.placed(flags.values_file), "values file"),
        overrides=overrides,
    )


def live_objects(
    outside: Outside, loaded: Loaded, *, namespace: str, named: Sequence[str], wide: bool
) -> list[Object]:
    """Return the objects that policies or cleanup policies can match, sorted; what cannot be listed becomes a problem.

    With a namespace those of that namespace, and where it is `wide` those that live in none as well.
    """
    from engine.evaluate import PolicySet

    policies = PolicySet.compile(loaded.policies, ())
    cleaned = {kind for policy in loaded.cleanups for kind in _kinds_of(policy.match)}

    def is_wanted(kind: str) -> bool:
        return bool(policies.for_kind(kind)) or kind in cleaned or "*" in cleaned

    found = outside.objects(is_wanted, namespace=namespace, names=named, wide=wide or not namespace)
    loaded.problems.extend(outside.problems)
    return sorted(found, key=identity)


def _kinds_of(block: object) -> list[str]:
    """Return the kinds that a match block names, without group and version; one with a wildcard counts as all."""
    found: list[str] = []
    if isinstance(block, dict):
        for key, value in block.items():
            if key == "kinds" and isinstance(value, list):
                names = (str(one).rpartition("/")[2] for one in value)
                found += ["*" if "*" in name or "?" in name else name for name in names]
            else:
                found += _kinds_of(value)
    elif isinstance(block, list):
        for one in block:
            found += _kinds_of(one)
    return found
