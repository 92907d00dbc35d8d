"""`kubectl kpolicy create`: a first version of a file to fill in, printed or written (row K-11)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .flags import Arguments, Flags, Verbs

if TYPE_CHECKING:
    from engine.model import Object

EXAMPLES = {
    "exception": 'create exception legacy -n shop --policy-rules "require-labels,check-team" --any "kind=Pod,name=legacy-*"',
    "test": "create test -p policy.yaml -r pod.yaml --pass require-labels,check-team,nginx,default,Pod",
    "values": "create values -g request.mode=dev -n prod,env=prod --rule require-labels,check-team,team=a",
    "user-info": "create user-info -u ann -g developers --cluster-role view",
    "cluster-role": "create cluster-role scan-nodes --controllers reports-controller -r nodes --verbs list,watch",
}

_RESULTS = ("pass", "fail", "skip")
_ABOUT = {"cluster-role": "a ClusterRole that gives controllers more rights"}


def add_arguments(flags: Flags) -> None:
    """Add a parser for each kind of file; the flags are upstream's."""
    kinds = Verbs(flags, EXAMPLES["exception"], dest="kind", title="kinds")
    for name, add in (
        ("exception", _exception),
        ("test", _test),
        ("values", _values),
        ("user-info", _user_info),
        ("cluster-role", _cluster_role),
    ):
        about = _ABOUT.get(name, f"a new {name} file")
        kind = kinds.add(name, f"print {about}", cluster=False, example=EXAMPLES[name])
        kind.text("-o --output", "PATH", "write to this file instead of printing")
        add(kind)


def _exception(flags: Flags) -> None:
    flags.add("name", "name of the exception", metavar="NAME")
    flags.add("-n --namespace", "namespace of the exception", default="")
    flags.many("--policy-rules", "POLICY,RULE,…", "policy and rules to except from", required=True)
    flags.many("--any", "KEY=VALUE,…", "resource filter; at least one of these must match")
    flags.many("--all", "KEY=VALUE,…", "resource filter; all of these must match")
    flags.add("-b --background", "also apply in background scans", type=_boolean, nargs="?", const=True, default=True)  # fmt: skip


def _test(flags: Flags) -> None:
    flags.add("name", "name of the test (kyverno-test)", nargs="?", default="kyverno-test", metavar="NAME")  # fmt: skip
    flags.many("-p --policy", "PATH", "files with policies")
    flags.many("-r --resource", "PATH", "files with resources")
    flags.text("-f --values-file", "PATH", "values file with variables")
    for result in _RESULTS:
        flags.many(f"--{result}", "POLICY,RULE,RESOURCE[,NS[,KIND]]", f"a result that must be {result}")  # fmt: skip


def _values(flags: Flags) -> None:
    flags.many("-g --global", "KEY=VALUE", "a value for every policy", dest="global_values")
    flags.many("-n --ns-selector", "NAMESPACE,KEY=VALUE,…", "labels of a namespace")
    flags.many("--rule", "POLICY,RULE,KEY=VALUE,…", "values for a rule")
    flags.many("--resource", "POLICY,RESOURCE,KEY=VALUE,…", "values for a resource")


def _user_info(flags: Flags) -> None:
    flags.text("-u --username", "NAME", "who asks")
    flags.many("-g --group", "NAME", "a group of the user")
    flags.many("-r --role", "NAMESPACE:NAME", "a Role bound to the user")
    flags.many("-c --cluster-role", "NAME", "a ClusterRole bound to the user")


def _cluster_role(flags: Flags) -> None:
    flags.add("name", "name of the ClusterRole", metavar="NAME")
    flags.many("--controllers", "NAME,…", "controllers that get the rights (background-controller)", default=None)  # fmt: skip
    flags.many("-g --api-groups", "GROUP,…", "API groups (the core group)", default=None)
    flags.many("-r --resources", "RESOURCE,…", "resources, by their plural names", required=True)
    flags.many("--verbs", "VERB,…", "verbs that are allowed", required=True)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_boolean.__name__ = "truth value"


def run(args: Arguments) -> int:
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


def _draft(args: Arguments) -> Object:
    from kubectl_kpolicy.session import drafts

    match args.kind:
        case "exception":
            return drafts.exception(args.name, args.namespace, references=args.policy_rules, any_of=args.any, all_of=args.all,
                background=args.background)  # fmt: skip
        case "test":
            expected = [(result, text) for result in _RESULTS for text in getattr(args, result)]
            return drafts.test_file(args.name, policies=args.policy, resources=args.resource,
                values=args.values_file, expected=expected)  # fmt: skip
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
