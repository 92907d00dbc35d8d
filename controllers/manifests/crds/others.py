"""Fields of kinds that are written by the controllers and not parsed by the engine: requests, entries, reports, statuses."""

from __future__ import annotations

from typing import Final

from engine.model import Status
from engine.parse.schema import Flag, Free, ListOf, MapOf, Node, Shape, Text, Whole
from engine.parse.schema.conditions import API_CALL
from engine.parse.schema.nodes import replaced
from engine.vocabulary import SEVERITIES

_TEXT, _FREE, _FLAG, _WHOLE = Text(), Free(), Flag(), Whole()
_OBJECT_NAME = Shape(dict.fromkeys(("apiVersion", "kind", "namespace", "name", "uid"), _TEXT))
_REFERENCE = Shape({**_OBJECT_NAME.fields, "fieldPath": _TEXT, "resourceVersion": _TEXT})
CONDITION = Shape(
    {
        "type": _TEXT,
        "status": Text(enum=("True", "False", "Unknown")),
        "reason": _TEXT,
        "message": _TEXT,
        "lastTransitionTime": _TEXT,
        "observedGeneration": _WHOLE,
    },
    ("type", "status"),
)
POLICY_STATUS = Shape(
    {
        "ready": _FLAG,
        "conditions": ListOf(CONDITION),
        "autogen": Shape({"rules": ListOf(_FREE)}),
        "rulecount": Shape(
            dict.fromkeys(("generate", "mutate", "validate", "verifyimages"), _WHOLE)
        ),
        "validatingadmissionpolicy": Shape({"generated": _FLAG, "message": _TEXT}),
    }
)
CEL_STATUS = Shape(
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
CLEANUP_STATUS = Shape({"conditions": ListOf(CONDITION), "lastExecutionTime": _TEXT})

UPDATE_REQUEST = Shape(
    {
        "requestType": Text(enum=("mutate", "generate", "cel-generate", "cel-mutate")),
        "policy": _TEXT,
        "rule": _TEXT,
        "resource": _OBJECT_NAME,
        "synchronize": _FLAG,
        "deleteDownstream": _FLAG,
        "ruleContext": ListOf(
            Shape(
                {
                    "rule": _TEXT,
                    "trigger": _OBJECT_NAME,
                    "synchronize": _FLAG,
                    "deleteDownstream": _FLAG,
                    "cacheRestore": _FLAG,
                },
                ("rule",),
            )
        ),
        "context": Shape(
            {
                "userInfo": Shape(
                    {"roles": ListOf(_TEXT), "clusterRoles": ListOf(_TEXT), "userInfo": _FREE}
                ),
                "admissionRequestInfo": Shape({"admissionRequest": _FREE, "operation": _TEXT}),
            }
        ),
    },
    ("policy", "requestType"),
)
UPDATE_REQUEST_STATUS = Shape(
    {
        "state": Text(enum=("Pending", "Failed", "Completed", "Skip")),
        "message": _TEXT,
        "retryCount": _WHOLE,
        "generatedResources": ListOf(_OBJECT_NAME),
        "changedTargets": MapOf(ListOf(_TEXT)),
    }
)

GLOBAL_ENTRY = Shape(
    {
        "kubernetesResource": Shape(
            dict.fromkeys(("group", "version", "resource", "namespace"), _TEXT),
            ("resource", "version"),
        ),
        "apiCall": replaced(API_CALL, refreshInterval=_TEXT, retryLimit=_WHOLE),
        "projections": ListOf(Shape({"name": _TEXT, "jmesPath": _TEXT}, ("name", "jmesPath"))),
    },
    one_of=("kubernetesResource", "apiCall"),
)
GLOBAL_ENTRY_STATUS = Shape(
    {"ready": _FLAG, "lastRefreshTime": _TEXT, "conditions": ListOf(CONDITION)}
)

_STATUSES = tuple(map(str, Status))
_RESULTS = ListOf(
    Shape(
        {
            "source": _TEXT,
            "policy": _TEXT,
            "rule": _TEXT,
            "resources": ListOf(_REFERENCE),
            "resourceSelector": _FREE,
            "message": _TEXT,
            "result": Text(enum=_STATUSES),
            "scored": _FLAG,
            "properties": MapOf(_TEXT),
            "timestamp": Shape({"seconds": _WHOLE, "nanos": _WHOLE}, ("seconds", "nanos")),
            "category": _TEXT,
            "severity": Text(enum=SEVERITIES),
        },
        ("policy",),
    )
)
_SUMMARY = Shape(dict.fromkeys(_STATUSES, _WHOLE))
REPORT: Final[dict[str, Node]] = {
    "scope": _REFERENCE,
    "scopeSelector": _FREE,
    "results": _RESULTS,
    "summary": _SUMMARY,
}
"""Fields of a report beside its metadata; a report has no spec (row R-01)."""

OPEN_REPORT: Final[dict[str, Node]] = {**REPORT, "source": _TEXT, "configuration": _FREE}
"""Fields of a report of `openreports.io` beside its metadata (row R-11)."""

EPHEMERAL = Shape(
    {
        "owner": Shape({**_OBJECT_NAME.fields, "controller": _FLAG, "blockOwnerDeletion": _FLAG}),
        "results": _RESULTS,
        "summary": _SUMMARY,
    }
)
