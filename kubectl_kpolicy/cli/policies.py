"""`kubectl kpolicy policies`: which policies are in force, in which mode, with counts of results and exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .verbs import Verbs

if TYPE_CHECKING:
    import argparse

SUMMARY = "which policies are in force, and how their results count"


def add_parser(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs."""
    verbs = Verbs(sub, "policies", SUMMARY, "kubectl kpolicy policies --where 'mode=audit fail>0' -o wide")  # fmt: skip
    verbs.listing("list", "list policies with their results", _list, "NAME")
    verbs.describing("policies", "NAME")


def _list(args: argparse.Namespace) -> int:
    from .lists import is_named, run_list

    args.all_namespaces = args.all_namespaces or not args.namespace
    return run_list(args, "policies", lambda row: is_named(row, args.names))
