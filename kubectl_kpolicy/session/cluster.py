"""The way from flags to a cluster: kubectl's flags as an Access, one connection for a command, errors as exit codes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

from engine.errors import EngineError
from engine.lang.wildcard import has_wildcard, match
from engine.record import record
from kubectl_kpolicy.output.diagnostics import ExitCode, report, visible
from kubectl_kpolicy.output.misuse import Misuse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from controllers.kube import Access, Client
    from controllers.kube.clock import ServerClock


T = TypeVar("T")
Flags = TypeVar("Flags")
_clocks: list[ServerClock] = []
"""The clock of the connection that this process has or had."""


@record
class ClusterFlags:
    """Which cluster, as whom, and where in it: what kubectl's own flags say."""

    namespace: str = ""
    all_namespaces: bool = False
    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    as_user: str = ""
    as_group: tuple[str, ...] = ()
    as_uid: str = ""
    token: str = ""
    server: str = ""
    certificate_authority: str = ""
    client_certificate: str = ""
    client_key: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    request_timeout: str = "30s"
    journal: str = ""

    def __repr__(self) -> str:
        return f"<ClusterFlags {self.context or self.server or '-'}>"


def access_of(flags: ClusterFlags) -> Access:
    """Return how to reach the cluster, as kubeconfig and flags say; raises AccessError."""
    from dataclasses import replace

    from controllers.kube.access import Access, Impersonation, load_access
    from controllers.kube.errors import AccessError
    from controllers.kube.kubeconfig import default_paths

    try:
        found = load_access(
            flags.kubeconfig or None,
            flags.context or None,
            cluster=flags.cluster or None,
            user=flags.user or None,
        )
    except AccessError:
        if not flags.server or flags.context or flags.kubeconfig or default_paths():
            raise
        # as kubectl: an address and a token are enough where nothing is configured
        found = Access(flags.server)
    changes: dict[str, Any] = {}
    if flags.server:
        changes["server"] = flags.server
    if flags.token:
        from controllers.kube.credentials import bearer

        changes["credentials"] = bearer(flags.token)
    try:
        changes.update(_tls(flags, found))
    except OSError as error:
        raise EngineError(f"cannot read `{error.filename}`") from error
    if flags.as_user:
        changes["impersonate"] = Impersonation(flags.as_user, tuple(flags.as_group), flags.as_uid)
    if flags.namespace:
        changes["namespace"] = flags.namespace
    return replace(found, **changes)


def _tls(flags: ClusterFlags, access: Access) -> dict[str, Any]:
    from dataclasses import replace
    from pathlib import Path

    from controllers.kube.credentials import Fixed, Presented

    changes: dict[str, Any] = {}
    tls = access.tls
    if flags.certificate_authority:
        tls = replace(tls, authorities=Path(flags.certificate_authority).read_bytes())
    if flags.tls_server_name:
        tls = replace(tls, server_name=flags.tls_server_name)
    if flags.insecure_skip_tls_verify:
        tls = replace(tls, verifies=False)
    if tls is not access.tls:
        changes["tls"] = tls
    if flags.client_certificate and flags.client_key:
        certificate, key = Path(flags.client_certificate).read_bytes(), Path(flags.client_key).read_bytes()  # fmt: skip
        changes["credentials"] = Fixed(Presented("", certificate, key))
    return changes


def context_names(flags: ClusterFlags) -> list[str]:
    """Return the contexts of the kubeconfig, in its order; raises AccessError."""
    from pathlib import Path

    from controllers.kube.kubeconfig import default_paths, no_kubeconfig, read_kubeconfig

    paths = [Path(flags.kubeconfig)] if flags.kubeconfig else default_paths()
    if not paths:
        raise no_kubeconfig()
    return list(read_kubeconfig(paths).contexts)


def namespace_of(flags: ClusterFlags, access: Access) -> str:
    """Return the namespace to look at, empty for all of them."""
    return "" if flags.all_namespaces else access.namespace


def with_client(flags: ClusterFlags, work: Callable[[Client, Access], Awaitable[T]]) -> T:
    """Connect, do some work, close the connection and return what the work returned; raises EngineError."""
    import asyncio

    from controllers.kube import connect
    from controllers.kube.clock import ServerClock
    from controllers.kube.errors import NotServed, Unreachable

    most = seconds_of(flags.request_timeout)
    access = access_of(flags)
    clock = ServerClock()
    _clocks[:] = [clock]

    async def run() -> T:
        client = connect(access, clock=clock)
        try:
            async with asyncio.timeout(most):
                return await work(client, access)
        except NotServed as error:
            error.help = install_hint(error.group) or error.help
            raise
        except TimeoutError as error:
            raise Unreachable(f"no answer from {access.server} within {flags.request_timeout}") from error  # fmt: skip
        finally:
            await client.close()

    return asyncio.run(run())


def install_hint(group: str) -> str:
    """Return what to do where the server has no kinds of a group."""
    if group == "kpolicy.io":
        return "kubectl kpolicy install --crds-only | kubectl apply -f -"
    if group in ("kyverno.io", "wgpolicyk8s.io"):
        return "install kpolicy's engine (`kubectl kpolicy install --crds-only`) or Kyverno"
    return ""


def seconds_of(text: str) -> float | None:
    """Return `--request-timeout` or `--timeout` in seconds; none for `0`. Raises Misuse."""
    from engine.lang import duration

    nanoseconds = duration.parse(f"{text}s" if text.isdigit() else text)
    if nanoseconds is None or nanoseconds < 0:
        raise Misuse(f"cannot read `{text}` as a length of time", help="write it as 10s or 1m")
    return nanoseconds / 1e9 or None


def instant_of(text: str) -> datetime:
    """Return the instant that somebody wrote, now where nothing is written; raises Misuse."""
    from engine.lang import rfc3339

    found = rfc3339.read(text) if text else now()
    if found is None:
        raise Misuse(f"cannot read `{text}` as an instant", help="write it as 2026-01-31T17:00:00Z")
    return found


def exit_code(error: EngineError) -> ExitCode:
    """Return the exit code that an error of the API server has."""
    from controllers.kube import errors

    from .errors import Over, Refused, TimedOut

    codes = {
        Refused: ExitCode.REFUSED,
        Over: ExitCode.GONE,
        TimedOut: ExitCode.TIMEOUT,
        Misuse: ExitCode.USAGE,
        errors.Unreachable: ExitCode.UNREACHABLE,
        errors.Unauthorized: ExitCode.UNREACHABLE,
        errors.AccessError: ExitCode.UNREACHABLE,
        errors.Forbidden: ExitCode.FORBIDDEN,
        errors.NotFound: ExitCode.GONE,
        errors.Conflict: ExitCode.CONFLICT,
        errors.AlreadyExists: ExitCode.CONFLICT,
    }
    found = (code for kind, code in codes.items() if isinstance(error, kind))
    return next(found, ExitCode.FAILED)


def guarded(run: Callable[[Flags], int], flags: Flags) -> int:
    """Run a command; print an error of the cluster and return its exit code."""
    try:
        return run(flags)
    except EngineError as error:
        return failed(error)


def failed(error: EngineError) -> ExitCode:
    """Print an error and return its exit code; a refusal is no error, and is printed as the words of who refused."""
    from .errors import Refused

    if isinstance(error, Refused):
        print(visible(error.message), file=sys.stderr)
    else:
        report(error)
    return exit_code(error)


def now() -> datetime:
    """Return the current instant; once a server has answered, by its clock, which everything in it is compared with."""
    from datetime import UTC, datetime

    return _clocks[0].now() if _clocks else datetime.now(UTC)


def skew() -> float:
    """Return by how many seconds the server's clock is ahead of ours; below zero where it is behind."""
    return _clocks[0].skew if _clocks else 0.0


# Several contexts of a kubeconfig side by side: which of them words mean, and what is about one cluster alone.


_ONE_CLUSTER = ("context", "cluster", "server", "token", "user", "client_certificate", "client_key")
"""Flags that are about one cluster: what proves who somebody is to one is shown to no other."""


def several(text: str, connection: ClusterFlags) -> list[str]:
    """Return the contexts of the kubeconfig that `--contexts` means.

    Raises Misuse where none can be meant or where flags are about one cluster, and AccessError without a kubeconfig.
    """
    for name in _ONE_CLUSTER:
        if getattr(connection, name):
            raise Misuse(
                f"--{name.replace('_', '-')} is about one cluster",
                help="leave it out, or name one with --context",
            )
    return meant(text, context_names(connection))


def meant(text: str, there: Sequence[str]) -> list[str]:
    """Return the contexts that names and wildcards mean, separated by commas, each once; raises Misuse where one means none."""
    names = ", ".join(there) or "none"
    found: list[str] = []
    for one in filter(None, (word.strip(" '\"") for word in text.split(","))):
        fitting = [name for name in there if match(one, name)] if has_wildcard(one) else [one]
        if not set(fitting) & set(there):
            raise Misuse(f"there is no context `{one}`", help=f"there are {names}")
        found += fitting
    if not found:
        raise Misuse("--contexts names no context", help=f"there are {names}")
    return list(dict.fromkeys(found))
