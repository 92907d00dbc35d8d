"""The kinds of `policies.kyverno.io`: policies written in CEL, and their exceptions (rows L-01, X-20).

Apart from the classic kinds because the engine's tables of them are loaded only with the first such document.
"""

from __future__ import annotations

from typing import Final

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
    }
)

_READY: Final = (
    Column("READY", ".status.conditionStatus.ready", "string"),
    Column("AGE", ".metadata.creationTimestamp", "date"),
)


def _policy(kind: str, plural: str, short: str, *, is_namespaced: bool) -> CustomKind:
    specs = CEL_SPECS[KYVERNO][kind]
    versions = {version: {"spec": spec, "status": STATUS} for version, spec in specs.items()}
    return CustomKind(KYVERNO, kind, plural, short, versions, _READY, is_namespaced=is_namespaced)


KINDS: Final[tuple[CustomKind, ...]] = (
    _policy("ValidatingPolicy", "validatingpolicies", "vpol", is_namespaced=False),
    _policy("NamespacedValidatingPolicy", "namespacedvalidatingpolicies", "nvpol", is_namespaced=True),
    CustomKind(
        KYVERNO, "PolicyException", "policyexceptions", "celpolex",
        {version: {"spec": spec} for version, spec in CEL_SPECS[KYVERNO]["PolicyException"].items()},
        (Column("Age", ".metadata.creationTimestamp", "date"),), has_status=False,
    ),
)  # fmt: skip
