"""`kubectl kpolicy install`: everything that a cluster needs, or a part of it, as YAML for `kubectl apply`.

Printed and not applied, so that it can be read, kept in a repository and changed before anything happens.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

HELP = "print what runs kpolicy in a cluster, for kubectl apply"
_WHAT = {
    "engine": "everything: kinds, guards, roles, controllers (the default)",
    "crds": "only the kinds",
    "controllers": "all but the kinds",
    "samples": "policies and objects to try; without NAME the list of them",
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
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="which samples")
    parser.add_argument(
        "-n", "--namespace", default="kyverno", help="namespace of the controllers (kyverno)"
    )
    parser.add_argument(
        "--image", default="", help="image of the controllers, best by digest: NAME@sha256:DIGEST"
    )
    parser.add_argument("--replicas", type=_count, default=3, help="how many controllers run (3)")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--crds-only", action="store_true", help="only the kinds, as `install crds`")
    only.add_argument("--skip-crds", action="store_true", help="all but the kinds, as `install controllers`")  # fmt: skip
    parser.add_argument("--dry-run", choices=("client",), default="client", help="always so: nothing is applied")  # fmt: skip
    parser.add_argument(
        "-o", "--output", choices=("yaml", "json"), default="yaml", help="format of the output"
    )


def run(args: argparse.Namespace) -> int:
    """Print the objects, each after those that it needs."""
    if args.what == "samples":
        return _samples(args.name, args.output)
    if args.name:
        from kubectl_kpolicy.output.misuse import Misuse
        from kubectl_kpolicy.session import cluster

        def refuse(given: argparse.Namespace) -> int:
            raise Misuse(f"`{given.name}` is one word too many", help="only samples have names")

        return cluster.guarded(refuse, args)
    from controllers.manifests.bundle import Choice, installed
    from controllers.manifests.deploy import IMAGE, is_pinned

    choice = Choice(
        namespace=args.namespace,
        image=args.image or IMAGE,
        replicas=args.replicas,
        with_kinds=not (args.skip_crds or args.what == "controllers"),
        with_controllers=not (args.crds_only or args.what == "crds"),
    )
    if choice.with_controllers and not is_pinned(choice.image):
        print(f"warning: `{choice.image}` is named by a tag, behind which another image can be put; name it by digest: --image NAME@sha256:DIGEST", file=sys.stderr)  # fmt: skip
    write(installed(choice), args.output)
    return 0


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
