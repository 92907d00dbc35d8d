"""Decisions as values: what one rule said about one object, and what it would change or make."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from engine.record import field, lazy, record

from .kinds import BY_NAME, identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .json import Block, Object


class Status(StrEnum):
    """The five answers of a rule (row R-03)."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    WARN = "warn"
    ERROR = "error"
    SKIP = "skip"


class RuleType(StrEnum):
    """What a rule does; the names are Kyverno's."""

    VALIDATION = "Validation"
    MUTATION = "Mutation"
    GENERATION = "Generation"
    IMAGE_VERIFY = "ImageVerify"


@record
class Outcome:
    """Status and message that one handler (pattern, deny, podSecurity, manifests, …) comes to.

    `path` is the slash form of where it failed; `properties` go into the report row.
    """

    status: Status
    message: str = ""
    path: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


@record
class Target:
    """One object that a mutate-existing rule would change: before and after, and by what part of it that is written."""

    before: Object
    after: Object
    subresource: str = ""


@record
class Forgiven:
    """Why a rule did not fail: the object broke it before, too. What is wrong with it now, and what was then."""

    now: tuple[Outcome, ...]
    before: tuple[Outcome, ...]


PINNING: Final = "mutateDigest"
"""The name under which policies on images answer that they wrote digests, or could not."""


@record
class ImageFinding:
    """What a rule found of one image, named as the object names it.

    `is_tried` says that a signature or attestation was looked for, `is_wanted` that the policy does not let the image pass
    unless some policy of the request verifies it. A pass may be remembered for `digest` under `confirmation`, which stands
    for everything that was asked (empty: it must not be).
    """

    image: str
    is_verified: bool = False
    is_tried: bool = False
    is_wanted: bool = False
    digest: str = ""
    confirmation: str = ""


@record
class RuleResult:
    """What one rule of one policy said about one object; `patched` is None where it left that object as it was.

    `forgiven` is set on a skip that stands for failures which the object had before; `policy_kind` is the kind of the policy.
    """

    policy: str
    rule: str
    type: RuleType
    status: Status
    message: str = ""
    path: str = ""
    enforce: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    exceptions: tuple[str, ...] = ()
    patched: Object | None = None
    targets: tuple[Target, ...] = ()
    generated: tuple[Object, ...] = ()
    forgiven: Forgiven | None = None
    images: tuple[ImageFinding, ...] = ()
    policy_kind: str = ""

    @lazy
    def identity(self) -> str:
        """What tells its policy from all others (`engine.model.kinds.identity`)."""
        return identity(self.policy_kind, self.policy)

    @lazy
    def is_of_cel(self) -> bool:
        """Whether its policy is written in CEL: one answer for the policy, which may be of a rule without a name."""
        kind = BY_NAME.get(self.policy_kind)
        return kind is not None and kind.is_cel


# What a policy written in CEL does to objects, as values: for asking whether its author may do that himself.
#
# Each family of kinds that does anything names a function of its own that yields these (`Family.effects`); whoever asks for rights
# knows the kinds of the cluster and what the verbs are called there.


class Power(StrEnum):
    """How far a change of an object may give somebody power: not at all, by metadata alone, by anything."""

    NONE = "none"
    OF_METADATA = "metadata"
    OF_ALL = "all"


VERBS: Final = {"CREATE": "create", "UPDATE": "update", "CONNECT": "create"}
"""What somebody must be allowed to do who has others do it as he says, by the operation; a command is run by creating a connection."""


@record
class ResourceEffect:
    """Verbs that a policy uses on the objects of a resource rule; without a rule on anything, because only a run decides.

    `made` stands for a rule where the objects themselves are known: a block as classic generate rules have it.
    `at` is where the document says so, `power` what of a role, a binding or a policy may be written.
    """

    at: str
    verbs: tuple[str, ...]
    rule: Block | None = None
    made: Block | None = None
    power: Power = Power.NONE
