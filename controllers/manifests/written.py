"""Names of what the controllers write in their own namespace beside objects of our kinds; removal goes by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube.kinds import LEASES, SECRETS, Kind

from .deploy import SERVICE
from .rbac.rules import CODE_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


CALLERS: Final = "kpolicy-webhook-callers"
"""Secret with what replicas share of how callers prove themselves."""
REVIEW_KEY: Final = "kpolicy-review-key"
"""Secret with the key from which chance in reviews is drawn."""
LEASE: Final = "kyverno"
"""Whose holder leads."""
CERTIFICATES: Final = ("tls-ca", "tls-pair")
"""Endings of the names of certificates: the authority, and what the server shows (row W-30)."""


def secret_name(part: str, namespace: str) -> str:
    """Return the name of the Secret of a part of the certificates."""
    return f"{SERVICE}.{namespace}.svc.kyverno-{part}"


def secrets(namespace: str) -> tuple[str, ...]:
    """Return the names of all Secrets that the controllers write."""
    shown = (secret_name(part, namespace) for part in CERTIFICATES)
    return (*shown, CALLERS, REVIEW_KEY, CODE_KEYS)


WRITTEN: Final[Mapping[Kind, Callable[[str], tuple[str, ...]]]] = {
    SECRETS: secrets,
    LEASES: lambda _: (LEASE,),
}
"""The kinds of what is written, each with its names in a namespace."""
