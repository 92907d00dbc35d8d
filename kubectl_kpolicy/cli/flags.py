"""Flags and verbs of commands, one line each, and how they become requests; kubectl's have the same names and the same meaning."""

from __future__ import annotations

import argparse
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from kubectl_kpolicy import commands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kubectl_kpolicy.session.cluster import ClusterFlags

    from .selection import ListRequest, Named

    Command = Callable[[argparse.Namespace], int]

T = TypeVar("T")
Arguments = argparse.Namespace
Unfit = argparse.ArgumentTypeError
UNTOLD = argparse.SUPPRESS
"""The help of flags that are read without a word: upstream has them, and here they have no meaning."""
FORMATS = ("table", "wide", "json", "yaml", "name", "jsonl", "csv", "markdown")
_PREFIXED = ("jsonpath=", "custom-columns=")
_GO_SWITCHES = "add_dir_header alsologtostderr logtostderr one_output skip_headers skip_log_headers"
_GO_VALUES = "log_backtrace_at log_dir log_file log_file_max_size stderrthreshold vmodule"
"""Flags of Go's logging, which each of upstream's commands has: read, and without effect."""


class Flags:
    """The flags of one parser: each is added by its names with blanks between, the word for its value, and its help."""

    def __init__(
        self, parser: argparse.ArgumentParser, group: argparse._ActionsContainer | None = None
    ) -> None:
        self.parser = parser
        self._add = (group or parser).add_argument

    def group(self, title: str) -> Flags:
        """Return flags that help shows under a title of their own."""
        return Flags(self.parser, self.parser.add_argument_group(title))

    def one_of(self) -> Flags:
        """Return flags of which one may be given."""
        return Flags(self.parser, self.parser.add_mutually_exclusive_group())

    def example(self, line: str, *more: str) -> None:
        """Show an example, and further lines, at the end of the help."""
        self.parser.epilog = "\n".join((f"example: {line}", *more))

    def add(self, names: str, about: str | None = None, **more: Any) -> None:
        """Add a flag or an argument of any kind, with `argparse`'s words for what is special about it."""
        self._add(*names.split(), help=about, **more)

    def text(self, names: str, value: str, about: str, **more: Any) -> None:
        """Add a flag with a value; empty where it is not given."""
        self.add(names, about, **{"default": "", "metavar": value, **more})

    def many(self, names: str, value: str, about: str, **more: Any) -> None:
        """Add a flag that may be given several times."""
        self.add(names, about, **{"action": "append", "default": [], "metavar": value, **more})

    def switch(self, names: str, about: str, **more: Any) -> None:
        """Add a flag without a value."""
        self.add(names, about, action="store_true", **more)

    def choice(self, names: str, choices: Sequence[str], about: str, **more: Any) -> None:
        """Add a flag with one of some values, the first where it is not given."""
        self.add(names, about, choices=choices, **{"default": choices[0], **more})

    def output(self, *formats: str, about: str = "output format") -> None:
        """Add the flag for the format, the first one of which is the usual one."""
        self.choice("-o --output", formats, about)

    def dry_run(self) -> None:
        """Add the flag that tries a change out."""
        self.choice("--dry-run", ("none", "client", "server"), "change nothing: check here, or on the server")  # fmt: skip

    def reason(self, about: str = "why, for the record", **more: Any) -> None:
        """Add the flag for a reason, which must be given."""
        self.text("--reason", "TEXT", about, **{"required": True, **more})

    def yes(self) -> None:
        """Add the flag without which a change is only shown."""
        self.switch("--yes", "do it; without it, only print what would be done")

    def replay(self) -> None:
        """Add the flag that reads what was recorded."""
        self.text("--replay", "FILE", "read a recording instead of a cluster")

    def contexts(self) -> None:
        """Add the flag that lists several clusters side by side."""
        self.text("--contexts", "NAME[,NAME]", "contexts of the kubeconfig to list side by side (wildcards), with a column CLUSTER")  # fmt: skip

    def of_every_command(self, *, again: bool = False) -> None:
        """Add the flags every command has; `again` leaves values that were given before the command in place."""
        group = self.group("flags of every command")
        usual: dict[str, Any] = {"default": argparse.SUPPRESS} if again else {}
        told = commands.EVERYWHERE
        group.choice("--color", commands.COLORS, told["--color"], **usual)
        group.switch("-v --verbose", told["-v, --verbose"], **usual)
        group.switch("-q --quiet", told["-q, --quiet"], **usual)
        group.switch("--non-interactive", told["--non-interactive"], **usual)
        for name in _GO_SWITCHES.split():
            group.switch(f"--{name}", UNTOLD, default=argparse.SUPPRESS)
        for name in _GO_VALUES.split():
            group.add(f"--{name}", UNTOLD, default=argparse.SUPPRESS)

    def of_cluster(self) -> None:
        """Add the flags that say which cluster, as whom, and where in it."""
        group = self.group("flags of the cluster")
        group.text("-n --namespace", "NAME", "namespace to look at")
        group.switch("-A --all-namespaces", "all namespaces")
        group.text("--kubeconfig", "FILE", "kubeconfig to use")
        group.text("--context", "NAME", "context of the kubeconfig", action=OneContext)
        group.text("--cluster", "NAME", "cluster of the kubeconfig")
        group.text("--user", "NAME", "user of the kubeconfig")
        group.text("--as", "USER", "user to impersonate", dest="as_user")
        group.many("--as-group", "GROUP", "group to impersonate (repeatable)")
        group.text("--as-uid", "UID", "UID to impersonate")
        group.text("--token", "TOKEN", "bearer token")
        group.text("-s --server", "URL", "address of the server")
        group.text("--certificate-authority", "FILE", "CA certificate that the server is verified with")  # fmt: skip
        group.text("--client-certificate", "FILE", "client certificate")
        group.text("--client-key", "FILE", "key of the client certificate")
        group.text("--tls-server-name", "NAME", "server name to expect in the server's certificate")
        group.switch("--insecure-skip-tls-verify", "do not verify the server's certificate (insecure)")  # fmt: skip
        group.text("--request-timeout", "DURATION", "time out requests after this; 0 waits forever", default="30s")  # fmt: skip
        group.text("--journal", "NAMESPACE/NAME", "ConfigMap that keeps codes of `random()` policies")  # fmt: skip

    def of_lists(self) -> None:
        """Add the flags that say which rows, in which order and format."""
        group = self.group("flags of lists")
        formats = f"{'|'.join(FORMATS)}|jsonpath=TEMPLATE|custom-columns=SPEC"
        group.text("-o --output", "FORMAT", formats, type=output_format, default="table")
        group.switch("--no-headers", "omit the header line")
        group.switch("--show-labels", "show labels as the last column")
        group.text("-l --selector", "SELECTOR", "only objects with these labels")
        group.text("--field-selector", "SELECTOR", "only objects with these fields, such as metadata.name=web,kind!=Pod")  # fmt: skip
        group.text("--where", "FILTER", "only rows that match, such as 'sev>=high age<1h ns=team-*'")  # fmt: skip
        group.text("--sort-by", "COLUMN", "sort by this column; - in front reverses the order")
        group.text("--group-by", "COLUMN", "count rows by a column")
        group.text("--limit", "N", "print at most this many rows", type=chunk, default=0)
        group.text("--chunk-size", "N", "objects to read from the server at a time (500); 0 reads all at once", type=chunk, default=500)  # fmt: skip
        group.switch("-w --watch", "keep running and print changes")
        group.switch("--watch-only", "print only changes from now on")
        group.switch("--output-watch-events", "show for each row whether it was added, modified or deleted")  # fmt: skip
        group.replay()


class Verbs:
    """The verbs of one command; each is added with its words, its flags and what it runs.

    `usual` is the verb that is meant where none is given, `dest` the argument that holds the verb, `title` its heading in help.
    """

    def __init__(
        self, flags: Flags, example: str, *, usual: str = "", dest: str = "verb", title: str | None = None
    ) -> None:  # fmt: skip
        flags.example(f"kubectl kpolicy {example}")
        parser: Any = flags.parser
        parser.usual = usual
        more = {"title": title} if title else {}
        self._sub = parser.add_subparsers(dest=dest, metavar=dest.upper(), required=True, **more)

    def add(
        self,
        name: str,
        text: str,
        run: Callable[[Arguments], int] | None = None,
        *,
        cluster: bool = True,
        example: str = "",
    ) -> Flags:
        """Add a verb and return its flags, for those of its own; without a `run` of its own the command's counts."""
        flags = Flags(self._sub.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}."))  # fmt: skip
        flags.of_every_command(again=True)
        if cluster:
            flags.of_cluster()
        if example:
            flags.example(f"kubectl kpolicy {example}")
        if run is not None:
            flags.parser.set_defaults(run=run)
        return flags

    def listing(
        self,
        name: str,
        text: str,
        run: Callable[[Arguments], int],
        metavar: str,
        *,
        beside: bool = False,
    ) -> Flags:
        """Add a verb that lists rows, with the flags of lists and names to choose by; `beside` of several clusters side by side."""
        flags = self.add(name, text, run)
        flags.of_lists()
        if beside:
            flags.contexts()
        flags.add("names", "which ones (all by default)", nargs="*", metavar=metavar)
        return flags

    def listed(
        self,
        noun: str,
        text: str,
        metavar: str,
        *,
        named: Named | None = None,
        everywhere: bool = False,
        beside: bool = True,
    ) -> None:
        """Add `list` for a noun; `named` and `everywhere` are as in `describing`, `beside` is as in `listing`."""

        def run(args: Arguments) -> int:
            from .lists import is_named, run_list

            flags = list_request(args, everywhere=everywhere)
            return run_list(flags, noun, named=named or is_named)

        self.listing("list", text, run, metavar, beside=beside)

    def describing(
        self, noun: str, metavar: str, *, named: Named | None = None, everywhere: bool = False
    ) -> None:
        """Add `describe`; `named` tells what a name means, `everywhere` looks in all namespaces unless one is named."""

        def run(args: Arguments) -> int:
            from .lists import is_named, run_describe

            return run_describe(list_request(args, everywhere=everywhere), noun, named or is_named)

        flags = self.add("describe", "show everything about the named objects", run)
        flags.replay()
        flags.add("names", "which ones (all by default)", nargs="*", metavar=metavar)


def add_verbs(flags: Flags, noun: str) -> None:
    """Add `list` and `describe` for a screen that no command of its own lists."""
    verbs = Verbs(flags, f"{noun} -A -o wide", usual="list")
    verbs.listed(noun, f"list {noun}", "NAME")
    verbs.describing(noun, "NAME")


class OneContext(argparse.Action):
    """Takes the one context of a command line; argparse would take the last of several, and nobody would learn which."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's interface
        namespace: Arguments,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002 - argparse's interface
    ) -> None:
        """Take a context, or report the second one."""
        before = getattr(namespace, self.dest)
        if before and before != values:
            raise argparse.ArgumentError(self, f"`{before}` and `{values}` are two contexts; lists take --contexts {before},{values}")  # fmt: skip
        setattr(namespace, self.dest, values)


def guarded(run: Command) -> Command:
    """Return a command that prints an error which `run` raises, and returns the exit code of that error."""

    @wraps(run)
    def command(args: Arguments) -> int:
        from kubectl_kpolicy.session import cluster

        return cluster.guarded(run, args)

    return command


def cluster_flags(args: Arguments) -> ClusterFlags:
    """Return kubectl's flags of a command line as what opens a connection."""
    from kubectl_kpolicy.session.cluster import ClusterFlags

    return request_of(ClusterFlags, args)


def list_request(
    args: Arguments, *terms: str, everywhere: bool = False, **changes: Any
) -> ListRequest:
    """Return what the flags of a list say; `terms` narrow its filter, `everywhere` is all namespaces unless one is named."""
    from engine.record import replace

    from .selection import ListRequest

    made = request_of(ListRequest, args, **changes)
    connection = made.connection
    if everywhere and not connection.namespace:
        connection = replace(connection, all_namespaces=True)
    return replace(made, connection=connection, where=_narrowed(made.where, *terms))


def _narrowed(where: str, *terms: str) -> str:
    return " ".join(
        [*filter(None, terms), f"({where})" if where.strip() and terms else where]
    ).strip()


def request_of(kind: type[T], args: Arguments, **more: Any) -> T:
    """Return a request: each of its fields is `more`'s, the flag's of the same name, or its default; lists become tuples."""
    names: tuple[str, ...] = vars(kind)["__match_args__"]
    given = {name: value for name, value in vars(args).items() if name in names}
    made = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}  # fmt: skip
    if "connection" in names:
        made["connection"] = cluster_flags(args)
    return kind(**{**made, **more})


def chunk(text: str) -> int:
    """Return how many objects are read at a time; argparse reports what is no such number."""
    if not text.isdecimal():
        raise Unfit(f"`{text}` is not a number of zero or more")
    return int(text)


def output_format(text: str, more: Sequence[str] = ()) -> str:
    """Return a format as given, one of lists or of `more`; argparse reports one that there is not."""
    if text in (*FORMATS, *more) or text.startswith(_PREFIXED):
        return text
    if text == "md":
        return "markdown"
    raise Unfit(f"there is no format `{text}`; there are {', '.join((*FORMATS, *more))}, jsonpath=, custom-columns=")  # fmt: skip
