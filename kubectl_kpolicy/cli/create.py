"""`kubectl kpolicy create`: a first version of a file to fill in, printed or written (row K-11)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from engine.model import Object

EXAMPLES = {
    "exception": 'create exception legacy -n shop --policy-rules "require-labels,check-team" --any "kind=Pod,name=legacy-*"',
    "test": "create test -p policy.yaml -r pod.yaml --pass require-labels,check-team,nginx,default,Pod",
    "values": "create values -g request.mode=dev -n prod,env=prod --rule require-labels,check-team,team=a",
    "user-info": "create user-info -u ann -g developers --cluster-role view",
    "cluster-role": "create cluster-role scan-nodes --controllers reports-controller -r nodes --verbs list,watch",
}

_ABOUT = {"cluster-role": "a ClusterRole that gives controllers more rights"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a parser for each kind of file; the flags are upstream's."""
    from .parsing import add_global_flags

    parser.epilog = f"example: kubectl kpolicy {EXAMPLES['exception']}"
    kinds = parser.add_subparsers(title="kinds", dest="kind", metavar="KIND", required=True)
    for name, add in (
        ("exception", _exception),
        ("test", _test),
        ("values", _values),
        ("user-info", _user_info),
        ("cluster-role", _cluster_role),
    ):
        about = _ABOUT.get(name, f"a new {name} file")
        kind = kinds.add_parser(name, help=about, description=f"Print {about}.",
            epilog=f"example: kubectl kpolicy {EXAMPLES[name]}")  # fmt: skip
        add_global_flags(kind, again=True)
        kind.add_argument(
            "-o",
            "--output",
            default="",
            metavar="PATH",
            help="write to this file instead of printing",
        )
        add(kind)


def _exception(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", metavar="NAME", help="name of the exception")
    add("-n", "--namespace", default="", help="namespace of the exception")
    add(
        "--policy-rules",
        action="append",
        default=[],
        required=True,
        metavar="POLICY,RULE,…",
        help="policy and rules to except from",
    )
    add(
        "--any",
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="resource filter; at least one of these must match",
    )
    add(
        "--all",
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="resource filter; all of these must match",
    )
    add(
        "-b",
        "--background",
        type=_boolean,
        nargs="?",
        const=True,
        default=True,
        help="also apply in background scans",
    )


def _test(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "name",
        nargs="?",
        default="kyverno-test",
        metavar="NAME",
        help="name of the test (kyverno-test)",
    )
    add("-p", "--policy", action="append", default=[], metavar="PATH", help="files with policies")
    add(
        "-r", "--resource", action="append", default=[], metavar="PATH", help="files with resources"
    )
    add("-f", "--values-file", default="", metavar="PATH", help="values file with variables")
    for result in ("pass", "fail", "skip"):
        add(f"--{result}", action="append", default=[], metavar="POLICY,RULE,RESOURCE[,NS[,KIND]]",
            help=f"a result that must be {result}")  # fmt: skip


def _values(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "-g",
        "--global",
        dest="global_values",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a value for every policy",
    )
    add(
        "-n",
        "--ns-selector",
        action="append",
        default=[],
        metavar="NAMESPACE,KEY=VALUE,…",
        help="labels of a namespace",
    )
    add(
        "--rule",
        action="append",
        default=[],
        metavar="POLICY,RULE,KEY=VALUE,…",
        help="values for a rule",
    )
    add(
        "--resource",
        action="append",
        default=[],
        metavar="POLICY,RESOURCE,KEY=VALUE,…",
        help="values for a resource",
    )


def _user_info(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-u", "--username", default="", metavar="NAME", help="who asks")
    add("-g", "--group", action="append", default=[], metavar="NAME", help="a group of the user")
    add(
        "-r",
        "--role",
        action="append",
        default=[],
        metavar="NAMESPACE:NAME",
        help="a Role bound to the user",
    )
    add(
        "-c",
        "--cluster-role",
        action="append",
        default=[],
        metavar="NAME",
        help="a ClusterRole bound to the user",
    )


def _cluster_role(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", metavar="NAME", help="name of the ClusterRole")
    add("--controllers", action="append", metavar="NAME,…",
        help="controllers that get the rights (background-controller)")  # fmt: skip
    add(
        "-g", "--api-groups", action="append", metavar="GROUP,…", help="API groups (the core group)"
    )
    add("-r", "--resources", action="append", required=True, metavar="RESOURCE,…",
        help="resources, by their plural names")  # fmt: skip
    add("--verbs", action="append", required=True, metavar="VERB,…", help="verbs that are allowed")


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_boolean.__name__ = "truth value"


def run(args: argparse.Namespace) -> int:
    """Draft the file and print or write it."""
    from kubectl_kpolicy.output.structured import yaml_text

    text = yaml_text(_draft(args))
    if not args.output:
        sys.stdout.write(text)
        return 0
    from pathlib import Path

    Path(args.output).write_text(text, encoding="utf-8")
    if not args.quiet:
        print(f"written to {args.output}", file=sys.stderr)
    return 0


def _draft(args: argparse.Namespace) -> Object:
    from kubectl_kpolicy.session import drafts

    match args.kind:
        case "exception":
            return drafts.exception(args.name, args.namespace, references=args.policy_rules, any_of=args.any, all_of=args.all,
                background=args.background)  # fmt: skip
        case "test":
            expected = [
                (result, text)
                for result in ("pass", "fail", "skip")
                for text in getattr(args, result)
            ]
            return drafts.test_file(
                args.name,
                policies=args.policy,
                resources=args.resource,
                values=args.values_file,
                expected=expected,
            )
        case "values":
            return drafts.values_file(global_values=args.global_values, namespaces=args.ns_selector, rules=args.rule,
                resources=args.resource)  # fmt: skip
        case "cluster-role":
            return drafts.cluster_role(args.name, controllers=args.controllers or ["background-controller"],
                api_groups=args.api_groups or [""], resources=args.resources, verbs=args.verbs)  # fmt: skip
        case _:
            return drafts.user_info(
                args.username, groups=args.group, roles=args.role, cluster_roles=args.cluster_role
            )
