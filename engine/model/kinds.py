"""The kinds of policies, each declared once: what it is called, where it is served, and what reads, checks and evaluates it.

Everything that goes through kinds of policies (reading, checking, stores, webhooks, roles, custom resources, commands) goes
through this table, so that a new kind is one row, an evaluator and its tests. Modules are named as text, `module:name`, and
loaded with the first policy of the kind: most processes never meet most kinds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from engine.errors import PolicyError
from engine.record import record

from .resources import resource_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .json import Block, Object

CLASSIC_GROUP: Final = "kyverno.io"
CEL_GROUP: Final = "policies.kyverno.io"
KUBERNETES: Final = "Kubernetes"
"""The evaluation mode of policies in CEL that judge objects."""

_CEL_PARSER: Final = "engine.parse.celpolicies:parse_cel_policy"
_CEL_LINTER: Final = "engine.lint.celpolicies:lint_cel_policy"
_CEL_SHAPES: Final = "engine.parse.schema.celkinds"


@record
class Family:
    """One kind of policy in its two scopes: `kind` for the cluster, `twin` for one namespace.

    `versions` are served, the stored one first. `shape` holds the fields of the spec, `parser` makes a value of a document,
    `linter` finds what is wrong with the value. `evaluator` makes rules of a policy and its exceptions; a family without one is
    read, stored and listed, and not evaluated. `effects` yields what a policy does to objects (`engine.model.result`); one
    without it does nothing but answer. `route` ends the webhook path of policies written in CEL, `source` names them in reports,
    `is_timed` are those that work by a schedule and are asked about no request, `shares_evidence` those of which one verifies
    for others what a request holds, `is_scanned` those whose answers about what is there already go into reports.
    `stages` are those of admission at which it is asked, under a path of the kind's own; with several of them each path says which.
    `failure_policy` is that of policies which name none, `hears_all` those that are told of every operation on what they concern,
    `refuses` those that refuse requests for what they find.
    """

    kind: str
    twin: str
    short: str
    twin_short: str
    source: str
    shape: str
    group: str = CEL_GROUP
    versions: tuple[str, ...] = ("v1beta1", "v1", "v1alpha1")
    twin_versions: tuple[str, ...] = ("v1beta1", "v1")
    parser: str = _CEL_PARSER
    linter: str = _CEL_LINTER
    evaluator: str = ""
    effects: str = ""
    is_timed: bool = False
    shows_ready: bool = True
    shares_evidence: bool = False
    is_scanned: bool = True
    failure_policy: str = "Fail"
    hears_all: bool = False
    refuses: bool = False
    stages: tuple[str, ...] = ("validate",)

    @property
    def is_cel(self) -> bool:
        """Whether its policies are written in CEL."""
        return self.group == CEL_GROUP


@record
class PolicyKind:
    """One kind of one scope, as an API server has it."""

    family: Family
    kind: str
    short: str
    versions: tuple[str, ...]
    is_namespaced: bool

    @property
    def group(self) -> str:
        """The API group."""
        return self.family.group

    @property
    def plural(self) -> str:
        """The name of the resource."""
        return resource_of(self.kind)

    @property
    def is_cel(self) -> bool:
        """Whether its policies are written in CEL."""
        return self.family.is_cel

    @property
    def is_evaluated(self) -> bool:
        """Whether there is something that evaluates it."""
        return bool(self.family.evaluator)

    @property
    def route(self) -> str:
        """What ends the webhook path and begins the webhook name; empty for kinds that have no path of their own."""
        return "" if self.family.is_timed or not self.is_cel else self.short


FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        "ClusterPolicy", "Policy", "cpol", "pol", "kyverno",
        "engine.parse.schema:POLICY_SPECS",
        group=CLASSIC_GROUP, versions=("v1", "v2beta1"), twin_versions=("v1", "v2beta1"),
        parser="engine.parse:parse_policy", linter="engine.lint.policies:lint_policy",
        evaluator="engine.evaluate.policy_set:compile_policy", refuses=True,
    ),
    Family(
        "ClusterCleanupPolicy", "CleanupPolicy", "ccleanpol", "cleanpol", "",
        "engine.parse.schema:CLEANUP_SPECS",
        group=CLASSIC_GROUP, versions=("v2", "v2beta1", "v2alpha1"), twin_versions=("v2", "v2beta1", "v2alpha1"),
        parser="engine.parse:parse_cleanup_policy", linter="engine.lint.cleanup:lint_cleanup",
        evaluator="engine.cleanup.plan:compile_cleanup", is_timed=True,
    ),
    Family(
        "ValidatingPolicy", "NamespacedValidatingPolicy", "vpol", "nvpol", "KyvernoValidatingPolicy",
        f"{_CEL_SHAPES}:VALIDATING",
        evaluator="engine.evaluate.cel.validating:compile_validating", refuses=True,
    ),
    Family(
        "MutatingPolicy", "NamespacedMutatingPolicy", "mpol", "nmpol", "KyvernoMutatingPolicy",
        f"{_CEL_SHAPES}:MUTATING",
        evaluator="engine.evaluate.cel.mutating_policies:compile_mutating_policy",
        effects="engine.evaluate.cel.mutating_policies:effects", stages=("mutate",),
    ),
    Family(
        "GeneratingPolicy", "NamespacedGeneratingPolicy", "gpol", "ngpol", "KyvernoGeneratingPolicy",
        f"{_CEL_SHAPES}:GENERATING", shows_ready=False, is_scanned=False, failure_policy="Ignore", hears_all=True,
        evaluator="engine.evaluate.cel.generating:compile_generating",
        effects="engine.generate.foreseen:effects_of",
    ),
    Family(
        "DeletingPolicy", "NamespacedDeletingPolicy", "dpol", "ndpol", "KyvernoDeletingPolicy",
        f"{_CEL_SHAPES}:DELETING", linter="engine.lint.deleting:lint_deleting",
        evaluator="engine.evaluate.cel.deleting:compile_deleting",
        effects="engine.evaluate.cel.deleting:effects_of", is_timed=True,
    ),
    Family(
        "ImageValidatingPolicy", "NamespacedImageValidatingPolicy", "ivpol", "nivpol", "KyvernoImageValidatingPolicy",
        f"{_CEL_SHAPES}:IMAGE_VALIDATING",
        evaluator="engine.evaluate.cel.imagevalidating:compile_image_validating",
        linter="engine.lint.imagepolicies:lint_image_policy",
        effects="engine.evaluate.cel.imagevalidating:effects_of", shares_evidence=True, refuses=True,
        stages=("validate", "mutate"),
    ),
)  # fmt: skip
"""One row for each kind of policy."""


KINDS: Final[list[PolicyKind]] = []
"""All kinds, that of the cluster before that of namespaces, in the order of their rows."""

CEL_KINDS: Final[list[PolicyKind]] = []
"""The kinds whose policies are written in CEL."""

ASKED_KINDS: Final[list[PolicyKind]] = []
"""The kinds that requests and scans ask."""

NATIVE: Final = frozenset({"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"})
"""The API server's own kinds of policies, which it evaluates without us."""

BY_NAME: Final[dict[str, PolicyKind]] = {}
"""Kinds by the name of the kind, which no two groups share."""

NAMESPACED: Final[set[str]] = set()
"""The kinds whose policies live in a namespace and concern what is in it."""


def declare(family: Family) -> None:
    """Add a row to the table; to be done before anything that goes through kinds is loaded."""
    for kind in (
        PolicyKind(family, family.kind, family.short, family.versions, False),
        PolicyKind(family, family.twin, family.twin_short, family.twin_versions, True),
    ):
        KINDS.append(kind)
        BY_NAME[kind.kind] = kind
        if kind.is_cel:
            CEL_KINDS.append(kind)
        if not family.is_timed:
            ASKED_KINDS.append(kind)
        if kind.is_namespaced:
            NAMESPACED.add(kind.kind)


for _family in FAMILIES:
    declare(_family)


def kind_of(obj: Object) -> PolicyKind | None:
    """Return the kind of policy that an object is, None for any other object."""
    found = BY_NAME.get(str(obj.get("kind")))
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return found if found is not None and found.group == group else None


def plurals(group: str) -> tuple[str, ...]:
    """Return the resources of a group in order."""
    return tuple(sorted(one.plural for one in KINDS if one.group == group))


def identity(kind: str, key: str) -> str:
    """Return what tells a policy from all others: its key, with the short name of the kind before it for those in CEL.

    Native policies have that of their kind before it.
    """
    known = BY_NAME.get(kind)
    if known is None and kind in NATIVE:
        return f"{kind}:{key}"
    return f"{known.short}:{key}" if known is not None and known.is_cel else key


def rules_of(spec: Block) -> Sequence[Block]:
    """Return the resource rules by which the spec of a policy in CEL says what it concerns."""
    return (spec.get("matchConstraints") or {}).get("resourceRules") or ()


def mode_of(spec: Block) -> str:
    """Return the evaluation mode of a policy in CEL: what it judges, KUBERNETES for objects."""
    return str((spec.get("evaluation") or {}).get("mode") or KUBERNETES)


def is_enabled(spec: Block, name: str) -> bool:
    """Tell whether a part of a policy's evaluation is enabled: admission and background unless it says no, others if it says yes."""
    said = ((spec.get("evaluation") or {}).get(name) or {}).get("enabled")
    return said is not False if name in ("admission", "background") else said is True


def skips_background(spec: Block) -> bool:
    """Tell whether a policy in CEL leaves out what the background controller asks for: unless it says no."""
    return (spec.get("evaluation") or {}).get("skipBackgroundRequests") is not False


def is_of_cel(policy: str) -> bool:
    """Tell whether the policy with an identity is written in CEL: it is one rule, and has no name for it."""
    return ":" in policy


def named(text: str) -> tuple[PolicyKind, str]:
    """Return the kind and the key of the policy that an identity means.

    Raises PolicyError for a short name that no kind written in CEL has, and for a key that is not of the kind's scope.
    """
    short, colon, key = text.rpartition(":")
    if not colon:
        return BY_NAME["Policy" if "/" in key else "ClusterPolicy"], key
    kind = next((one for one in CEL_KINDS if one.short == short), None)
    if kind is None:
        raise PolicyError(
            f"`{short}:` of `{text}` is no short name of a kind of policy",
            help=f"write one of {', '.join(f'{one.short}:' for one in CEL_KINDS)}",
        )
    if kind.is_namespaced is not ("/" in key) or not all(key.split("/")):
        form = "NAMESPACE/NAME" if kind.is_namespaced else "NAME"
        raise PolicyError(f"`{text}` names no {kind.kind}", help=f"write {short}:{form}")
    return kind, key


def loaded(reference: str) -> Any:
    """Return what `module:name` refers to."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
