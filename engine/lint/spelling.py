"""Fields of requests and of metadata that no request has: in JMESPath they come to null, in CEL to an error, and nobody is told.

Only what Kubernetes fixes for every kind is known here: the fields of an AdmissionRequest (with the roles that classic policies get
beside it), of its user, of its kinds and resources, and of ObjectMeta. What an object holds beside its metadata depends on its kind and
is left alone, but for a name that is `metadata` misspelt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang.jmes.query import tree_of
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.lang.jmes.parser import Tree

_CLOSE: Final = 0.75
_OF_METADATA: Final = (
    "name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp"
    " deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields clusterName"
)
_KIND: Final = frozenset(("group", "version", "kind"))
_RESOURCE: Final = frozenset(("group", "version", "resource"))
_USER: Final = frozenset(("username", "uid", "groups", "extra"))
_OF_REQUEST: Final = (
    "uid kind resource subResource requestKind requestResource requestSubResource name namespace operation"
    " userInfo object oldObject dryRun options roles clusterRoles"
)
_METADATA: Final = frozenset(_OF_METADATA.split())
_REQUEST: Final = frozenset(_OF_REQUEST.split())
_FIELDS: Final[Mapping[tuple[str, ...], frozenset[str]]] = {
    ("request",): _REQUEST,
    ("request", "userInfo"): _USER,
    ("request", "kind"): _KIND,
    ("request", "requestKind"): _KIND,
    ("request", "resource"): _RESOURCE,
    ("request", "requestResource"): _RESOURCE,
    ("request", "object", "metadata"): _METADATA,
    ("request", "oldObject", "metadata"): _METADATA,
    ("object", "metadata"): _METADATA,
    ("oldObject", "metadata"): _METADATA,
}
"""The fields that are there below a path; nothing is known of other paths."""
_OBJECTS: Final = frozenset(
    {("request", "object"), ("request", "oldObject"), ("object",), ("oldObject",)}
)
_RIGHT_SEES_ANOTHER: Final = frozenset(
    ("index_expression", "projection", "filter_projection", "value_projection", "flatten", "pipe")
)
"""Nodes whose first child alone is evaluated on what the whole expression is evaluated on."""


@record
class Misspelling:
    """A field that is not there: what to say, and the path as it is written and as it was meant, None where that is not known."""

    message: str
    fix: tuple[str, str] | None = None


def misspelt_in_jmespath(expression: str) -> Iterator[Misspelling]:
    """Yield what is misspelt in an expression on a rule's variables. Raises ExpressionError for one that cannot be read."""
    yield from misspelt(_paths_of_tree(tree_of(expression)), ("request",))


def misspelt(paths: Iterable[tuple[str, ...]], roots: tuple[str, ...]) -> Iterator[Misspelling]:
    """Yield what is misspelt in rows of field names that begin with one of the roots, each once."""
    told: set[Misspelling] = set()
    for path in paths:
        if path and path[0] in roots and (found := _fault(path)) and found not in told:
            told.add(found)
            yield found


def _fault(path: tuple[str, ...]) -> Misspelling | None:
    for length in range(1, len(path)):
        above, name = path[:length], path[length]
        known = _FIELDS.get(above)
        if known is None and above in _OBJECTS and nearest(name, ("metadata",)):
            known = frozenset(("metadata",))
        if known is not None and name not in known:
            near = nearest(name, known)
            place = ".".join(above)
            text = f"`{place}` has no field `{name}`"
            if not near:
                return Misspelling(text)
            meant = f"{place}.{near}"
            return Misspelling(f"{text}; did you mean `{meant}`?", (f"{place}.{name}", meant))
    return None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that a person most likely meant, empty where none is close; a name in another case is closest."""
    # words that differ much in length are not close
    by_lower = {
        one.lower(): one
        for one in sorted(known)
        if 2 * min(len(one), len(name)) >= _CLOSE * (len(one) + len(name))
    }
    if not by_lower:
        return ""
    from difflib import get_close_matches  # here: nothing is misspelt in most policies

    found = get_close_matches(name.lower(), by_lower, 1, _CLOSE)
    return by_lower[found[0]] if found else ""


def _paths_of_tree(tree: Tree) -> Iterator[tuple[str, ...]]:
    """Yield the rows of fields that an expression reads from what it is evaluated on."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        children = node["children"]
        match node["type"]:
            case "subexpression":
                names = _leading_fields(children)
                yield names
                if not names:
                    waiting.append(children[0])
            case "slice" | "expref":
                pass  # numbers, and an expression on each element of something
            case kind if kind in _RIGHT_SEES_ANOTHER:
                waiting += children[:1]
            case _:
                waiting += reversed(children)


def _leading_fields(children: list[Tree]) -> tuple[str, ...]:
    names: list[str] = []
    for child in children:
        if child["type"] != "field":
            break
        names.append(child["value"])
    return tuple(names)
