"""What belongs to policies written in CEL beside the policies themselves: their exceptions, and bindings of native policies.

Apart from `policy` so that commands that meet no such document do not load it. A policy of these kinds is a `Policy`
without rules: its expressions stay in `raw`, where its own compiler reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import NOWHERE, Location
from engine.record import field, record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .json import Block, Object


CEL_KEY: Final = "cel:"
"""What begins the identities of exceptions of policies.kyverno.io, which may be named as classic ones are."""


@record
class CelException:
    """A PolicyException of policies.kyverno.io (rows X-20 to X-22b); `references` are name and kind of policies."""

    name: str
    namespace: str
    api_version: str = "policies.kyverno.io/v1"
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
    at: Location = NOWHERE

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
    raw: Object = field(default_factory=dict)
    at: Location = NOWHERE

    @property
    def policy_kind(self) -> str:
        """The kind of policy that is bound."""
        return self.kind.removesuffix("Binding")
