"""The ways through us that policies of policies.kyverno.io open: their rules are expressions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.matrix.actors import OWN
from tests.matrix.effects import MARK, Effect
from tests.matrix.ways import Way

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.matrix.cells import Cell
    from tests.matrix.place import Place

_GROUP = "policies.kyverno.io"


class GenerateByExpression(Way):
    """A generating policy makes an object that its expression writes out."""

    word = "generate by expression"
    forms = ("NamespacedGeneratingPolicy", "GeneratingPolicy")
    verbs = ("create",)

    @property
    def written(self) -> Effect:
        return Effect(_GROUP, f"{self.form.lower().removesuffix('y')}ies")

    @property
    def within(self) -> str:
        return OWN if self.form.startswith("Namespaced") else ""

    def document(self, at: Place, cell: Cell) -> dict[str, Any]:
        place = {"namespace": self.within} if self.within else {}
        rule = {
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps"], "resourceNames": [self.trigger(cell)],
        }  # fmt: skip
        return {
            "apiVersion": f"{_GROUP}/v1",
            "kind": self.form,
            "metadata": {"name": f"by-{cell.name}", **place},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "generate": [{"expression": self.expression(at, cell)}],
            },
        }

    def expression(self, at: Place, cell: Cell) -> str:
        made = at.object_of(cell.effect, cell.namespace, cell.name)
        notes = {**made["metadata"]["annotations"], MARK: self.word}
        kind = at.resource(cell.effect)
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        metadata = {"name": cell.name, "annotations": notes}
        return self.applied(cell, json.dumps({**head, "metadata": metadata, **cell.effect.body}))

    def applied(self, cell: Cell, text: str) -> str:
        """Return the call that generates an object; that of a policy of a namespace cannot name another one."""
        place = "" if self.within else f'"{cell.namespace}", '
        return f"generator.Apply({place}[{text}])"


class GenerateNative(Way):
    """A policy has the API server judge by a native policy, which our account writes for it."""

    word = "native generation"
    forms = ("ClusterPolicy", "ValidatingPolicy", "MutatingPolicy")
    verbs = ("create",)
    within = ""

    @property
    def written(self) -> Effect:
        group = "kyverno.io" if self.form == "ClusterPolicy" else _GROUP
        return Effect(group, f"{self.form.lower().removesuffix('y')}ies")

    def cannot(self, effect: Effect) -> str:
        family = "mutatingadmission" if self.form == "MutatingPolicy" else "validatingadmission"
        is_made = effect.plural.startswith(family) and effect.group == _ADMISSION
        return (
            "" if is_made else "a policy becomes a native policy and its binding, and nothing else"
        )

    def document(self, at: Place, cell: Cell) -> dict[str, Any]:
        group = self.written.group
        return {
            "apiVersion": f"{group}/v1",
            "kind": self.form,
            "metadata": {"name": f"by-{cell.name}"},
            "spec": _NATIVE_SPECS[self.form],
        }

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        await at.quiet(1.5)

    def happened(self, at: Place, cell: Cell) -> bool:
        prefix = {"ClusterPolicy": "cpol", "ValidatingPolicy": "vpol"}.get(self.form, "mpol")
        suffix = "-binding" if cell.effect.plural.endswith("bindings") else ""
        return at.seen(cell.effect, "", f"{prefix}-by-{cell.name}{suffix}") is not None


_ADMISSION: Final = "admissionregistration.k8s.io"
_RULE: Final = {
    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
    "resources": ["configmaps"], "resourceNames": ["nothing"],
}  # fmt: skip
_CHECK: Final = [{"expression": "true"}]
_MATCHED: Final = {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["nothing"]}}]}
_NATIVE_SPECS: Final[dict[str, dict[str, Any]]] = {
    "ClusterPolicy": {
        "rules": [{"name": "r", "match": _MATCHED, "validate": {"cel": {"generate": True, "expressions": _CHECK}}}],
    },
    "ValidatingPolicy": {
        "autogen": {"validatingAdmissionPolicy": {"enabled": True}},
        "matchConstraints": {"resourceRules": [_RULE]},
        "validations": _CHECK,
    },
    "MutatingPolicy": {
        "autogen": {"mutatingAdmissionPolicy": {"enabled": True}},
        "matchConstraints": {"resourceRules": [{**_RULE, "apiGroups": ["x.io"], "resources": ["xs"]}]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}],
    },
}  # fmt: skip


WAYS_OF_CEL = tuple(
    kind(form) for kind in (GenerateByExpression, GenerateNative) for form in kind.forms
)
