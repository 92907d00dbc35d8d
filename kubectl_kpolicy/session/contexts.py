"""Several contexts of a kubeconfig side by side: which of them words mean, and what is about one cluster alone.

For the lists of the command line and for the console alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang.wildcard import has_wildcard, match
from kubectl_kpolicy.output.misuse import Misuse

from . import cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

_ONE_CLUSTER = ("context", "cluster", "server", "token", "user", "client_certificate", "client_key")
"""Flags that are about one cluster: what proves who somebody is to one is shown to no other."""


def several(text: str, connection: cluster.ClusterFlags) -> list[str]:
    """Return the contexts of the kubeconfig that `--contexts` means.

    Raises Misuse where none can be meant or where flags are about one cluster, and AccessError without a kubeconfig.
    """
    for name in _ONE_CLUSTER:
        if getattr(connection, name):
            raise Misuse(
                f"--{name.replace('_', '-')} is about one cluster",
                help="leave it out, or name one with --context",
            )
    return meant(text, cluster.context_names(connection))


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
