"""The way from flags to a cluster: kubectl's flags as an Access, one connection for a command, errors as exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from engine.errors import EngineError
from kubectl_kpolicy.output.diagnostics import ExitCode, report
from kubectl_kpolicy.output.misuse import Misuse

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from controllers.kube import Access, Client
    from controllers.kube.clock import ServerClock

T = TypeVar("T")
_clocks: list[ServerClock] = []
"""The clock of the connection that this process has or had."""


def access_of(args: argparse.Namespace) -> Access:
    """Return how to reach the cluster, as kubeconfig and flags say; raises AccessError."""
    from controllers.kube.access import Impersonation, load_access
    from engine.errors import EngineError

    found = load_access(
        args.kubeconfig or None,
        args.context or None,
        cluster=args.cluster or None,
        user=args.user or None,
    )
    changes: dict[str, Any] = {}
    if args.server:
        changes["server"] = args.server
    if args.token:
        from controllers.kube.credentials import bearer

        changes["credentials"] = bearer(args.token)
    try:
        changes.update(_tls(args, found))
    except OSError as error:
        raise EngineError(f"cannot read `{error.filename}`") from error
    if args.as_user:
        changes["impersonate"] = Impersonation(args.as_user, tuple(args.as_group), args.as_uid)
    if args.namespace:
        changes["namespace"] = args.namespace
    return _replaced(found, changes)


def _replaced(access: Access, changes: dict[str, Any]) -> Access:
    from dataclasses import replace

    return replace(access, **changes) if changes else access


def _tls(args: argparse.Namespace, access: Access) -> dict[str, Any]:
    from dataclasses import replace
    from pathlib import Path

    from controllers.kube.credentials import Fixed, Presented

    changes: dict[str, Any] = {}
    tls = access.tls
    if args.certificate_authority:
        tls = replace(tls, authorities=Path(args.certificate_authority).read_bytes())
    if args.tls_server_name:
        tls = replace(tls, server_name=args.tls_server_name)
    if args.insecure_skip_tls_verify:
        tls = replace(tls, verifies=False)
    if tls is not access.tls:
        changes["tls"] = tls
    if args.client_certificate and args.client_key:
        certificate, key = Path(args.client_certificate).read_bytes(), Path(args.client_key).read_bytes()  # fmt: skip
        changes["credentials"] = Fixed(Presented("", certificate, key))
    return changes


def namespace_of(args: argparse.Namespace, access: Access) -> str:
    """Return the namespace to look at, empty for all of them."""
    return "" if args.all_namespaces else access.namespace


def with_client(args: argparse.Namespace, work: Callable[[Client, Access], Awaitable[T]]) -> T:
    """Connect, do some work, close the connection and return what the work returned; raises EngineError."""
    import asyncio

    from controllers.kube.access import connect
    from controllers.kube.clock import ServerClock
    from controllers.kube.errors import NotServed, Unreachable
    from kubectl_kpolicy.cluster.problems import install_hint

    access = access_of(args)
    clock = ServerClock()
    _clocks[:] = [clock]

    async def run() -> T:
        client = connect(access, clock=clock)
        try:
            async with asyncio.timeout(seconds_of(args.request_timeout)):
                return await work(client, access)
        except NotServed as error:
            error.help = install_hint(error.group) or error.help
            raise
        except TimeoutError as error:
            raise Unreachable(f"no answer from {access.server} within {args.request_timeout}") from error  # fmt: skip
        finally:
            await client.close()

    return asyncio.run(run())


def seconds_of(text: str) -> float | None:
    """Return `--request-timeout` or `--timeout` in seconds; none for `0`. Raises Misuse."""
    from kubectl_kpolicy.cluster.time_format import length_of

    length = length_of(text if not text.isdigit() else f"{text}s")
    if length is None:
        raise Misuse(f"cannot read `{text}` as a length of time", help="write it as 10s or 1m")
    return length.total_seconds() or None


def exit_code(error: EngineError) -> ExitCode:
    """Return the exit code that an error of the API server has."""
    from controllers.kube import errors

    match error:
        case Misuse():
            return ExitCode.USAGE
        case errors.Unreachable() | errors.Unauthorized() | errors.AccessError():
            return ExitCode.UNREACHABLE
        case errors.Forbidden():
            return ExitCode.FORBIDDEN
        case errors.NotFound():
            return ExitCode.GONE
        case errors.Conflict() | errors.AlreadyExists():
            return ExitCode.CONFLICT
    return ExitCode.FAILED


def guarded(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run a command; print an error of the cluster and return its exit code."""
    try:
        return run(args)
    except EngineError as error:
        report(error)
        return exit_code(error)


def now() -> datetime:
    """Return the current instant; once a server has answered, by its clock, which everything in it is compared with."""
    from datetime import UTC, datetime

    return _clocks[0].now() if _clocks else datetime.now(UTC)


def skew() -> float:
    """Return by how many seconds the server's clock is ahead of ours; below zero where it is behind."""
    return _clocks[0].skew if _clocks else 0.0
