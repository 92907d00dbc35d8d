"""One process of the controllers: what it knows, what it speaks through, and what is started in it.

`Runtime` is made once at the start and handed to webhook and loops, so that neither makes clients, clocks or caches itself
and a test can make one of memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from controllers.kube.accounts import Accounts, Job, account_user

from .options import Options

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from controllers.kube import Client, Clock
    from controllers.kube.reflector import Informers
    from engine.manifests import Trust

    from .cluster_cache import ClusterCache
    from .evaluating import Resolver
    from .metrics import Metrics
    from .queues import BackgroundQueue
    from .sink import Sink
    from .tracing import Tracer


class Configured:
    """Which policies the webhook configurations in the cluster ask for, by key, with the digest of their content.

    Set by whoever writes the configurations; `on_change` are called after each change and must not wait.
    """

    def __init__(self) -> None:
        self.on_change: list[Callable[[], None]] = []
        self._policies: Mapping[str, str] = {}

    @property
    def policies(self) -> Mapping[str, str]:
        """Digests (`store.policies.content_hash`) of the policies that are asked for, by key."""
        return self._policies

    def set(self, policies: Mapping[str, str]) -> None:
        """Take over what the configurations now say."""
        if policies == self._policies:
            return
        self._policies = dict(policies)
        for listener in self.on_change:
            listener()


class Post(Protocol):
    """Sends to an address outside (`controllers.lookups.services`)."""

    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, authorities: str = ""
    ) -> None:
        """Post a body; raises EngineError."""


@dataclass(frozen=True, slots=True)
class Connection:
    """What one account does with the API server: ask and write, watch, answer what rules look up."""

    client: Client
    informers: Informers
    resolver: Resolver


@dataclass(slots=True)
class Runtime:
    """Everything that webhook and loops stand on.

    `client`, `resolver` and `informers` are those of admission; `connection` has those of the other jobs, made by `connect`
    when one is wanted first. `key` is what chance follows from (`entropy.seed_of`), `identity` names this replica in Leases
    and Events, `user` is who we are to the API server (empty when it did not say).
    """

    client: Client
    clock: Clock
    cache: ClusterCache
    metrics: Metrics
    resolver: Resolver
    informers: Informers
    background_queue: BackgroundQueue
    key: bytes = field(repr=False)
    namespace: str = "kyverno"
    identity: str = "kpolicy"
    user: str = ""
    trust: Trust | None = None
    post: Post | None = None
    options: Options = field(default_factory=Options)
    configured: Configured = field(default_factory=Configured)
    also_close: tuple[Callable[[], Awaitable[None]], ...] = ()
    accounts: Accounts | None = None
    connect: Callable[[Job], Connection] | None = None
    tracer: Tracer | None = None
    _connections: dict[Job, Connection] = field(default_factory=dict)

    def connection(self, job: Job) -> Connection:
        """Return what a job speaks, watches and looks up through: its own account's, or the one that stands for all."""
        is_shared = self.accounts is None or self.accounts.of(job) is self.client
        if is_shared or self.connect is None:
            return Connection(self.client, self.informers, self.resolver)
        if job not in self._connections:
            self._connections[job] = self.connect(job)
        return self._connections[job]

    def user_of(self, job: Job) -> str:
        """Return who a job is to the API server, empty where it did not say."""
        return self._all_accounts.users(self.user)[job]

    def jobs_of(self, user: str) -> frozenset[Job]:
        """Return the jobs that a user's requests are ours for, none for everybody else."""
        return self._all_accounts.jobs_of(user, self.user)

    @property
    def _all_accounts(self) -> Accounts:
        return self.accounts or Accounts.one(self.client, self.namespace)

    async def close(self) -> None:
        """Release what was opened for this runtime."""
        for close in self.also_close:
            await close()
        for connection in self._connections.values():
            await connection.informers.close()

    @property
    def background_users(self) -> frozenset[str]:
        """Users whose requests are our own background work (row A-24)."""
        named = account_user(self.namespace, Job.BACKGROUND)
        return frozenset({named, self.user_of(Job.BACKGROUND)} - {""})


class Loops(Protocol):
    """What `controllers.loops.start` gives back; see the package."""

    @property
    def sink(self) -> Sink:
        """Where the webhook hands finished reviews."""

    async def run(self) -> None:
        """Do what every process does, until cancelled."""

    async def lead(self) -> None:
        """Do what only the leader does, until cancelled."""
