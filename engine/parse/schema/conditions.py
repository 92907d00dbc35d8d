"""Fields of conditions, context entries and what they share (rows A-50 to A-61)."""

from .nodes import FLAG, FREE, TEXT, TEXT_MAP, TEXTS, ListOf, MapOrList, Shape, Text

CONDITION = Shape({"key": FREE, "operator": TEXT, "value": FREE, "message": TEXT}, open=True)
"""Open: a misspelt field of a condition is found by the policy checks, which answer in Kyverno's words (row A-99)."""

ANY_ALL_CONDITIONS = Shape({"any": ListOf(CONDITION), "all": ListOf(CONDITION)})

CONDITIONS = MapOrList(ANY_ALL_CONDITIONS, ListOf(CONDITION))
"""Also as a flat list, which means `all` (row A-60)."""

_PAIRS = ListOf(Shape({"key": TEXT, "value": FREE}, ("key", "value")))
FAILURE_POLICY = Text(enum=("Fail", "Ignore"))
NAMED_EXPRESSION = Shape({"name": TEXT, "expression": TEXT}, ("name", "expression"))
VALIDATIONS = ListOf(
    Shape(
        {"expression": TEXT, "message": TEXT, "messageExpression": TEXT, "reason": TEXT},
        ("expression",),
    )
)
AUDIT_ANNOTATIONS = ListOf(
    Shape({"key": TEXT, "valueExpression": TEXT}, ("key", "valueExpression"))
)
PARAM_KIND = Shape({"apiVersion": TEXT, "kind": TEXT})

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


# Fields of match and exclude blocks (rows ).

SELECTOR = Shape(
    {
        "matchLabels": TEXT_MAP,
        "matchExpressions": ListOf(
            Shape({"key": TEXT, "operator": TEXT, "values": TEXTS}, ("key", "operator"))
        ),
    }
)

PARAM_REFERENCE = Shape(
    {
        "name": TEXT,
        "namespace": TEXT,
        "selector": SELECTOR,
        "parameterNotFoundAction": Text(enum=("Allow", "Deny")),
    }
)
RESOURCES = Shape(
    {
        "kinds": TEXTS,
        "name": TEXT,
        "names": TEXTS,
        "namespaces": TEXTS,
        "annotations": TEXT_MAP,
        "selector": SELECTOR,
        "namespaceSelector": SELECTOR,
        "operations": ListOf(Text(enum=("CREATE", "CONNECT", "UPDATE", "DELETE"))),
    }
)

SUBJECT = Shape({"kind": TEXT, "apiGroup": TEXT, "name": TEXT, "namespace": TEXT}, ("kind", "name"))

_USERS = {"subjects": ListOf(SUBJECT), "roles": TEXTS, "clusterRoles": TEXTS}

FILTER = Shape({"resources": RESOURCES, **_USERS})

ANY_ALL = Shape({"any": ListOf(FILTER), "all": ListOf(FILTER)})
"""Match blocks of exceptions, cleanup policies and v2beta1 policies."""

MATCH = Shape({**ANY_ALL.fields, "resources": RESOURCES, **_USERS})
"""Match blocks of v1 policies, with the legacy single block."""
