"""`kubectl kpolicy test`: test files of upstream's format, run offline (rows K-04 to K-09)."""

from __future__ import annotations

import sys

from .flags import Arguments, Flags, request_of

FORMATS = ("table", "json", "yaml", "markdown", "junit")


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.parser.description = "Run the test files (kyverno-test.yaml) below the given paths, without a cluster."  # fmt: skip
    flags.example("kubectl kpolicy test . --fail-only")
    flags.add("paths", "test files, or folders or git repositories to search", nargs="*", default=["."], metavar="PATH")  # fmt: skip
    flags.add("-f --file-name", "name of test files in folders", default="kyverno-test.yaml")
    flags.text("-t --test-case-selector", "policy=P,rule=R,resource=N", "check only matching results; names take wildcards")  # fmt: skip
    flags.choice("-o --output --output-format", FORMATS, f"format of the results: {', '.join(FORMATS)}", metavar="FORMAT")  # fmt: skip
    flags.switch("--fail-only", "show failed results only")
    flags.switch("--detailed-results", "show messages")
    flags.switch("--remove-color", "never use colours")
    flags.switch("--require-tests", "fail when no test was found")
    flags.switch("--strict", "also fail when no rule answers where pass, fail, warn or error is expected")  # fmt: skip
    flags.text("-b --git-branch", "NAME", "branch of git repositories")
    flags.switch("--resolve-values", "also resolve `{{ … }}` inside values, as Kyverno does")
    flags.text("-j --jobs", "N", "number of processes (one per processor); the output keeps its order", type=int, default=0)  # fmt: skip
    flags.switch("-w --watch", "run again whenever a file changes")
    flags.switch("--registry", "query image registries, with docker's credentials")


def run(args: Arguments) -> int:
    """Run the tests, print the results, return the exit code."""
    from kubectl_kpolicy.testing.session import TestRequest, run_command

    request = request_of(TestRequest, args)
    if not args.watch:
        return run_command(request, sys.stdout, sys.stderr)
    from kubectl_kpolicy.session.rerunning import rerun

    return rerun(lambda: run_command(request, sys.stdout, sys.stderr), request.paths, sys.stderr)
