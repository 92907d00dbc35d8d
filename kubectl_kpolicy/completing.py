"""Candidates that only a cluster or a kubeconfig knows: names of namespaces, contexts, policies, grants and the like.

For `complete`, at a key press: what takes longer than two seconds is given up, what was found counts for half a minute, and
nothing that goes wrong is anybody's concern. Loaded only where a name is to be completed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controllers.kube import Access
    from controllers.kube.kinds import Kind
    from engine.model import Object

LONGEST = 2.0
"""Seconds that a person waits for candidates after pressing a key."""
KEPT = 30.0
_MOST = 500
_NAMESPACES = "namespaces"
_ASKABLE = "askable"
"""Policies as a grant is asked for: by what tells each from all others."""

_RESOURCES = {
    "violations": ("clusterpolicies", "policies"),
    _ASKABLE: ("clusterpolicies", "policies", "celpolicies"),
    "policies": ("clusterpolicies", "policies", "celpolicies"),
    "exceptions": ("exceptions", "celexceptions"),
    "grant": ("grants",),
    "otp": ("codes",),
    "cleanup": ("clustercleanuppolicies", "cleanuppolicies"),
}
_CONFIGURED = {
    "--context": "contexts",
    "--contexts": "contexts",
    "--cluster": "clusters",
    "--user": "users",
}


def of_flag(flags: Sequence[str], words: Sequence[str]) -> list[str] | None:
    """Return the values that a flag may have as far as kubeconfig or cluster know them; None for flags of another kind."""
    for flag in flags:
        if flag in _CONFIGURED:
            return _configured(_CONFIGURED[flag], words)
    return _cached(_NAMESPACES, words) if "--namespace" in flags else None


def of_names(command: str, words: Sequence[str]) -> list[str]:
    """Return the names that a command's verb may be about; asking for a grant takes policies, and everything else its own."""
    if command == "grant" and not {"approve", "deny", "withdraw", "drop", "revoke", "extend", "report", "describe", "list", "comment"} & set(words):  # fmt: skip
        command = _ASKABLE
    return _cached(command, words) if command in _RESOURCES else []


def _flags(words: Sequence[str]) -> argparse.Namespace:
    """Return the flags among the words that say which cluster, as whom and where; raises SystemExit for a mistake."""
    from .cli.flags import Flags

    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    Flags(parser).of_cluster()
    try:
        return parser.parse_known_args([*words])[0]
    except argparse.ArgumentError:
        return parser.parse_args([])


def _configured(part: str, words: Sequence[str]) -> list[str]:
    from controllers.kube.kubeconfig import default_paths, read_kubeconfig

    given = _flags(words).kubeconfig
    found = read_kubeconfig([Path(given)] if given else default_paths())
    return sorted(getattr(found, part))


def _cached(what: str, words: Sequence[str]) -> list[str]:
    """Return names from the cache, or asked for and put there."""
    flags = _flags(words)
    key = json.dumps([what, sorted(vars(flags).items()), os.environ.get("KUBECONFIG", "")], default=str)  # fmt: skip
    file = _folder() / hashlib.sha256(key.encode()).hexdigest()[:32]
    with suppress(OSError, ValueError):
        if time.time() - file.stat().st_mtime < KEPT:
            return [str(one) for one in json.loads(file.read_text())]
    with _hurried():
        names = _asked(what, flags)
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = file.with_suffix(f".{os.getpid()}")
        made.write_text(json.dumps(names))
        made.replace(file)
    return names


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or f"{os.environ.get('HOME', '.')}/.cache"
    return Path(base) / "kpolicy" / "completion"


@contextmanager
def _hurried() -> Iterator[None]:
    """Raise TimeoutError after a while, whatever is waited for, credentials of other programs included."""

    def ring(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _asked(what: str, flags: argparse.Namespace) -> list[str]:
    import asyncio

    from .cli.flags import cluster_flags
    from .session import cluster

    access = cluster.access_of(cluster_flags(flags))
    return asyncio.run(asyncio.wait_for(_listed(what, access, flags), LONGEST))


async def _listed(what: str, access: Access, flags: argparse.Namespace) -> list[str]:
    import asyncio

    from controllers.kube import KubeError, connect
    from controllers.kube.kinds import NAMESPACES

    from .cli.flags import cluster_flags
    from .session import cluster

    client = connect(access)
    is_everywhere = what in ("otp", "violations", "policies", _ASKABLE)
    place = "" if is_everywhere else cluster.namespace_of(cluster_flags(flags), access)

    async def names(kind: Kind) -> list[str]:
        with suppress(KubeError):
            page = await client.list(kind, place if kind.namespaced else "", limit=_MOST, metadata_only=True)  # fmt: skip
            named = _askable if what == _ASKABLE else _name
            return [named(kind, one["metadata"]) for one in page.items]
        return []

    try:
        kinds = [NAMESPACES] if what == _NAMESPACES else await _kinds(client, _RESOURCES[what])
        found = await asyncio.gather(*map(names, kinds))
    finally:
        await client.close()
    return sorted({name for some in found for name in some})


def _name(_: Kind, metadata: Object) -> str:
    return str(metadata["name"])


def _askable(kind: Kind, metadata: Object) -> str:
    """Return a policy as a grant names it; of a classic one of a namespace rules follow, which are all where none do."""
    from engine.model.kinds import identity, is_of_cel

    namespace = metadata.get("namespace")
    key = f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
    found = identity(kind.kind, key)
    return found if is_of_cel(found) or not namespace else f"{found}/"


async def _kinds(client: Any, resources: Sequence[str]) -> list[Kind]:
    from .cluster import celkinds
    from .cluster.resources import RESOURCES

    found: list[Kind] = []
    for name in resources:
        found += [RESOURCES[name].kind] if name in RESOURCES else await celkinds.kinds(client, name)
    return found
