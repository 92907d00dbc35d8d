"""What counts beside a request: the grant policies that can be read, and the requester's other grants.

For everybody who judges a request before or after it is made, so that all of them count alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.fields import word
from engine.lang import rfc3339

from .lifecycle import OPEN
from .model import Grant, GrantPolicy, parse_grant_policy
from .requests import Circumstances

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from engine.model import Object


def state_of(obj: Object) -> str:
    """Return the state that a Grant object says it is in."""
    return word(obj, "status", "state") or "draft"


def readable_policies(objects: Iterable[Object]) -> tuple[list[GrantPolicy], list[str]]:
    """Return the grant policies among objects, and what is wrong with those that cannot be read."""
    found, problems = [], []
    for obj in objects:
        try:
            found.append(parse_grant_policy(obj))
        except EngineError as error:
            problems.append(error.message)
    return found, problems


def circumstances_of(grant: Grant, grants: Iterable[Object], now: datetime) -> Circumstances:
    """Return how many grants of the same requester are open, and when the last one for the same policy ended."""
    own = [
        obj
        for obj in grants
        if obj["spec"].get("requester") == grant.requester
        and (obj["metadata"].get("uid") != grant.uid or not grant.uid)
    ]
    ended = [
        at
        for obj in own
        if obj["spec"].get("policy") == grant.policy
        and (at := rfc3339.read(str((obj.get("status") or {}).get("endedAt") or "")))
    ]
    return Circumstances(now, sum(state_of(obj) in OPEN for obj in own), max(ended, default=None))
