"""`kubectl kpolicy install`: everything that a cluster needs, or a part of it, as YAML for `kubectl apply`.

Printed and not applied, so that it can be read, kept in a repository and changed before anything happens.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .flags import Arguments, Flags, Unfit, guarded

if TYPE_CHECKING:
    from pathlib import Path

    from controllers.manifests.choice import Choice

_WHAT = {
    "engine": "everything: CRDs, guards, roles, controllers (the default)",
    "crds": "only the CRDs",
    "controllers": "everything but the CRDs",
    "guards": "only the API server's own policies that guard grants, codes and records",
    "samples": "policies and objects to try; without NAME, the list of samples",
}


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example(
        "kubectl kpolicy install | kubectl apply --server-side -f -",
        "",
        "To see what would change: kubectl kpolicy install | kubectl diff -f -",
        "",
        "what there is to install:",
        *(f"  {name:12} {text}" for name, text in _WHAT.items()),
    )
    flags.add("what", "|".join(_WHAT), nargs="?", choices=tuple(_WHAT), default="engine", metavar="WHAT")  # fmt: skip
    flags.add("name", "name of a sample", nargs="?", default="", metavar="NAME")
    _add_choices(flags)
    only = flags.one_of()
    only.switch("--crds-only", "only the CRDs, like `install crds`")
    only.switch("--skip-crds", "everything but the CRDs, like `install controllers`")
    flags.choice("--dry-run", ("client",), "accepted for compatibility; nothing is ever applied")
    flags.output("yaml", "json")


def _add_choices(flags: Flags) -> None:
    """Add the flags that say what is installed and how; the Helm chart has a value for each."""
    from controllers.manifests.choice import DEFAULT, words_of

    words = words_of()

    def add(names: str, name: str, **more: Any) -> None:
        usual = getattr(DEFAULT, name)
        said = f"{words[name]} ({usual})" if usual else words[name]
        flags.add(names, said, dest=name, default=usual, **more)

    add("-n --namespace", "namespace")
    add("--image", "image")
    add("--replicas", "replicas", type=_count)
    for flag, name in _LISTS.items():
        flags.many(flag, flag[2:].replace("-", "_").upper(), f"{words[name]} (repeatable)", dest=name)  # fmt: skip
    add("--cpu", "cpu", metavar="QUANTITY")
    add("--memory", "memory", metavar="QUANTITY")
    add("--memory-limit", "memory_limit", metavar="QUANTITY")
    add("--priority-class", "priority_class", metavar="NAME")
    for flag, name in _PARTS.items():
        flags.add(flag, f"leave out {words[name]}", dest=name, action="store_false")
    for flag, name in _ADDED.items():
        flags.switch(flag, f"add {words[name]}", dest=name)
    flags.choice("--reports", ("crd", "store"), f"where to keep reports: as custom resources, or in {words['with_report_store']} (crd)")  # fmt: skip
    add("--report-storage", "report_storage", metavar="QUANTITY")
    add("--report-database-secret", "report_database_secret", metavar="NAME")


_LISTS = {"--flag": "flags", "--pull-secret": "pull_secrets"}
_PARTS = {
    "--skip-namespace": "with_namespace",
    "--skip-people-roles": "with_people_roles",
    "--skip-network-policy": "with_network_policy",
    "--skip-disruption-budget": "with_disruption_budget",
    "--skip-topology-spread": "with_topology_spread",
}
"""Flags that leave something out."""
_ADDED = {
    "--service-monitor": "with_service_monitor",
    "--prometheus-rule": "with_prometheus_rule",
    "--dashboard": "with_dashboard",
}
"""Flags that bring something that not every cluster takes."""


@guarded
def run(args: Arguments) -> int:
    """Print the objects, each after those that it needs; raises Misuse."""
    if args.what == "samples":
        return _samples(args.name, args.output)
    if args.name:
        from kubectl_kpolicy.output.misuse import Misuse

        raise Misuse(f"unexpected argument `{args.name}`", help="only samples have names")
    from controllers.manifests.bundle import guarding, installed
    from controllers.manifests.deploy import is_pinned

    choice = _choice(args)
    if args.what == "guards":
        write(guarding(choice.namespace), args.output)
        return 0
    if choice.with_controllers and not is_pinned(choice.image):
        print(f"warning: `{choice.image}` is named by a tag, behind which another image can be put; name it by digest: --image NAME@sha256:DIGEST", file=sys.stderr)  # fmt: skip
    write(installed(choice), args.output)
    return 0


def _choice(args: Arguments) -> Choice:
    """Return what was chosen; a flag that names none of its fields says so itself."""
    from dataclasses import fields

    from controllers.manifests.choice import Choice

    given = {one.name: getattr(args, one.name) for one in fields(Choice) if hasattr(args, one.name)}
    lists = {name: tuple(given[name]) for name in _LISTS.values()}
    parts = {
        "with_kinds": not (args.skip_crds or args.what == "controllers"),
        "with_report_store": args.reports == "store",
        "with_controllers": not (args.crds_only or args.what == "crds"),
    }
    return Choice(**{**given, **lists, **parts})


def _samples(name: str, form: str) -> int:
    """Print the samples of a name, or the names; exit code 6 for one that there is not."""
    from controllers.manifests import SAMPLES

    names = sorted(one.name for one in SAMPLES.iterdir() if one.is_dir())
    if not name:
        print(*names, sep="\n")
        return 0
    if name not in names:
        from engine.errors import EngineError
        from kubectl_kpolicy.output.diagnostics import ExitCode, report

        report(EngineError(f"there are no samples `{name}`", help=f"there are {', '.join(names)}"))
        return ExitCode.GONE
    write([one for file in sorted((SAMPLES / name).glob("*.yaml")) for one in _objects(file)], form)
    return 0


def _objects(file: Path) -> list[dict[str, object]]:
    from engine.lang.yaml import load_all

    return [one.value for one in load_all(file.read_bytes(), file=str(file)) if isinstance(one.value, dict)]  # fmt: skip


def write(objects: list[dict[str, object]], form: str) -> None:
    """Write objects as a stream of YAML documents, or as one List in JSON."""
    from kubectl_kpolicy.output.structured import json_text, list_of, yaml_stream

    if form == "json":
        sys.stdout.write(json_text(list_of(objects)))
    else:
        sys.stdout.write(yaml_stream(objects))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise Unfit(f"`{text}` is not a number of one or more")
    return int(text)
