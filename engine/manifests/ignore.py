"""Which differences do not count: the default lists and the policy's `ignoreFields`, compiled to one test per object.

For the manifests rule, after the comparison. Fields are matched from the start of the path, at a path boundary: `status`
covers `status.phase` but neither `statusFoo` nor `data.nginx-status.conf`. Upstream searches anywhere and takes dots for
any character, which hides much more than the list says.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.errors import PolicyError
from engine.fields import part
from engine.lang import regex
from engine.record import field, record

from .compare import MISSING, Difference, Path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.model import Block, Json, Object


_BOUNDARY = "\x00"
_INDEX = re.compile(r"\[([0-9]+|\*)\]")
_MAX_FIELD = 1_000


@record
class IgnoredFields:
    """What a policy lets differ; `extra` are its own bindings of fields to objects."""

    extra: tuple[_Binding, ...] = ()
    _tests: dict[tuple[str, ...], Callable[[str], bool]] = field(default_factory=dict)

    def keep(self, found: Iterable[Difference], signed: Object, actual: Object) -> list[Difference]:
        """Return the differences that count, given both whole objects."""
        fields = tuple(
            one for binding in self.extra if binding.covers(actual) for one in binding.fields
        )
        return [
            one
            for one in found
            if not (
                self._is_default(one, signed, actual)
                or (fields and self._test(fields, user_written=True)(_text(one.path)))
            )
        ]

    def _is_default(self, one: Difference, signed: Object, actual: Object) -> bool:
        kind = str(actual.get("kind"))
        if one.key == NAMESPACE:
            return one.signed is MISSING or signed.get("kind") != "PolicyException"
        if one.signed is MISSING and one.actual == _server_value(kind, one.path):
            return True
        built_in = (*IGNORED_EVERYWHERE, *IGNORED_BY_KIND.get(kind, ()))
        return self._test(built_in, user_written=False)(_text(one.path))

    def _test(self, fields: tuple[str, ...], *, user_written: bool) -> Callable[[str], bool]:
        test = self._tests.get(fields)
        if test is None:
            test = _compile(fields, user_written=user_written)
            self._tests[fields] = test
        return test


@record
class _Binding:
    """Fields, and the objects whose fields they are (none named: all objects)."""

    fields: tuple[str, ...]
    objects: tuple[Mapping[str, str], ...]

    def covers(self, obj: Object) -> bool:
        return not self.objects or any(_selects(one, obj) for one in self.objects)


def compile_ignored(blocks: Sequence[Block] | None) -> IgnoredFields:
    """Return the test for a rule's `ignoreFields`; raise PolicyError for shapes it cannot have."""
    return IgnoredFields(tuple(_binding(block) for block in blocks or ()))


def _binding(block: Block) -> _Binding:
    fields, objects = block.get("fields") or (), block.get("objects") or ()
    if isinstance(fields, str) or not all(isinstance(one, str) for one in fields):
        raise PolicyError("`ignoreFields.fields` must be a list of paths")
    if any(len(one) > _MAX_FIELD for one in fields):
        raise PolicyError(f"a path of `ignoreFields.fields` is longer than {_MAX_FIELD} characters")
    if not all(isinstance(one, dict) for one in objects):
        raise PolicyError("`ignoreFields.objects` must be a list of selectors")
    return _Binding(
        tuple(one for one in fields if one),
        tuple({key: str(text) for key, text in one.items()} for one in objects),
    )


def _selects(selector: Mapping[str, str], obj: Object) -> bool:
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    names = part(obj, "metadata")
    actual = {
        "group": group,
        "version": version,
        "kind": str(obj.get("kind") or ""),
        "name": str(names.get("name") or ""),
        "namespace": str(names.get("namespace") or ""),
    }
    return all(_fits(selector.get(key, ""), value) for key, value in actual.items())


def _fits(wanted: str, actual: str) -> bool:
    """Compare one attribute: empty or `*` any, `-` none, trailing `*` a prefix, commas between alternatives."""
    if wanted in {"", "*"}:
        return True
    if wanted == "-":
        return not actual
    return any(
        actual.startswith(one[:-1]) if one.endswith("*") else actual == one
        for one in (part.strip() for part in wanted.split(","))
    )


def _server_value(kind: str, path: Path) -> Json:
    values = SET_BY_THE_SERVER.get(kind)
    if values is None:
        return object()
    return values.get(".".join(part for part in path if not part.isdigit()), object())


def _text(path: Path) -> str:
    return _BOUNDARY.join(part.replace(_BOUNDARY, "?") for part in path)


def _compile(fields: tuple[str, ...], *, user_written: bool) -> Callable[[str], bool]:
    anything = ".*" if user_written else r"[^\x00]*"
    expressions = [_expression(one, anything) for one in fields]
    if not user_written:
        expressions = ["|".join(expressions)]
    patterns = [regex.compile(rf"(?s)^(?:{one})(?:\x00|$)") for one in expressions]
    return lambda text: any(one.search(text) for one in patterns)


def _expression(text: str, anything: str) -> str:
    """Translate one field: `.` parts a path or is itself, `*` is anything, quotes keep dots together."""
    pieces: list[str] = []
    is_quoted = False
    for character in _INDEX.sub(r".\1", text):
        if character == '"':
            is_quoted = not is_quoted
        elif character == "*":
            pieces.append(anything)
        elif character == "." and not is_quoted:
            pieces.append(r"[.\x00]")
        else:
            pieces.append(re.escape(character))
    return "".join(pieces)


_EVERYWHERE: Final = (
    "metadata.namespace",
    "metadata.managedFields",
    "metadata.resourceVersion",
    "metadata.selfLink",
    "metadata.creationTimestamp",
    "metadata.generation",
    "metadata.uid",
    "metadata.finalizers",
    "status",
    "metadata.labels.app.kubernetes.io/instance",
    "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
    "metadata.annotations.namespace",
    "metadata.annotations.control-plane.alpha.kubernetes.io/leader",
    "metadata.annotations.deployment.kubernetes.io/revision",
    "metadata.annotations.deprecated.daemonset.template.generation",
)
_POD_DEFAULTS: Final = (
    "containers.*.imagePullPolicy",
    "containers.*.terminationMessagePath",
    "containers.*.terminationMessagePolicy",
    "containers.*.ports.*.protocol",
    "dnsPolicy",
    "restartPolicy",
    "schedulerName",
    "terminationGracePeriodSeconds",
)
_POD_PLACES: Final = ("spec.", "spec.template.spec.", "spec.jobTemplate.spec.template.spec.")

IGNORED_EVERYWHERE: Final = (
    *_EVERYWHERE,
    *(place + field for place in _POD_PLACES for field in _POD_DEFAULTS),
)

IGNORED_BY_KIND: Final[dict[str, tuple[str, ...]]] = {
    "Pod": (
        "spec.volumes.*.name",
        "spec.volumes.*.projected",
        "spec.volumes.*.configMap.defaultMode",
        "spec.containers.*.volumeMounts",
        "spec.tolerations",
        "spec.enableServiceLinks",
        "spec.preemptionPolicy",
        "spec.priority",
        "spec.serviceAccount",
    ),
    "Deployment": (
        "spec.progressDeadlineSeconds",
        "spec.revisionHistoryLimit",
        "spec.strategy",
        "spec.template.metadata.creationTimestamp",
    ),
    "CustomResourceDefinition": ("spec.conversion.strategy", "spec.names.listKind"),
    "Service": (
        "spec.ports.*.nodePort",
        "spec.clusterIP",
        "spec.clusterIPs.0",
        "spec.sessionAffinity",
        "spec.type",
        "spec.ipFamilies",
        "spec.ipFamilyPolicy",
        "spec.internalTrafficPolicy",
    ),
    **dict.fromkeys(
        ("ClusterPolicy", "Policy"),
        (
            "metadata.annotations.pod-policies.kyverno.io/autogen-controllers",
            "spec.failurePolicy",
            "spec.background",
            "spec.validationFailureAction",
        ),
    ),
    "ServiceAccount": ("secrets.*.name", "imagePullSecrets.*.name"),
    "Route": ("spec.host",),
}

SET_BY_THE_SERVER: Final[dict[str, dict[str, str]]] = {
    "Pod": {"spec.serviceAccountName": "default", "spec.serviceAccount": "default"},
    "Service": {"spec.ports.protocol": "TCP"},
}
"""Additions that count as unchanged only with exactly this value: elsewhere they would give rights away."""

NAMESPACE: Final = "metadata.namespace"
"""Ignored for all kinds but PolicyExceptions: copied elsewhere, an exception would excuse other people's objects."""
