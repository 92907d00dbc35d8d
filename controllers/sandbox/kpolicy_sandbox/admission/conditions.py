"""matchConditions of webhooks: CEL expressions that all must hold before a webhook is asked.

A condition that is false wins over one that fails; a failure counts as the webhook's own, so `failurePolicy` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import internal
from kpolicy_sandbox.expressions import Expressions, needed

from .webhook_client import Subject, review_of

if TYPE_CHECKING:
    from kpolicy_sandbox.call import Call

    from .rules import Match


def hold(call: Call, found: Match, subject: Subject) -> bool:
    """Tell whether the conditions of a matching webhook hold. ApiError when one fails and that is not to be passed over."""
    conditions = found.hook.get("matchConditions")
    if not conditions:
        return True
    request = review_of(call, found, subject)["request"]
    bindings = {"request": request, "object": request["object"], "oldObject": request["oldObject"]}
    expressions, failure = needed(call.cluster.expressions), ""
    for condition in conditions:
        verdict = _verdict(expressions, condition["expression"], bindings)
        if verdict is False:
            return False
        if verdict is not True:
            failure = f"{condition.get('name', '')}: {verdict}"
    if not failure:
        return True
    if found.hook.get("failurePolicy") == "Ignore":
        return False
    raise internal(f'failed calling webhook "{found.hook["name"]}": matchCondition {failure}')


def _verdict(expressions: Expressions, text: str, bindings: dict[str, Any]) -> bool | str:
    try:
        found = expressions.compile(text)(bindings)
    except ValueError as error:
        return str(error)
    return found if isinstance(found, bool) else "the expression is not boolean"
