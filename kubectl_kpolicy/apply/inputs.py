"""What the flags of `apply` and `explain` name, loaded: policies, exceptions, objects, and the setting they meet in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import DocumentError
from engine.model import NOBODY
from engine.record import record, replace
from kubectl_kpolicy.session.sources import ADDRESSES, first_document, read_paths

from .documents import Loaded, objects_of, sort_documents
from .inventory import Inventory
from .mock_cluster import MockCluster
from .namespaces import labels_by_namespace, namespaces_by_name
from .payloads import Payload, read_payloads
from .processor import Setting
from .scope import Scopes
from .user import read_user
from .values import ValueSet, parse_sets, read_values, values_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from datetime import datetime

    from engine.lang.yaml import Document
    from engine.model import Object, UserInfo

    from .outside import Outside

POLICY_EXCEPTION = ("kyverno.io", "PolicyException")


@record
class ApplyInputs:
    """Everything that one run of `apply` works on."""

    loaded: Loaded
    objects: list[Object]
    setting: Setting
    payloads: list[Payload]


def load_inputs(
    args: argparse.Namespace,
    now: datetime,
    *,
    strict: bool = True,
    outside: Outside | None = None,
) -> ApplyInputs:
    """Load what the flags name; raises EngineError for what cannot be read.

    `strict` refuses unknown policy fields; `outside` is the cluster and the registries where the flags name any.
    """
    loaded = sort_documents(read_paths(_places(args, args.policies)), strict=strict)
    if not args.exceptions_within_policies:
        loaded.exceptions.clear()
    documents = _resource_documents(args)
    given = read_paths(_places(args, args.exceptions))
    if args.exceptions_with_resources:
        given += [found for found in documents if _is_exception(found)]
        documents = [found for found in documents if not _is_exception(found)]
    extra = sort_documents(given, strict=strict)
    loaded.exceptions.extend(extra.exceptions)
    loaded.bindings.extend(extra.bindings)
    loaded.problems.extend(extra.problems)
    objects = objects_of(documents)
    namespaces: list[Object] = []
    if outside is not None and args.cluster:
        from .live import live_objects

        objects += live_objects(outside, loaded, args, named=_names(args))
        namespaces = outside.namespaces()
    targets = objects_of(read_paths(_places(args, args.target_resources)))
    scopes = Scopes(
        obj
        for obj in (*objects, *targets, *objects_of(read_paths(split(args.crd_paths))))
        if obj.get("kind") == "CustomResourceDefinition"
    )
    placed = [scopes.placed(obj) for obj in objects]
    params = [scopes.placed(o) for o in objects_of(read_paths(split(args.parameter_resources)))]
    setting = _setting(args, now, [*namespaces, *placed], [scopes.placed(o) for o in targets])
    world = replace(setting.world, params=Inventory(params), outside=outside)
    return ApplyInputs(loaded, placed, replace(setting, world=world), _payloads(args))


def _places(args: argparse.Namespace, paths: Iterable[str]) -> list[str]:
    """Return local paths, with everything that lies elsewhere fetched."""
    listed = split(paths)
    if not any(path.startswith(ADDRESSES) for path in listed):
        return listed
    from .remote import localised

    return localised(listed, getattr(args, "git_branch", ""))


def _names(args: argparse.Namespace) -> list[str]:
    """Return the values of --resource that are no files: with --cluster those are names of objects in it."""
    return [path for path in split(args.resources) if not _is_place(path)]


def _is_place(path: str) -> bool:
    return path.startswith(ADDRESSES) or Path(path).exists()


def _payloads(args: argparse.Namespace) -> list[Payload]:
    """Read the documents that are no objects, each kind by its flag."""
    given = {
        "JSON": args.json_payload,
        "HTTP": args.http_payload,
        "Envoy": args.envoy_payload,
    }
    return [
        payload for mode, paths in given.items() for payload in read_payloads(split(paths), mode)
    ]


def _resource_documents(args: argparse.Namespace) -> list[Document]:
    is_live = getattr(args, "cluster", False)
    paths = [path for path in split(args.resources) if not is_live or _is_place(path)]
    if args.stdin:
        paths.append("-")
    if (
        not paths
        and not is_live
        and not (args.json_payload or args.http_payload or args.envoy_payload)
    ):
        raise DocumentError(
            "no resources given",
            help="name files or folders with --resource, or pipe them with --stdin",
        )
    return read_paths(_places(args, paths))


def split(paths: Iterable[str]) -> list[str]:
    """Split `a.yaml,b.yaml`, as Kyverno's flags do; a path that exists as written stays whole."""
    return [
        part
        for path in paths
        for part in ([path] if "," not in path or Path(path).exists() else path.split(","))
    ]


def _is_exception(document: Document) -> bool:
    value = document.value
    return (
        isinstance(value, dict)
        and (
            str(value.get("apiVersion", "")).rpartition("/")[0],
            value.get("kind"),
        )
        == POLICY_EXCEPTION
    )


def _setting(
    args: argparse.Namespace, now: datetime, objects: list[Object], targets: list[Object]
) -> Setting:
    values = _values(args)
    namespaces = {**namespaces_by_name(objects), **values.namespaces}
    world = MockCluster(targets=Inventory(targets), namespaces=namespaces)
    if args.context_file:
        from .mocks import with_context

        world = with_context(world, first_document(Path(args.context_file), "context file"))
    return Setting(
        now=now,
        seed=args.seed.encode(),
        user=_user(args),
        values=values,
        world=world,
        namespace_labels=labels_by_namespace(objects),
        resolve_values=args.resolve_values,
    )


def _user(args: argparse.Namespace) -> UserInfo:
    if not args.userinfo:
        return NOBODY
    return read_user(first_document(Path(args.userinfo), "user info file"))


def _values(args: argparse.Namespace) -> ValueSet:
    overrides = parse_sets(args.set)
    if not args.values_file:
        return values_of({}, overrides=overrides)
    return read_values(first_document(Path(args.values_file), "values file"), overrides=overrides)
