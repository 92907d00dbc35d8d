"""The service account that each job speaks as: what a job may do on a cluster is bounded by the API server, not by our own care.

One process speaks as several accounts. Its own credentials are the admission account's; for the other jobs it asks the API
server for short tokens (TokenRequest), which needs `create` on `serviceaccounts/token` of exactly those names and no
`impersonate`. Tests and demonstrations may let one client stand for all.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from engine import vocabulary

from .credentials import Presented
from .errors import AccessError, KubeError
from .kinds import SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .access import Access
    from .client import Client
    from .clock import Clock

LIFE: Final = 3600
"""Seconds that a token is asked for."""
RENEWED_AFTER: Final = 2 / 3
"""The part of its life after which a token is replaced by the next one who needs it."""
_log = logging.getLogger(__name__)


class Job(Enum):
    """What the controllers do, as far as it is done under rights of its own."""

    ADMISSION = "admission"
    BACKGROUND = "background"
    CLEANUP = "cleanup"
    REPORTS = "reports"
    GRANTS = "grants"

    @property
    def controller(self) -> str:
        """The name of who does it, as upstream calls its parts and labels of people's rights name them."""
        return f"{self.value}-controller"


ACCOUNTS: Final[Mapping[Job, str]] = {
    Job.ADMISSION: "kyverno-admission-controller",
    Job.BACKGROUND: "kyverno-background-controller",
    Job.CLEANUP: "kyverno-cleanup-controller",
    Job.REPORTS: "kyverno-reports-controller",
    Job.GRANTS: "kpolicy-grants-controller",
}
"""The service account of each job: upstream's names, which people's rights and exclusions name, and one for what upstream lacks."""

CONTROLLERS: Final = {job.controller: job for job in Job}
ALL: Final = frozenset(Job)
SPOKEN_AS: Final = "kpolicy.io/accounts"
"""Annotation of our webhook configurations that says who each job is to the API server, as JSON, for whoever diagnoses."""


def account_user(namespace: str, job: Job) -> str:
    """Return the user name under which the API server knows the account of a job."""
    return f"{vocabulary.SERVICE_ACCOUNT}{namespace}:{ACCOUNTS[job]}"


class Minted:
    """Credentials of a service account that another client asks for, when they are needed and before they end."""

    def __init__(self, client: Client, namespace: str, name: str, life: int = LIFE) -> None:
        self._client, self._namespace, self._name, self._life = client, namespace, name, life
        self._presented: Presented | None = None
        self._renew_at = self._ends_at = 0.0
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Minted {self._name}>"

    async def current(self, clock: Clock) -> Presented:
        """Return the token to present now; raises AccessError when there is none and none can be had."""
        async with self._lock:
            if self._presented is None or clock.monotonic() >= self._renew_at:
                await self._renew(clock)
            assert self._presented is not None
            return self._presented

    def spoil(self) -> bool:
        """Forget the token, so that another one is asked for."""
        had = self._presented is not None
        self._presented = None
        return had

    async def _renew(self, clock: Clock) -> None:
        """Ask for a token; one that cannot be replaced is used to its end. Raises AccessError."""
        asked_at = clock.monotonic()
        try:
            token, life = await self._asked()
        except KubeError as error:
            if self._presented is None or asked_at >= self._ends_at:
                raise AccessError(
                    f"no token for the service account `{self._name}` in `{self._namespace}`: {error.message}",
                    help=error.help,
                ) from error
            _log.warning("the token of %s cannot be renewed yet: %s", self._name, error.message)
            return
        self._presented = Presented(f"Bearer {token}")
        self._renew_at, self._ends_at = asked_at + life * RENEWED_AFTER, asked_at + life

    async def _asked(self) -> tuple[str, int]:
        """Return a fresh token and its life in seconds: what was asked for, or less where the server says so."""
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {"expirationSeconds": self._life},
        }
        answer = await self._client.create(SERVICE_ACCOUNTS, request, subresource="token")
        token = str((answer.get("status") or {}).get("token") or "")
        if not token:
            raise KubeError("the server's answer holds no token")
        granted = (answer.get("spec") or {}).get("expirationSeconds")
        return token, min(granted, self._life) if isinstance(granted, int) else self._life


class Accounts:
    """The client of each job."""

    def __init__(
        self,
        own: Client,
        others: Mapping[Job, Client],
        namespace: str = "kyverno",
        minted: Mapping[Job, Minted] | None = None,
    ) -> None:
        self._own, self._others, self._namespace = own, dict(others), namespace
        self._minted = dict(minted or {})

    @classmethod
    def one(cls, client: Client, namespace: str = "kyverno") -> Accounts:
        """Let one client stand for all jobs."""
        return cls(client, {}, namespace)

    @classmethod
    def each(cls, client: Client, access: Access, namespace: str, clock: Clock) -> Accounts:
        """Speak as the shipped accounts of a namespace, by tokens that `client` asks for; `access` is what it was made of.

        Nothing is asked for before it is needed; see `prove`.
        """
        from .http import HttpClient

        # INVARIANT: neither certificate nor impersonation of the process goes along, or it would be who acts.
        bare = replace(access, impersonate=None)
        minted: dict[Job, Minted] = {
            job: Minted(client, namespace, name)
            for job, name in ACCOUNTS.items()
            if job is not Job.ADMISSION
        }
        others: dict[Job, Client] = {
            job: HttpClient(replace(bare, credentials=one), clock=clock)
            for job, one in minted.items()
        }
        return cls(client, others, namespace, minted)

    def of(self, job: Job) -> Client:
        """Return the client that a job speaks through."""
        return self._others.get(job, self._own)

    def users(self, own: str = "") -> Mapping[Job, str]:
        """Return who each job is to the API server; `own` is who the process itself is, empty where that is not known."""
        return {
            job: account_user(self._namespace, job) if job in self._others else own for job in Job
        }

    def jobs_of(self, user: str, own: str = "") -> frozenset[Job]:
        """Return the jobs that a user's requests are ours for: by our accounts, also those of other replicas, or as `own`."""
        named = {job for job in Job if user == account_user(self._namespace, job)}
        if user and user == own:
            named |= ALL - self._others.keys()
        return frozenset(named)

    async def prove(self, clock: Clock) -> None:
        """Ask for a token of every account; raises AccessError for the first that cannot be spoken as."""
        for job, minted in self._minted.items():
            try:
                await minted.current(clock)
            except AccessError as error:
                raise AccessError(
                    f"cannot speak as the account of {job.value}: {error.message}",
                    help="apply what `kubectl kpolicy install` prints, and start under the service account "
                    f"`{ACCOUNTS[Job.ADMISSION]}`; or let one account do everything with `--accounts=own`",
                ) from error

    async def close(self) -> None:
        """Release the connections of all accounts but the process's own."""
        for client in self._others.values():
            await client.close()
