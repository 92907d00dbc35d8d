"""Fields of match and exclude blocks (rows A-30 to A-39)."""

from __future__ import annotations

from .nodes import TEXT, TEXT_MAP, TEXTS, ListOf, Shape, Text

SELECTOR = Shape(
    {
        "matchLabels": TEXT_MAP,
        "matchExpressions": ListOf(
            Shape({"key": TEXT, "operator": TEXT, "values": TEXTS}, ("key", "operator"))
        ),
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
