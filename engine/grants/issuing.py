"""Whether a code that somebody issues by hand, or agrees to, is within what a grant policy lets, and which limit says so if not.

Asked by the webhook when a OneTimeCode is made and again when its code is used, and by `otp issue` before anything is written, so
that an object which got past one of them is worth nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from engine.codes.requests import APPROVED
from engine.errors import PolicyError
from engine.fields import part
from engine.lang import rfc3339, wildcard
from engine.record import record
from engine.vocabulary import SERVICE_ACCOUNT

from .approvals import is_on_a_level
from .model import GrantPolicy, length_text
from .requests import concerns, covers, nearest
from .subjects import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.model import Object


LONGEST: Final = timedelta(days=7)
"""What no code lives longer than, whatever a grant policy says; the API server's own admission policy holds it, too."""

_SKEW: Final = timedelta(minutes=1)
"""How far the clock of whoever issues may be ahead."""


@record
class IssuedCode:
    """What a OneTimeCode says: by whom, for whom and for what, from when until when.

    `groups` are those of `user`, None where they are not known, which is so until the code is used.
    """

    user: str
    by: str
    by_groups: frozenset[str]
    policy: str
    rules: tuple[str, ...]
    kind: str
    namespace: str
    name: str
    starts_at: datetime
    expires_at: datetime
    is_approval: bool
    groups: frozenset[str] | None = None


def parse_issued(obj: Object, now: datetime) -> IssuedCode:
    """Read a OneTimeCode, from `now` on where it was not created yet; raises PolicyError for an end that is none."""
    spec, metadata = part(obj, "spec"), part(obj, "metadata")
    binding = part(spec, "binding")
    target = part(binding, "object")
    ends = rfc3339.read(str(spec.get("expiresAt") or ""))
    if ends is None:
        raise PolicyError(
            f"onetimecode/{metadata.get('name')}: spec.expiresAt is `{spec.get('expiresAt')}`",
            help="an instant such as `2026-01-31T17:00:00Z` is needed",
        )
    return IssuedCode(
        user=str(spec.get("user") or ""),
        by=str(spec.get("issuedBy") or ""),
        by_groups=frozenset(map(str, spec.get("issuedByGroups") or ())),
        policy=str(binding.get("policy") or ""),
        rules=tuple(map(str, binding.get("rules") or ())),
        kind=str(target.get("kind") or ""),
        namespace=str(target.get("namespace") or ""),
        name=str(target.get("name") or ""),
        starts_at=rfc3339.read(str(metadata.get("creationTimestamp") or "")) or now,
        expires_at=ends,
        is_approval=spec.get("verifier") == APPROVED,
    )


def issuing_policy(
    code: IssuedCode, policies: Iterable[GrantPolicy]
) -> tuple[GrantPolicy | None, tuple[Refusal, ...]]:
    """Return the first grant policy by name under which a code may be issued, or the refusals of the nearest one."""
    own = own_refusals(code)

    def refusals_of(policy: GrantPolicy) -> tuple[Refusal, ...]:
        return (*own, *_mode(code, policy), *_issuer(code, policy), *_end(code, policy))

    about = [one for one in policies if _concerns(one, code)]
    return nearest(about, refusals_of, own or (_nobody(code),))


def _nobody(code: IssuedCode) -> Refusal:
    where = f" in namespace `{code.namespace}`" if code.namespace else ""
    return Refusal(
        f"no grant policy lets `{code.user}` have codes for `{code.policy}`{where}",
        "`kubectl get grantpolicies` shows who may have which",
    )


def _concerns(policy: GrantPolicy, code: IssuedCode) -> bool:
    about = covers(policy, code.policy, code.rules or ("",), code.namespace)
    return about and concerns(policy, code.user, code.groups)


def own_refusals(code: IssuedCode) -> tuple[Refusal, ...]:
    """Return what speaks against a code under every grant policy."""
    return tuple(_own(code))


def _own(code: IssuedCode) -> Iterator[Refusal]:
    if not code.user or code.user == code.by:
        text = "approves an own request" if code.is_approval else "issues a code for oneself"
        yield Refusal(f"nobody {text}", "ask somebody else")
    if not code.by or code.by.startswith(SERVICE_ACCOUNT):
        yield Refusal("a service account issues no codes")
    if code.user.startswith("system:") and not code.is_approval:
        yield Refusal(f"`{code.user}` is no person", "grants are for controllers")
    texts = (code.policy, *code.rules, code.kind, code.name)
    if not (code.policy and code.kind and code.name) or any(map(wildcard.has_wildcard, texts)):
        yield Refusal("a code is for one object and named rules", "say POLICY/RULE:KIND/NAME")


def _mode(code: IssuedCode, policy: GrantPolicy) -> Iterator[Refusal]:
    if policy.codes == "off":
        yield Refusal(f"grantpolicy/{policy.name} has one-time codes off", "set spec.codes.mode")
    elif code.is_approval and policy.codes != "approve":
        yield Refusal(f"codes of grantpolicy/{policy.name} need no approval")
    elif not code.is_approval and policy.codes == "approve":
        # What is agreed to there is the content of one request; a code by hand would stand for any.
        yield Refusal(
            f"grantpolicy/{policy.name} has codes agreed to by what they are for",
            "take the id in the denial: kubectl kpolicy otp approve ID",
        )
    elif not code.is_approval and policy.strict_codes:
        yield Refusal(f"codes of grantpolicy/{policy.name} are claimed and not issued by hand")


def _issuer(code: IssuedCode, policy: GrantPolicy) -> Iterator[Refusal]:
    if policy.levels and not is_on_a_level(code.by, code.by_groups, policy):
        yield Refusal(
            f"`{code.by}` is on no level of approvers of grantpolicy/{policy.name}",
            "ask one of its approvers",
        )


def _end(code: IssuedCode, policy: GrantPolicy) -> Iterator[Refusal]:
    most = min(policy.issued_for or policy.max_for, LONGEST)
    if code.expires_at - code.starts_at > most + _SKEW:
        text = length_text(most)
        yield Refusal(
            f"the code ends later than {text} from now, the maximum of grantpolicy/{policy.name}",
            f"try --ttl {text}",
        )
