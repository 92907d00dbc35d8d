"""Fields of conditions, context entries and what they share (rows A-50 to A-61)."""

from __future__ import annotations

from .nodes import FLAG, FREE, TEXT, TEXTS, ListOf, MapOrList, Shape, Text

CONDITION = Shape({"key": FREE, "operator": TEXT, "value": FREE, "message": TEXT}, open=True)
"""Open: a misspelt field of a condition is found by the policy checks, which answer in Kyverno's words (row A-99)."""

ANY_ALL_CONDITIONS = Shape({"any": ListOf(CONDITION), "all": ListOf(CONDITION)})

CONDITIONS = MapOrList(ANY_ALL_CONDITIONS, ListOf(CONDITION))
"""Also as a flat list, which means `all` (row A-60)."""

_PAIRS = ListOf(Shape({"key": TEXT, "value": FREE}, ("key", "value")))

REGISTRY_CREDENTIALS = Shape(
    {
        "allowInsecureRegistry": FLAG,
        "providers": ListOf(Text(enum=("default", "amazon", "azure", "google", "github"))),
        "secrets": TEXTS,
    }
)

API_CALL = Shape(
    {
        "urlPath": TEXT,
        "method": Text(enum=("GET", "POST"), default="GET"),
        "data": _PAIRS,
        "service": Shape(
            {
                "url": TEXT,
                "headers": ListOf(Shape({"key": TEXT, "value": TEXT}, ("key", "value"))),
                "caBundle": TEXT,
            },
            ("url",),
        ),
        "jmesPath": TEXT,
        "default": FREE,
    }
)

CONTEXT = ListOf(
    Shape(
        {
            "name": TEXT,
            "variable": Shape({"value": FREE, "jmesPath": TEXT, "default": FREE}),
            "configMap": Shape({"name": TEXT, "namespace": TEXT}, ("name",)),
            "apiCall": API_CALL,
            "imageRegistry": Shape(
                {
                    "reference": TEXT,
                    "jmesPath": TEXT,
                    "imageRegistryCredentials": REGISTRY_CREDENTIALS,
                },
                ("reference",),
            ),
            "globalReference": Shape({"name": TEXT, "jmesPath": TEXT}, ("name",)),
        },
        ("name",),
    )
)
