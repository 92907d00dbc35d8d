"""Classic policies as the engine holds them: headers as fields, rule bodies as their authors wrote them.

Bodies stay decoded documents because each language (patterns, patches, conditions) has a compiler of its own that reads
them once. Field names and defaults are those of `kyverno.io/v1` (rows A-10 to A-25 of the semantics).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine import vocabulary
from engine.errors import NOWHERE, Location
from engine.record import field, record

from .kinds import identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .json import Block, Json, Object


@record
class ActionOverride:
    """Another failure action (`Audit` or `Enforce`) for some namespaces."""

    action: str
    namespaces: tuple[str, ...] = ()
    namespace_selector: Block | None = None


def mutates_digest(entry: Block) -> bool:
    """Tell whether an entry of `verifyImages` has the digest of an image written into the object, as it does unless it says no."""
    return entry.get("mutateDigest") is not False


@record
class Rule:
    """One rule; exactly one of validate, mutate, generate and verify_images is set in an accepted policy."""

    name: str
    match: Block = field(default_factory=dict)
    exclude: Block = field(default_factory=dict)
    context: tuple[Block, ...] = ()
    preconditions: Json = None
    cel_preconditions: tuple[Block, ...] = ()
    image_extractors: Block = field(default_factory=dict)
    validate: Block | None = None
    mutate: Block | None = None
    generate: Block | None = None
    verify_images: tuple[Block, ...] = ()
    report_properties: Mapping[str, str] = field(default_factory=dict)
    skip_background_requests: bool = True
    raw: Block = field(default_factory=dict)

    @property
    def pins_images(self) -> bool:
        """Whether it writes the digests of images into objects."""
        return any(map(mutates_digest, self.verify_images))


@record
class Policy:
    """A ClusterPolicy, or a Policy (then `namespace` is set)."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = "kyverno.io/v1"
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    apply_rules: str = "All"
    failure_policy: str = "Fail"
    failure_action: str = "Audit"
    failure_action_overrides: tuple[ActionOverride, ...] = ()
    emit_warning: bool = False
    admission: bool = True
    background: bool = True
    raw: Object = field(default_factory=dict)
    at: Location = NOWHERE

    @property
    def key(self) -> str:
        """`name` of a ClusterPolicy, `namespace/name` of a Policy: how exceptions and reports name it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def identity(self) -> str:
        """What tells it from all others, of other kinds too (`engine.model.kinds.identity`)."""
        return identity(self.kind, self.key)


@record
class PolicyReference:
    """The rules of one policy that an exception names; rule names may hold wildcards (row X-02)."""

    policy_name: str
    rule_names: tuple[str, ...]


@record
class PolicyException:
    """A classic PolicyException of v2, v2beta1 or v2alpha1 (rows X-01 to X-06)."""

    name: str
    namespace: str
    api_version: str = vocabulary.KYVERNO_V2
    references: tuple[PolicyReference, ...] = ()
    match: Block = field(default_factory=dict)
    conditions: Json = None
    pod_security: tuple[Block, ...] = ()
    background: bool = True
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: str = ""
    raw: Object = field(default_factory=dict)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def identity(self) -> str:
        """What tells it from all other exceptions, those of policies.kyverno.io too."""
        return self.key


@record
class CleanupPolicy:
    """A CleanupPolicy (then `namespace` is set) or ClusterCleanupPolicy of any served version (row C-01)."""

    kind: str
    name: str
    namespace: str = ""
    schedule: str = ""
    match: Block = field(default_factory=dict)
    exclude: Block = field(default_factory=dict)
    context: tuple[Block, ...] = ()
    conditions: Json = None
    propagation: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: str = ""
    last_execution_at: str = ""
    raw: Object = field(default_factory=dict)

    @property
    def key(self) -> str:
        """`name`, or `namespace/name` of the namespaced kind."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


# What belongs to policies written in CEL beside the policies themselves: their exceptions, and bindings of native policies.
#
# A policy of these kinds is a `Policy` without rules: its expressions stay in `raw`, where its own compiler reads them.

CEL_KEY: Final = "cel:"
"""What begins the identities of exceptions of policies.kyverno.io, which may be named as classic ones are."""


@record
class CelException:
    """A PolicyException of policies.kyverno.io (rows X-20 to X-22b); `references` are name and kind of policies."""

    name: str
    namespace: str
    references: tuple[tuple[str, str], ...] = ()
    match_conditions: tuple[Block, ...] = ()
    images: tuple[str, ...] = ()
    allowed_values: tuple[str, ...] = ()
    report_result: str = "skip"
    expires_at: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: str = ""
    raw: Object = field(default_factory=dict)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def identity(self) -> str:
        """What tells it from all other exceptions, classic ones too."""
        return f"{CEL_KEY}{self.key}"


@record
class Binding:
    """A ValidatingAdmissionPolicyBinding or MutatingAdmissionPolicyBinding."""

    kind: str
    name: str
    policy_name: str
    actions: tuple[str, ...] = ()
    param_reference: Block | None = None
    match_resources: Block = field(default_factory=dict)

    @property
    def policy_kind(self) -> str:
        """The kind of policy that is bound."""
        return self.kind.removesuffix("Binding")
