"""The kinds of `policies.kyverno.io`: policies written in CEL, and their exceptions (rows L-01, X-20).

Apart from the classic kinds because the engine's tables of them are loaded only with the first such document.
"""

from __future__ import annotations

from typing import Final

from engine.model.kinds import CEL_KINDS, PolicyKind, loaded
from engine.parse.schema import Flag, Free, ListOf, MapOf, Shape, Text, Whole
from engine.parse.schema.celkinds import CEL_SPECS, KYVERNO

from .kinds import Column, CustomKind
from .others import CONDITION

_TEXT, _FREE, _FLAG, _WHOLE = Text(), Free(), Flag(), Whole()
STATUS = Shape(
    {
        "conditionStatus": Shape(
            {"ready": _FLAG, "message": _TEXT, "conditions": ListOf(CONDITION)}
        ),
        "autogen": Shape({"configs": _FREE}),
        "generated": _FLAG,
        "rulecount": MapOf(_WHOLE),
        "lastExecutionTime": _TEXT,
    }
)

_READY: Final = (
    Column("READY", ".status.conditionStatus.ready", "string"),
    Column("AGE", ".metadata.creationTimestamp", "date"),
)


def _policy(kind: PolicyKind) -> CustomKind:
    spec = loaded(kind.family.shape)
    return CustomKind(
        kind.group, kind.kind, kind.plural, kind.short,
        {version: {"spec": spec, "status": STATUS} for version in kind.versions},
        _READY if kind.family.shows_ready else _READY[1:],
        is_namespaced=kind.is_namespaced,
    )  # fmt: skip


KINDS: Final[tuple[CustomKind, ...]] = (
    *map(_policy, CEL_KINDS),
    CustomKind(
        KYVERNO, "PolicyException", "policyexceptions", "celpolex",
        {version: {"spec": spec} for version, spec in CEL_SPECS[KYVERNO]["PolicyException"].items()},
        (Column("Age", ".metadata.creationTimestamp", "date"),), has_status=False,
    ),
)  # fmt: skip
