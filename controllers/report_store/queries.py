"""The queries of lists: which page, as of which version, and the token by which the next one is asked for."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

import orjson

from controllers.kube import Invalid

from .reading import Asked
from .selecting import selector_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .batch import Place

SEVERITY: Final = "severity"
"""By what lists may be asked to be sorted: the report with the severest chosen result first, the newest among equals."""

MOST_LISTED: Final = 500
"""Reports that are written, or asked for by their names, at once."""
_MOST_PAGE: Final = 10_000
_MOST_DIGITS: Final = 18


def page_asked(query: Mapping[str, str], space: str | None) -> Asked:
    """Return the page that a query asks for; raises Invalid for one that no server would take."""
    selector = selector_of(query)
    limit = min(number(query, "limit"), _MOST_PAGE)
    given, match = number(query, "resourceVersion"), query.get("resourceVersionMatch", "")
    if order := query.get("sortBy", ""):
        if order != SEVERITY or not limit or match == "Exact" or query.get("continue"):
            raise Invalid(
                f"sortBy takes `{SEVERITY}`, with a limit, and neither continues nor has an exact version"
            )
        return Asked(space, selector, least=given, limit=limit, is_worst_first=True)
    if only := query.get("only", ""):
        if match == "Exact" or query.get("continue"):
            raise Invalid("only neither continues nor has an exact version")
        return Asked(space, selector, least=given, only=_places(only))
    if text := query.get("continue", ""):
        if given or match:
            raise Invalid("specifying resource version is not allowed when using continue")
        version, after = _read_token(text)
        return Asked(space, selector, version, after=after, limit=limit)
    if match and (match not in ("Exact", "NotOlderThan") or not query.get("resourceVersion")):
        raise Invalid("resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match == "Exact":
        if not given:
            raise Invalid('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
        return Asked(space, selector, given, limit=limit)
    return Asked(space, selector, least=given, limit=limit)


def _places(text: str) -> tuple[Place, ...]:
    """Return places that stand as `NAMESPACE/NAME`, or as `NAME` of the cluster's; raises Invalid for too many."""
    places = [one.rpartition("/") for one in dict.fromkeys(text.split(","))]
    if len(places) > MOST_LISTED:
        raise Invalid(f"only may name {MOST_LISTED} reports")
    return tuple((namespace, name) for namespace, _, name in places)


def number(query: Mapping[str, str], name: str) -> int:
    """Return a number of a query, 0 where it is missing; raises Invalid."""
    text = query.get(name) or "0"
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise Invalid(f"{name}: Invalid value: `{text[:40]}`")
    return int(text)


def is_set(query: Mapping[str, str], name: str) -> bool:
    """Tell whether a switch of a query is on."""
    return query.get(name) in ("true", "1")


def token(version: int, last: Place) -> str:
    """Return the token of the page after a place, as of a version."""
    return base64.urlsafe_b64encode(orjson.dumps([version, *last])).decode()


def _read_token(text: str) -> tuple[int, Place]:
    try:
        version, namespace, name = orjson.loads(base64.urlsafe_b64decode(text))
    except (ValueError, TypeError) as error:
        raise Invalid("continue key is not valid") from error
    if not (isinstance(version, int) and isinstance(namespace, str) and isinstance(name, str)):
        raise Invalid("continue key is not valid")
    return version, (namespace, name)
