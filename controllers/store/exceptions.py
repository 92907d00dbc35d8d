"""PolicyExceptions of both groups as stored, and which of them count at all (rows X-08, X-09, X-22).

For the policy cache and for the admission of exceptions, which warns where an exception would not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.model.policy import CEL_KEY, CelException
from engine.parse import parse_exception

from .policies import content_hash, is_cel

if TYPE_CHECKING:
    from engine.model import Object, PolicyException

NOT_ENABLED = "PolicyException resources would not be processed until it is enabled."
NO_NAMESPACE = "The exceptionNamespace flag is not set"
WRONG_NAMESPACE = "PolicyException resource namespace must match the defined namespace."


@dataclass(frozen=True, slots=True)
class ExceptionRules:
    """Whether exceptions count and from which namespace: `*` is every one, empty is none."""

    enabled: bool = True
    namespace: str = "*"

    def counts(self, namespace: str) -> bool:
        """Tell whether an exception in `namespace` is honoured."""
        return not self.warning(namespace)

    def warning(self, namespace: str) -> str:
        """Return upstream's words about an exception in `namespace`, empty when it counts."""
        if not self.enabled:
            return NOT_ENABLED
        if not self.namespace:
            return NO_NAMESPACE
        if self.namespace not in ("*", namespace):
            return WRONG_NAMESPACE
        return ""


def read_exception(obj: Object) -> PolicyException:
    """Return the classic exception in a stored object; raises PolicyError."""
    return parse_exception(obj, strict=False)


def read_cel_exception(obj: Object) -> CelException:
    """Return the exception of policies.kyverno.io in a stored object; raises PolicyError."""
    from engine.parse.celpolicies import parse_cel_exception

    return parse_cel_exception(obj, strict=False)


def exception_hash(obj: Object) -> str:
    """Return a digest of everything that decides what an exception means: its content, and whose it is."""
    owners = (obj.get("metadata") or {}).get("ownerReferences")
    uids = [str(one.get("uid")) for one in owners or () if isinstance(one, dict)]
    return "/".join((content_hash(obj), *uids))


def exception_key(obj: Object) -> str:
    """Return `namespace/name`, with CEL_KEY before that of an exception of policies.kyverno.io."""
    metadata = obj.get("metadata") or {}
    name = f"{metadata.get('namespace') or 'default'}/{metadata.get('name') or ''}"
    return f"{CEL_KEY}{name}" if is_cel(obj) else name
