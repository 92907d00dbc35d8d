"""`kubectl kpolicy apply`: policies on objects from files or of a cluster (rows K-02 and K-03)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .flags import request_of

if TYPE_CHECKING:
    import argparse


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its flags; they are upstream's where upstream has them."""
    parser = sub.add_parser(
        "apply",
        description="Apply policies to resources from files or a cluster and show what they decide.",
        epilog="example: kubectl kpolicy apply policies/ --resource pod.yaml --explain",
    )
    parser.add_argument(
        "policies",
        nargs="+",
        metavar="POLICY",
        help="files, folders, git repositories or URLs; - reads standard input",
    )
    add_inputs(parser)
    _add_outputs(parser)
    _add_verdicts(parser)
    _add_cluster(parser)
    _add_unused(parser)
    parser.set_defaults(run=run)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name what policies meet: resources, exceptions, values, user, context."""
    add = parser.add_argument
    add("-r", "--resource", "--resources", dest="resources", action="append", default=[],
        metavar="PATH", help="files or folders with resources")  # fmt: skip
    add("--target-resource", "--target-resources", dest="target_resources", action="append",
        default=[], metavar="PATH", help="target objects of mutate-existing rules")  # fmt: skip
    add("-i", "--stdin", action="store_true", help="read resources from standard input")
    add("-s", "--set", action="append", default=[], metavar="A=B,…", help="variables")
    add("-f", "--values-file", default="", metavar="FILE", help="values file with variables")
    add("-u", "--userinfo", default="", metavar="FILE", help="file with user, groups and roles")
    add("--context-file", default="", metavar="FILE", help="file with objects and image data")
    add("-e", "--exception", "--exceptions", dest="exceptions", action="append", default=[],
        metavar="PATH", help="policy exceptions")  # fmt: skip
    add("--exceptions-with-resources", "--exceptions-within-resources", dest="exceptions_with_resources",
        action="store_true", help="take exceptions from the resource files")  # fmt: skip
    add(
        "--exceptions-within-policies",
        action="store_true",
        help="take exceptions from the policy files",
    )
    add("--json", "--json-paths", dest="json_payload", action="append", default=[],
        metavar="PATH", help="documents for policies with evaluation mode JSON")  # fmt: skip
    add("--http-payload", action="append", default=[], metavar="PATH",
        help="the same for mode HTTP")  # fmt: skip
    add("--envoy-payload", action="append", default=[], metavar="PATH",
        help="the same for mode Envoy")  # fmt: skip
    add("--parameter-resource", dest="parameter_resources", action="append", default=[],
        metavar="PATH", help="objects that policies take as params")  # fmt: skip
    add("--crd-paths", "--crd-path", dest="crd_paths", action="append", default=[], metavar="PATH",
        help="CustomResourceDefinitions of custom kinds")  # fmt: skip
    add("--validate", choices=("strict", "warn", "ignore"), default="strict",
        help="how to treat unknown policy fields")  # fmt: skip
    add("--resolve-values", action="store_true",
        help="also resolve `{{ … }}` inside values, as Kyverno does")  # fmt: skip
    add("--seed", default="", help="seed of random(), for repeatable runs")


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-o", "--output", default="", metavar="FORMAT|PATH",
        help="table, wide, json, yaml, name, junit, sarif, github or markdown; or where to write mutated objects")  # fmt: skip
    add("-t", "--table", action="store_true", help="show results in a table")
    add("--detailed-results", action="store_true", help="show messages in the table")
    add("--diff", action="store_true", help="show mutations as a unified diff")
    add("--explain", action="store_true", help="explain the decision of every rule")
    add("-w", "--watch", action="store_true", help="run again whenever an input file changes")
    add("-p", "--policy-report", action="store_true", help="print a policy report")
    add(
        "--output-format",
        choices=("yaml", "json"),
        default="yaml",
        help="format of reports and exceptions",
    )
    add("--generate-exceptions", action="store_true", help="generate exceptions for failed results")
    add(
        "--generated-exception-ttl",
        default="720h",
        metavar="DURATION",
        help="time to live of generated exceptions",
    )
    add("--remove-color", action="store_true", help="never use colours")


def _add_verdicts(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--fail-on",
        choices=("fail", "warn", "error", "none"),
        default="fail",
        help="lowest result that sets exit code 1",
    )
    add("--audit-warn", action="store_true", help="count failures of audit rules as warnings")
    add(
        "--warn-exit-code",
        type=int,
        default=0,
        metavar="N",
        help="exit code when there are warnings",
    )
    add("--warn-no-pass", action="store_true", help="use --warn-exit-code also when nothing passed")
    add(
        "--continue-on-fail",
        action="store_true",
        help="accepted for compatibility; a failure never stops a run",
    )
    add(
        "--continue-on-error",
        action="store_true",
        help="do not fail the run for policies that cannot be loaded",
    )


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-c", "--cluster", action="store_true",
        help="look at the objects of a cluster, and ask it what policies ask; --resource then also takes names")  # fmt: skip
    add("-n", "--namespace", default="", help="with --cluster, only objects in this namespace")
    add("--cluster-wide-resources", action="store_true",
        help="with --namespace, also cluster-scoped objects")  # fmt: skip
    add("--kubeconfig", default="", metavar="FILE", help="kubeconfig to use")
    add("--context", default="", metavar="NAME", help="context of the kubeconfig")
    add("--registry", action="store_true", help="query image registries, with docker's credentials")
    add("-b", "--git-branch", default="", metavar="NAME", help="branch of git repositories")


def _add_unused(parser: argparse.ArgumentParser) -> None:
    """Add upstream's flags that have no meaning here."""
    import argparse

    add = parser.add_argument
    for name in ("--username", "--password"):
        add(name, default="", help=argparse.SUPPRESS)
    add("--concurrent", type=int, default=1, help=argparse.SUPPRESS)
    add("--batch-size", type=int, default=100, help=argparse.SUPPRESS)
    add("--show-performance", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Apply the policies, print the results, return the exit code."""
    from kubectl_kpolicy.session.collector import collector_off

    if args.diff and (args.output or args.table or args.policy_report or args.generate_exceptions):
        print("error: --diff cannot be combined with other outputs", file=sys.stderr)
        print("help: leave out -o, -t, -p and --generate-exceptions", file=sys.stderr)
        return 2
    with collector_off():
        from kubectl_kpolicy.apply.inputs import ApplyRequest
        from kubectl_kpolicy.apply.session import run_command

        request = request_of(ApplyRequest, args)
        if not args.watch:
            return run_command(request, sys.stdout, sys.stderr)
        from kubectl_kpolicy.session.rerunning import rerun

        return rerun(
            lambda: run_command(request, sys.stdout, sys.stderr), request.named, sys.stderr
        )
