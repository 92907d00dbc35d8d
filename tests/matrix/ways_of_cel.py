"""The ways through us that policies of policies.kyverno.io open: their rules are expressions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.matrix.actors import OWN
from tests.matrix.effects import MARK, Effect
from tests.matrix.ways import Way

if TYPE_CHECKING:
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


WAYS_OF_CEL = tuple(GenerateByExpression(form) for form in GenerateByExpression.forms)
