"""`kubectl kpolicy install`: everything that a cluster needs, or a part of it, as YAML for `kubectl apply`.

Printed and not applied, so that it can be read, kept in a repository and changed before anything happens.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from controllers.manifests.choice import Choice

_WHAT = {
    "engine": "everything: CRDs, guards, roles, controllers (the default)",
    "crds": "only the CRDs",
    "controllers": "everything but the CRDs",
    "guards": "only the API server's own policies that guard grants, codes and records",
    "samples": "policies and objects to try; without NAME, the list of samples",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.epilog = "\n".join([
        "example: kubectl kpolicy install | kubectl apply --server-side -f -",
        "",
        "To see what would change: kubectl kpolicy install | kubectl diff -f -",
        "",
        "what there is to install:",
        *(f"  {name:12} {text}" for name, text in _WHAT.items()),
    ])  # fmt: skip
    parser.add_argument("what", nargs="?", choices=tuple(_WHAT), default="engine", metavar="WHAT", help="|".join(_WHAT))  # fmt: skip
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="name of a sample")
    _add_choices(parser)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--crds-only", action="store_true", help="only the CRDs, like `install crds`")
    only.add_argument("--skip-crds", action="store_true", help="everything but the CRDs, like `install controllers`")  # fmt: skip
    parser.add_argument("--dry-run", choices=("client",), default="client", help="accepted for compatibility; nothing is ever applied")  # fmt: skip
    parser.add_argument(
        "-o", "--output", choices=("yaml", "json"), default="yaml", help="output format"
    )


def _add_choices(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what is installed and how; the Helm chart has a value for each."""
    from controllers.manifests.choice import DEFAULT, words_of

    words = words_of()

    def add(flag: str, name: str, *short: str, **more: Any) -> None:
        usual = getattr(DEFAULT, name)
        said = f"{words[name]} ({usual})" if usual else words[name]
        parser.add_argument(*short, flag, dest=name, default=usual, help=said, **more)

    add("--namespace", "namespace", "-n")
    add("--image", "image")
    add("--replicas", "replicas", type=_count)
    for flag, name in _LISTS.items():
        parser.add_argument(flag, dest=name, action="append", default=[], metavar=flag[2:].replace("-", "_").upper(), help=f"{words[name]} (repeatable)")  # fmt: skip
    add("--cpu", "cpu", metavar="QUANTITY")
    add("--memory", "memory", metavar="QUANTITY")
    add("--memory-limit", "memory_limit", metavar="QUANTITY")
    add("--priority-class", "priority_class", metavar="NAME")
    for flag, name in _PARTS.items():
        parser.add_argument(flag, dest=name, action="store_false", help=f"leave out {words[name]}")
    for flag, name in _ADDED.items():
        parser.add_argument(flag, dest=name, action="store_true", help=f"add {words[name]}")
    parser.add_argument(
        "--reports",
        choices=("crd", "store"),
        default="crd",
        help=f"where to keep reports: as custom resources, or in {words['with_report_store']} (crd)",
    )
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


def run(args: argparse.Namespace) -> int:
    """Print the objects, each after those that it needs."""
    if args.what == "samples":
        return _samples(args.name, args.output)
    if args.name:
        from kubectl_kpolicy.output.misuse import Misuse
        from kubectl_kpolicy.session import cluster

        def refuse(given: argparse.Namespace) -> int:
            raise Misuse(f"unexpected argument `{given.name}`", help="only samples have names")

        return cluster.guarded(refuse, args)
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


def _choice(args: argparse.Namespace) -> Choice:
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
    import argparse

    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of one or more")
    return int(text)
