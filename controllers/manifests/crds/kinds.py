"""The kinds that are installed: names, short names, printer columns and versions, as upstream has them.

What the specs hold comes from the engine's tables (`SPECS`) for every kind that the engine parses, so that what a cluster
accepts and what the engine reads cannot drift apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from engine.model.kinds import CEL_GROUP, CEL_KINDS, CLASSIC_GROUP, PolicyKind, loaded
from engine.parse.schema import SPECS, Node, Shape
from engine.parse.schema.celkinds import CEL_SPECS

from . import others
from .words import WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

REPORTS = "wgpolicyk8s.io"
OPEN_REPORTS = "openreports.io"
EPHEMERAL_REPORTS = "reports.kyverno.io"


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column; one with a priority is shown by `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True)
class CustomKind:
    """One kind. `versions` hold the fields beside metadata of each version; the first is the stored one.

    `words` say what fields mean, `about` what the kind is for.
    """

    group: str
    kind: str
    plural: str
    short: str
    versions: Mapping[str, Mapping[str, Node]]
    columns: tuple[Column, ...] = ()
    is_namespaced: bool = True
    has_status: bool = field(default=True)
    words: Mapping[str, str] = field(default_factory=lambda: WORDS)
    about: str = ""

    @property
    def name(self) -> str:
        """The name of the CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"


_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")
_READY: Final = '.status.conditions[?(@.type == "Ready")]'
_POLICY: Final = (
    Column("ADMISSION", ".spec.admission", "boolean"),
    Column("BACKGROUND", ".spec.background", "boolean"),
    Column("READY", f"{_READY}.status"),
    Column("AGE", ".metadata.creationTimestamp", "date"),
    Column("FAILURE POLICY", ".spec.failurePolicy", "string", 1),
    Column("VALIDATE", ".status.rulecount.validate", "integer", 1),
    Column("MUTATE", ".status.rulecount.mutate", "integer", 1),
    Column("GENERATE", ".status.rulecount.generate", "integer", 1),
    Column("VERIFY IMAGES", ".status.rulecount.verifyimages", "integer", 1),
    Column("MESSAGE", f"{_READY}.message"),
)
_CLEANUP: Final = (Column("Schedule", ".spec.schedule"), _AGE)
_REQUEST: Final = (
    Column("Policy", ".spec.policy"),
    Column("RuleType", ".spec.requestType"),
    Column("ResourceKind", ".spec.resource.kind"),
    Column("ResourceName", ".spec.resource.name"),
    Column("ResourceNamespace", ".spec.resource.namespace"),
    Column("status", ".status.state"),
    _AGE,
)
_ENTRY: Final = (
    Column("READY", ".status.ready", "boolean"),
    _AGE,
    Column("REFRESH INTERVAL", ".spec.apiCall.refreshInterval"),
    Column("LAST REFRESH", ".status.lastRefreshTime", "date"),
)
_CEL: Final = (
    Column("READY", ".status.conditionStatus.ready", "string"),
    Column("AGE", ".metadata.creationTimestamp", "date"),
)
_COUNTS: Final = tuple(
    Column(name, f".summary.{name.lower()}", "integer")
    for name in ("Pass", "Fail", "Warn", "Error", "Skip")
)
_REPORT: Final = (Column("Kind", ".scope.kind"), Column("Name", ".scope.name"), *_COUNTS, _AGE)


def _parsed(kind: str, status: Shape | None) -> dict[str, dict[str, Node]]:
    """Return the versions of a kind that the engine parses."""
    below: dict[str, Node] = {"status": status} if status else {}
    return {version: {"spec": spec, **below} for version, spec in SPECS[kind].items()}


def _of_cel(kind: PolicyKind) -> CustomKind:
    """Return a kind of policies written in CEL (rows L-01, X-20)."""
    spec = loaded(kind.family.shape)
    return CustomKind(
        kind.group, kind.kind, kind.plural, kind.short,
        {version: {"spec": spec, "status": others.CEL_STATUS} for version in kind.versions},
        _CEL if kind.family.shows_ready else _CEL[1:],
        is_namespaced=kind.is_namespaced,
    )  # fmt: skip


def _same(spec: Node, status: Node, *versions: str) -> dict[str, dict[str, Node]]:
    return {version: {"spec": spec, "status": status} for version in versions}


KINDS: Final[tuple[CustomKind, ...]] = (
    CustomKind(
        CLASSIC_GROUP, "ClusterPolicy", "clusterpolicies", "cpol",
        _parsed("ClusterPolicy", others.POLICY_STATUS), _POLICY, is_namespaced=False,
    ),
    CustomKind(
        CLASSIC_GROUP, "Policy", "policies", "pol", _parsed("Policy", others.POLICY_STATUS), _POLICY
    ),
    CustomKind(
        CLASSIC_GROUP, "PolicyException", "policyexceptions", "polex",
        _parsed("PolicyException", None), (_AGE,), has_status=False,
    ),
    CustomKind(
        CLASSIC_GROUP, "CleanupPolicy", "cleanuppolicies", "cleanpol",
        _parsed("CleanupPolicy", others.CLEANUP_STATUS), _CLEANUP,
    ),
    CustomKind(
        CLASSIC_GROUP, "ClusterCleanupPolicy", "clustercleanuppolicies", "ccleanpol",
        _parsed("ClusterCleanupPolicy", others.CLEANUP_STATUS), _CLEANUP, is_namespaced=False,
    ),
    CustomKind(
        CLASSIC_GROUP, "UpdateRequest", "updaterequests", "ur",
        _same(others.UPDATE_REQUEST, others.UPDATE_REQUEST_STATUS, "v2"), _REQUEST,
    ),
    CustomKind(
        CLASSIC_GROUP, "GlobalContextEntry", "globalcontextentries", "gctxentry",
        _same(others.GLOBAL_ENTRY, others.GLOBAL_ENTRY_STATUS, "v2", "v2beta1", "v2alpha1"),
        _ENTRY, is_namespaced=False,
    ),
    CustomKind(
        REPORTS, "PolicyReport", "policyreports", "polr",
        {"v1alpha2": others.REPORT}, _REPORT, has_status=False,
    ),
    CustomKind(
        REPORTS, "ClusterPolicyReport", "clusterpolicyreports", "cpolr",
        {"v1alpha2": others.REPORT}, _REPORT, is_namespaced=False, has_status=False,
    ),
    CustomKind(
        OPEN_REPORTS, "Report", "reports", "reps",
        {"v1alpha1": others.OPEN_REPORT}, _REPORT, has_status=False,
    ),
    CustomKind(
        OPEN_REPORTS, "ClusterReport", "clusterreports", "creps",
        {"v1alpha1": others.OPEN_REPORT}, _REPORT, is_namespaced=False, has_status=False,
    ),
    CustomKind(
        EPHEMERAL_REPORTS, "EphemeralReport", "ephemeralreports", "ephr",
        {"v1": {"spec": others.EPHEMERAL}}, (_AGE,), has_status=False,
    ),
    CustomKind(
        EPHEMERAL_REPORTS, "ClusterEphemeralReport", "clusterephemeralreports", "cephr",
        {"v1": {"spec": others.EPHEMERAL}}, (_AGE,), is_namespaced=False, has_status=False,
    ),
    *map(_of_cel, CEL_KINDS),
    CustomKind(
        CEL_GROUP, "PolicyException", "policyexceptions", "celpolex",
        {version: {"spec": spec} for version, spec in CEL_SPECS[CEL_GROUP]["PolicyException"].items()},
        (_AGE,), has_status=False,
    ),
)  # fmt: skip
"""In the order in which they are installed. Reports of `openreports.io` are written behind a flag, and ephemeral ones are only there for tools
that look for the kinds."""
