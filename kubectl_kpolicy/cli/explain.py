"""`kubectl kpolicy explain`: why policies decide as they do about objects, step by step, of a cluster or in files."""

from __future__ import annotations

import sys

from .apply import add_inputs
from .flags import Arguments, Flags, guarded, request_of


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.parser.description = "Explain step by step what policies decide about resources."
    flags.example(
        "kubectl kpolicy explain deploy/web -n shop",
        "example: kubectl kpolicy explain Pod/web --policies policies/ --resource pod.yaml",
        "",
        "Without --policies, the policies and exceptions of the cluster apply.",
    )
    flags.of_cluster()
    flags.add("names", "objects in the resource files, or in the cluster where there are none", nargs="*", metavar="KIND/NAME")  # fmt: skip
    flags.many("-p --policies", "PATH", "files or folders with policies, instead of the cluster's")
    add_inputs(flags)
    # INVARIANT: `-f` and `-s` are FILE and SERVER of kubectl here, because this command speaks to clusters
    flags.many("-f --filename", "FILE", "the same as --resource", dest="resources")
    flags.text("--values-file", "FILE", "values file with variables")
    flags.text("-s --server", "URL", "address of the server")
    flags.many("--set", "A=B,…", "variables")
    flags.text("--policy", "NAME", "only this policy (wildcards)", default="*")
    flags.text("--rule", "NAME", "only this rule (wildcards)", default="*")
    flags.text("--as-of", "TIME", "decide as of this instant, RFC 3339 (now by default)")
    flags.switch("--trace", "print values in full, however long")


@guarded
def run(args: Arguments) -> int:
    """Print the explanation, return the exit code."""
    from kubectl_kpolicy.apply.explaining import ExplainRequest, run_command
    from kubectl_kpolicy.apply.inputs import ApplyRequest

    asked = request_of(ExplainRequest, args, inputs=request_of(ApplyRequest, args, cluster=False))
    return run_command(asked, sys.stdout, sys.stderr)
