"""Commands with verbs, made the same way: `list` is the usual one, `describe` tells everything about a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .flags import add_cluster_flags, add_contexts, add_list_flags, list_request

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from .selection import Named


class Verbs:
    """The verbs of one command; each is added with its words, its flags and what it runs."""

    def __init__(
        self, sub: argparse._SubParsersAction[argparse.ArgumentParser], noun: str, example: str
    ) -> None:  # fmt: skip
        parser: Any = sub.add_parser(noun, epilog=f"example: {example}")
        parser.usual = "list"
        self.parser = parser
        self._sub = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    def add(
        self, name: str, text: str, run: Callable[[argparse.Namespace], int], *, cluster: bool = True
    ) -> argparse.ArgumentParser:  # fmt: skip
        """Add a verb and return its parser, for flags of its own."""
        from .parsing import add_global_flags

        parser: argparse.ArgumentParser = self._sub.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")  # fmt: skip
        add_global_flags(parser, again=True)
        if cluster:
            add_cluster_flags(parser)
        parser.set_defaults(run=run)
        return parser

    def listing(
        self,
        name: str,
        text: str,
        run: Callable[[argparse.Namespace], int],
        metavar: str,
        *,
        beside: bool = False,
    ) -> argparse.ArgumentParser:
        """Add a verb that lists rows, with the flags of lists and names to choose by; `beside` of several clusters side by side."""
        from .lists import add_names

        parser = self.add(name, text, run)
        add_list_flags(parser)
        if beside:
            add_contexts(parser)
        add_names(parser, metavar)
        return parser

    def describing(
        self, noun: str, metavar: str, *, named: Named | None = None, everywhere: bool = False
    ) -> None:
        """Add `describe`; `named` tells what a name means, `everywhere` looks in all namespaces unless one is named."""
        from .lists import add_names

        def run(args: argparse.Namespace) -> int:
            from .lists import is_named, run_describe

            return run_describe(list_request(args, everywhere=everywhere), noun, named or is_named)

        parser = self.add("describe", "show everything about the named objects", run)
        parser.add_argument("--replay", default="", metavar="FILE", help="read a recording instead of a cluster")  # fmt: skip
        add_names(parser, metavar)


def add_verbs(sub: Any, noun: str) -> None:
    """Add `list` and `describe` for a screen that no command of its own lists."""
    from .lists import is_named, run_list

    def listed(args: argparse.Namespace) -> int:
        return run_list(list_request(args), noun, lambda row: is_named(row, args.names))

    verbs = Verbs(sub, noun, f"kubectl kpolicy {noun} -A -o wide")
    verbs.listing("list", f"list {noun}", listed, "NAME", beside=True)
    verbs.describing(noun, "NAME")
