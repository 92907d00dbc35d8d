"""kubectl's own flags for commands that need a cluster, and the flags of lists; the same names, the same meaning."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from .parsing import OneContext

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from kubectl_kpolicy.session.cluster import ClusterFlags

    from .selection import ListRequest

    Command = Callable[[argparse.Namespace], int]

T = TypeVar("T")
FORMATS = ("table", "wide", "json", "yaml", "name", "jsonl", "csv", "markdown")
_PREFIXED = ("jsonpath=", "custom-columns=")


def add_cluster_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which cluster, as whom, and where in it."""
    group = parser.add_argument_group("flags of the cluster")
    group.add_argument("-n", "--namespace", default="", metavar="NAME", help="namespace to look at")
    group.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    group.add_argument("--kubeconfig", default="", metavar="FILE", help="kubeconfig to use")
    group.add_argument("--context", default="", action=OneContext, metavar="NAME", help="context of the kubeconfig")  # fmt: skip
    group.add_argument("--cluster", default="", metavar="NAME", help="cluster of the kubeconfig")
    group.add_argument("--user", default="", metavar="NAME", help="user of the kubeconfig")
    group.add_argument(
        "--as", dest="as_user", default="", metavar="USER", help="user to impersonate"
    )
    group.add_argument("--as-group", action="append", default=[], metavar="GROUP", help="group to impersonate (repeatable)")  # fmt: skip
    group.add_argument("--as-uid", default="", metavar="UID", help="UID to impersonate")
    group.add_argument("--token", default="", metavar="TOKEN", help="bearer token")
    group.add_argument("-s", "--server", default="", metavar="URL", help="address of the server")
    group.add_argument(
        "--certificate-authority",
        default="",
        metavar="FILE",
        help="CA certificate that the server is verified with",
    )
    group.add_argument(
        "--client-certificate", default="", metavar="FILE", help="client certificate"
    )
    group.add_argument(
        "--client-key", default="", metavar="FILE", help="key of the client certificate"
    )
    group.add_argument("--tls-server-name", default="", metavar="NAME", help="server name to expect in the server's certificate")  # fmt: skip
    group.add_argument("--insecure-skip-tls-verify", action="store_true", help="do not verify the server's certificate (insecure)")  # fmt: skip
    group.add_argument("--request-timeout", default="30s", metavar="DURATION", help="time out requests after this; 0 waits forever")  # fmt: skip
    group.add_argument("--journal", default="", metavar="NAMESPACE/NAME", help="ConfigMap that keeps codes of `random()` policies")  # fmt: skip


def guarded(run: Command) -> Command:
    """Return a command that prints an error which `run` raises, and returns the exit code of that error."""

    @wraps(run)
    def command(args: argparse.Namespace) -> int:
        from kubectl_kpolicy.session import cluster

        return cluster.guarded(run, args)

    return command


def cluster_flags(args: argparse.Namespace) -> ClusterFlags:
    """Return kubectl's flags of a command line as what opens a connection."""
    from kubectl_kpolicy.session.cluster import ClusterFlags

    return request_of(ClusterFlags, args)


def list_request(
    args: argparse.Namespace, *terms: str, everywhere: bool = False, **changes: Any
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


def request_of(kind: type[T], args: argparse.Namespace, **more: Any) -> T:
    """Return a request: each of its fields is `more`'s, the flag's of the same name, or its default; lists become tuples."""
    names: tuple[str, ...] = vars(kind)["__match_args__"]
    given = {name: value for name, value in vars(args).items() if name in names}
    made = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}  # fmt: skip
    if "connection" in names:
        made["connection"] = cluster_flags(args)
    return kind(**{**made, **more})


def add_list_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which rows, in which order and format."""
    group = parser.add_argument_group("flags of lists")
    group.add_argument("-o", "--output", type=output_format, default="table", metavar="FORMAT",
        help=f"{'|'.join(FORMATS)}|jsonpath=TEMPLATE|custom-columns=SPEC")  # fmt: skip
    group.add_argument("--no-headers", action="store_true", help="omit the header line")
    group.add_argument("--show-labels", action="store_true", help="show labels as the last column")
    group.add_argument("-l", "--selector", default="", metavar="SELECTOR", help="only objects with these labels")  # fmt: skip
    group.add_argument("--field-selector", default="", metavar="SELECTOR", help="only objects with these fields, such as metadata.name=web,kind!=Pod")  # fmt: skip
    group.add_argument("--where", default="", metavar="FILTER", help="only rows that match, such as 'sev>=high age<1h ns=team-*'")  # fmt: skip
    group.add_argument("--sort-by", default="", metavar="COLUMN", help="sort by this column; - in front reverses the order")  # fmt: skip
    group.add_argument("--group-by", default="", metavar="COLUMN", help="count rows by a column")
    group.add_argument(
        "--limit", type=chunk, default=0, metavar="N", help="print at most this many rows"
    )
    group.add_argument("--chunk-size", type=chunk, default=500, metavar="N", help="objects to read from the server at a time (500); 0 reads all at once")  # fmt: skip
    group.add_argument("-w", "--watch", action="store_true", help="keep running and print changes")
    group.add_argument("--watch-only", action="store_true", help="print only changes from now on")  # fmt: skip
    group.add_argument("--output-watch-events", action="store_true", help="show for each row whether it was added, modified or deleted")  # fmt: skip
    group.add_argument("--replay", default="", metavar="FILE", help="read a recording instead of a cluster")  # fmt: skip


def add_contexts(parser: argparse.ArgumentParser) -> None:
    """Add the flag that lists several clusters side by side."""
    parser.add_argument("--contexts", default="", metavar="NAME[,NAME]", help="contexts of the kubeconfig to list side by side (wildcards), with a column CLUSTER")  # fmt: skip


def chunk(text: str) -> int:
    """Return how many objects are read at a time; argparse reports what is no such number."""
    import argparse

    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of zero or more")
    return int(text)


def output_format(text: str, more: Sequence[str] = ()) -> str:
    """Return a format as given, one of lists or of `more`; argparse reports one that there is not."""
    import argparse

    if text in (*FORMATS, *more) or text.startswith(_PREFIXED):
        return text
    if text == "md":
        return "markdown"
    raise argparse.ArgumentTypeError(f"there is no format `{text}`; there are {', '.join((*FORMATS, *more))}, jsonpath=, custom-columns=")  # fmt: skip
