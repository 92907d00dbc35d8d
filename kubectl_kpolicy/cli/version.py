"""`kubectl kpolicy version`: which kpolicy this is. Without `--all` it imports nothing: it is the yardstick of the start-up path."""

from __future__ import annotations

import sys

# `typing` is not loaded to print a version
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from controllers.kube import Access, Client

    from .flags import Arguments, Flags

VERSION = "0.1.0"


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    flags.example("kubectl kpolicy version -o json")
    flags.output("text", "json", "yaml")
    flags.switch("--client", "only this program's version, which is the default")
    flags.switch("--all", "also the cluster's version and whose engine it runs")
    flags.of_cluster()


def show() -> int:
    """Print this program's version."""
    print(f"Client Version: v{VERSION}")
    return 0


def run(args: Arguments) -> int:
    """Print the version, and that of the cluster and its engine where they can be had; a cluster that is away is no failure."""
    client = {
        "version": VERSION,
        "python": ".".join(map(str, sys.version_info[:3])),
        "platform": sys.platform,
    }
    given: dict[str, Any] = {"clientVersion": client}
    if getattr(args, "all", False) and not args.client:
        given |= _of_cluster(args)
    if getattr(args, "output", "text") == "text":
        show()
        if "serverVersion" in given:
            print(f"Server Version: {given['serverVersion'].get('gitVersion')}")
        if "engine" in given:
            print(f"Engine: {given['engine']}")
        return 0
    from kubectl_kpolicy.output.structured import write_object

    write_object(sys.stdout, given, args.output)
    return 0


def _of_cluster(args: Arguments) -> dict[str, Any]:
    """Return what a cluster says of itself, nothing where it is away, which is said on standard error and is no failure."""
    from engine.errors import EngineError
    from kubectl_kpolicy.output.diagnostics import report
    from kubectl_kpolicy.session import cluster

    async def work(client: Client, _access: Access) -> dict[str, Any]:
        from kubectl_kpolicy.cluster.fetching import fetch
        from kubectl_kpolicy.cluster.health import engine_of

        found: dict[str, Any] = {"serverVersion": await client.raw("GET", "/version")}
        world = await fetch(client, ("validatingwebhooks", "mutatingwebhooks"), cluster.now())
        return {**found, **({"engine": engine} if (engine := engine_of(world)) else {})}

    try:
        from .flags import cluster_flags

        return cluster.with_client(cluster_flags(args), work)
    except EngineError as error:
        report(error, word="warning")
        return {}
