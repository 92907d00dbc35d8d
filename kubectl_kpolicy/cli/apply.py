"""`kubectl kpolicy apply`: policies on objects from files or of a cluster (rows K-02 and K-03)."""

from __future__ import annotations

import sys

from .flags import UNTOLD, Arguments, Flags, request_of


def add_arguments(flags: Flags) -> None:
    """Add the command's flags; they are upstream's where upstream has them."""
    flags.parser.description = "Apply policies to resources from files or a cluster and show what they decide."  # fmt: skip
    flags.example("kubectl kpolicy apply policies/ --resource pod.yaml --explain")
    flags.add("policies", "files, folders, git repositories or URLs; - reads standard input", nargs="+", metavar="POLICY")  # fmt: skip
    add_inputs(flags)
    _add_outputs(flags)
    _add_verdicts(flags)
    _add_cluster(flags)
    for name in ("--username", "--password"):
        flags.add(name, UNTOLD, default="")
    flags.add("--concurrent", UNTOLD, type=int, default=1)
    flags.add("--batch-size", UNTOLD, type=int, default=100)
    flags.switch("--show-performance", UNTOLD)


def add_inputs(flags: Flags) -> None:
    """Add the flags that name what policies meet: resources, exceptions, values, user, context."""
    flags.many("-r --resource --resources", "PATH", "files or folders with resources", dest="resources")  # fmt: skip
    flags.many("--target-resource --target-resources", "PATH", "target objects of mutate-existing rules", dest="target_resources")  # fmt: skip
    flags.switch("-i --stdin", "read resources from standard input")
    flags.many("-s --set", "A=B,…", "variables")
    flags.text("-f --values-file", "FILE", "values file with variables")
    flags.text("-u --userinfo", "FILE", "file with user, groups and roles")
    flags.text("--context-file", "FILE", "file with objects and image data")
    flags.many("-e --exception --exceptions", "PATH", "policy exceptions", dest="exceptions")
    flags.switch("--exceptions-with-resources --exceptions-within-resources", "take exceptions from the resource files", dest="exceptions_with_resources")  # fmt: skip
    flags.switch("--exceptions-within-policies", "take exceptions from the policy files")
    flags.many("--json --json-paths", "PATH", "documents for policies with evaluation mode JSON", dest="json_payload")  # fmt: skip
    flags.many("--http-payload", "PATH", "the same for mode HTTP")
    flags.many("--envoy-payload", "PATH", "the same for mode Envoy")
    flags.many("--parameter-resource", "PATH", "objects that policies take as params", dest="parameter_resources")  # fmt: skip
    flags.many("--crd-paths --crd-path", "PATH", "CustomResourceDefinitions of custom kinds", dest="crd_paths")  # fmt: skip
    flags.choice("--validate", ("strict", "warn", "ignore"), "how to treat unknown policy fields")
    flags.switch("--resolve-values", "also resolve `{{ … }}` inside values, as Kyverno does")
    flags.add("--seed", "seed of random(), for repeatable runs", default="")


def _add_outputs(flags: Flags) -> None:
    flags.text("-o --output", "FORMAT|PATH", "table, wide, json, yaml, name, junit, sarif, github or markdown; or where to write mutated objects")  # fmt: skip
    flags.switch("-t --table", "show results in a table")
    flags.switch("--detailed-results", "show messages in the table")
    flags.switch("--diff", "show mutations as a unified diff")
    flags.switch("--explain", "explain the decision of every rule")
    flags.switch("-w --watch", "run again whenever an input file changes")
    flags.switch("-p --policy-report", "print a policy report")
    flags.choice("--output-format", ("yaml", "json"), "format of reports and exceptions")
    flags.switch("--generate-exceptions", "generate exceptions for failed results")
    flags.text("--generated-exception-ttl", "DURATION", "time to live of generated exceptions", default="720h")  # fmt: skip
    flags.switch("--remove-color", "never use colours")


def _add_verdicts(flags: Flags) -> None:
    levels = ("fail", "warn", "error", "none")
    flags.choice("--fail-on", levels, "lowest result that sets exit code 1")
    flags.switch("--audit-warn", "count failures of audit rules as warnings")
    flags.text("--warn-exit-code", "N", "exit code when there are warnings", type=int, default=0)
    flags.switch("--warn-no-pass", "use --warn-exit-code also when nothing passed")
    flags.switch("--continue-on-fail", "accepted for compatibility; a failure never stops a run")
    flags.switch("--continue-on-error", "do not fail the run for policies that cannot be loaded")


def _add_cluster(flags: Flags) -> None:
    flags.switch("-c --cluster", "look at the objects of a cluster, and ask it what policies ask; --resource then also takes names")  # fmt: skip
    flags.add("-n --namespace", "with --cluster, only objects in this namespace", default="")
    flags.switch("--cluster-wide-resources", "with --namespace, also cluster-scoped objects")
    flags.text("--kubeconfig", "FILE", "kubeconfig to use")
    flags.text("--context", "NAME", "context of the kubeconfig")
    flags.switch("--registry", "query image registries, with docker's credentials")
    flags.text("-b --git-branch", "NAME", "branch of git repositories")


def run(args: Arguments) -> int:
    """Apply the policies, print the results, return the exit code."""
    from engine.collector import collector_off

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

        return rerun(lambda: run_command(request, sys.stdout, sys.stderr), request.named, sys.stderr)  # fmt: skip
