"""The chain of admission webhooks: mutating ones in series by name, once more where asked, then validating ones side by side.

All validating webhooks finish even when one denies, and the first denial is the answer; a refused call is a denial or is passed over as
`failurePolicy` says. The texts are kube-apiserver's.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from kpolicy_sandbox.errors import ApiError, bad_request, internal
from kpolicy_sandbox.expressions import Expressions, needed
from kpolicy_sandbox.objects.patches import json_patch

from . import native
from .rules import Match, match
from .webhook_client import Caller, CallFailed, Subject, all_of, review_of

if TYPE_CHECKING:
    from kpolicy_sandbox.call import Call

    from .rules import Match

Object = dict[str, Any]
MUTATING = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
VALIDATING = "admissionregistration.k8s.io/validatingwebhookconfigurations"


@dataclass(slots=True)
class Chain:
    """Asks the webhooks that the store holds."""

    caller: Caller = field(default_factory=Caller)

    async def mutate(self, call: Call, subject: Subject) -> Any:
        """Return the object as the server's own policies and then the mutating webhooks leave it. ApiError for a denial or a failed call."""
        subject = replace(subject, obj=native.mutate(call, subject))
        asked: list[tuple[Object, Object | None]] = []
        for hook in _hooks(call, MUTATING):
            subject = replace(subject, obj=await self._mutated(call, hook, subject))
            asked.append((hook, subject.obj))
        for hook, seen in asked:
            if hook.get("reinvocationPolicy") == "IfNeeded" and seen != subject.obj:
                subject = replace(subject, obj=await self._mutated(call, hook, subject))
        return subject.obj

    async def _mutated(self, call: Call, hook: Object, subject: Subject) -> Any:
        found = self._match(call, hook, subject)
        if found is None:
            return subject.obj
        response = await self._ask(call, found, subject)
        if response is None:
            return subject.obj
        _judge(call, hook, response)
        if not response.get("patch") or subject.obj is None:
            return subject.obj
        if response.get("patchType") != "JSONPatch":
            raise internal(f'admission webhook "{hook["name"]}" has an unknown patchType')
        return _patched(call, found, subject.obj, response["patch"])

    async def validate(self, call: Call, subject: Subject) -> None:
        """Judge by the server's own policies, then ask the validating webhooks. ApiError for the first denial or failed call."""
        native.judge(call, subject)
        found = [
            one
            for hook in _hooks(call, VALIDATING)
            if (one := self._match(call, hook, subject)) is not None
        ]
        answers = await all_of([self._ask(call, one, subject) for one in found])
        first: BaseException | None = None
        for one, answer in zip(found, answers, strict=True):
            try:
                if isinstance(answer, BaseException):
                    raise answer
                if answer is not None:
                    _judge(call, one.hook, answer)
            except ApiError as error:
                first = first or error
        if first is not None:
            raise first

    def _match(self, call: Call, hook: Object, subject: Subject) -> Match | None:
        found = match(call, hook, subject.operation, (subject.obj, subject.old))
        if found is None or not hold(call, found, subject):
            return None
        return found

    async def _ask(self, call: Call, found: Match, subject: Subject) -> Object | None:
        """Return the answer; None when the call failed and that is to be passed over."""
        hook = found.hook
        if call.dry_run and hook.get("sideEffects") not in {"None", "NoneOnDryRun"}:
            raise bad_request(f'admission webhook "{hook["name"]}" does not support dry run')
        try:
            return await self.caller.ask(call, found, subject)
        except CallFailed as error:
            if hook.get("failurePolicy") == "Ignore":
                return None
            raise internal(
                f'failed calling webhook "{hook["name"]}": failed to call webhook: {error}'
            ) from error

    async def close(self) -> None:
        """Close open connections."""
        await self.caller.close()


def _hooks(call: Call, storage: str) -> list[Object]:
    return [
        hook
        for configuration in call.cluster.store.list(storage)
        for hook in configuration.get("webhooks") or ()
    ]


def _judge(call: Call, hook: Object, response: Object) -> None:
    """Pass on warnings; raise ApiError when the webhook denies, in kube-apiserver's words."""
    call.warnings += [str(text) for text in response.get("warnings") or ()]
    if response.get("allowed"):
        return
    status = response.get("status") or {}
    name, message, reason = hook["name"], status.get("message", ""), status.get("reason", "")
    prefix = f'admission webhook "{name}" denied the request'
    if message:
        text = f"{prefix}: {message}"
    elif reason:
        text = f"{prefix}: {reason}"
    else:
        text = f"{prefix} without explanation"
    code = status.get("code") or 400
    raise ApiError(max(code, 400), reason, text, status.get("details"))


def _patched(call: Call, found: Match, obj: Object, patch: str) -> Object:
    """Return the object with a webhook's patch, which is written against the version that the webhook saw."""
    from kpolicy_sandbox.objects.versions import presented

    try:
        operations = orjson.loads(base64.b64decode(patch))
    except ValueError as error:
        raise internal(f'the patch of webhook "{found.hook["name"]}" cannot be read') from error
    try:
        made = json_patch(presented(found.resource, obj), operations)
    except ApiError as error:
        raise internal(error.message) from error
    return presented(call.resource, made)


# matchConditions of webhooks: CEL expressions that all must hold before a webhook is asked.
#
# A condition that is false wins over one that fails; a failure counts as the webhook's own, so `failurePolicy` decides.


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
