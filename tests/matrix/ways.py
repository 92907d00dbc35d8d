"""The ways through us that a policy opens: what an actor writes for a cell, what sets it off, and by what its effect is seen.

Every way is played for all cells at once: everybody writes what he may, then the administrator does an everyday thing that sets
policies off, then time passes, then the store is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from controllers.loops.generate.origin import CLONE_SOURCE
from tests.matrix.actors import CONTROL, FOREIGN, OWN, is_ours
from tests.matrix.effects import CANARY, MARK, Effect
from tests.matrix.place import SIGNED_IMAGE, SIGNING_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.matrix.actors import Actor
    from tests.matrix.cells import Cell
    from tests.matrix.place import Place

_CONFIG_MAPS: Final = Effect("", "configmaps")
_IMAGE: Final = "image"
_FORMS: Final = {
    "Policy": Effect("kyverno.io", "policies"),
    "ClusterPolicy": Effect("kyverno.io", "clusterpolicies"),
    "CleanupPolicy": Effect("kyverno.io", "cleanuppolicies"),
    "ClusterCleanupPolicy": Effect("kyverno.io", "clustercleanuppolicies"),
    "NamespacedDeletingPolicy": Effect("policies.kyverno.io", "namespaceddeletingpolicies"),
    "DeletingPolicy": Effect("policies.kyverno.io", "deletingpolicies"),
}


class Way:
    """A way through a policy of one form; the subclasses say what its rule is."""

    word = ""
    forms: tuple[str, ...] = ("Policy", "ClusterPolicy")
    verbs: tuple[str, ...] = ()

    def __init__(self, form: str) -> None:
        self.form = form
        self.name = f"{self.word} ({form})" if form else self.word

    def is_left_out(self, actor: Actor) -> str:
        """Return why nobody plays this way as an actor who could, empty where somebody does."""
        if not self.form:
            return ""
        if is_ours(actor):
            return "our accounts write policies only where a policy of somebody's generates them"
        if self.within and actor is CONTROL:
            return "what a policy of a namespace does for its administrator it does for that of the cluster"
        return ""

    def cannot(self, effect: Effect) -> str:
        """Return why nothing of a kind is ever done this way, empty where it may be."""
        return ""

    async def stage(self, at: Place, cells: Sequence[Cell]) -> None:
        """Have there what the administrator has, before anybody asks for anything."""

    @property
    def written(self) -> Effect:
        """What the actor has to write to go this way."""
        return _FORMS[self.form]

    @property
    def within(self) -> str:
        """The namespace that it is written in."""
        return "" if self.form.startswith("Cluster") or self.form == "DeletingPolicy" else OWN

    def trigger(self, cell: Cell) -> str:
        """The ConfigMap whose creation sets the policies off, one for a dozen of an actor's: what a request sets off is written before it is answered."""
        number = int(cell.name.rpartition("-")[2]) // 12
        return f"go-{self.word}-{self.form}-{cell.actor.name}-{number}".lower().replace(" ", "-")

    def triggers(self, cells: Sequence[Cell]) -> list[str]:
        return list(dict.fromkeys(self.trigger(cell) for cell in cells if not cell.refusal))

    def prepare(self, at: Place, cell: Cell) -> None:
        """Have there what the effect is to happen to."""
        if cell.verb != "create":
            at.put(cell.effect, cell.namespace, cell.name)

    async def ask(self, at: Place, cell: Cell) -> None:
        """Write the policy of a cell as its actor."""
        status, message = await at.ask(cell.actor, "POST", at.path(self.written, self.within), self.document(at, cell))  # fmt: skip
        if status >= 300:
            cell.refusal = message or str(status)

    def document(self, at: Place, cell: Cell) -> dict[str, Any]:
        """Return the policy of a cell."""
        place = {"namespace": self.within} if self.within else {}
        return {
            "apiVersion": "kyverno.io/v1",
            "kind": self.form,
            "metadata": {"name": _policy_of(cell), **place},
            "spec": {"background": False, "rules": [self.rule(at, cell)]},
        }

    def rule(self, at: Place, cell: Cell) -> dict[str, Any]:
        """Return the rule of a cell."""
        raise NotImplementedError

    def on_trigger(self, cell: Cell) -> dict[str, Any]:
        return {"any": [{"resources": {"kinds": ["ConfigMap"], "names": [self.trigger(cell)]}}]}

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        """Do as the administrator what sets the policies off."""
        for name in self.triggers(cells):
            made = at.object_of(_CONFIG_MAPS, OWN, name) | {"data": {"empty": ""}}
            status, message = await at.ask(CONTROL, "POST", at.path(_CONFIG_MAPS, OWN), made)
            assert status == 201, message
        await at.quiet(1.2)

    def happened(self, at: Place, cell: Cell) -> bool:
        """Tell by the store whether the effect of a cell is there."""
        found = at.seen(cell.effect, cell.namespace, cell.name)
        if cell.verb == "delete":
            return found is None
        is_marked = MARK in ((found or {}).get("metadata", {}).get("annotations") or {})
        return found is not None and (cell.verb == "create" or is_marked)

    async def may(self, at: Place, cell: Cell) -> bool:
        """Ask the oracle."""
        return await at.may(cell.actor, cell.verb, cell.effect, cell.namespace)

    async def clear(self, at: Place, cells: Sequence[Cell]) -> None:
        """Take away the policies, so that the next way is gone alone."""
        for cell in cells:
            if not cell.refusal:
                await at.ask(
                    CONTROL, "DELETE", at.path(self.written, self.within, _policy_of(cell))
                )
        for name in self.triggers(cells):
            await at.ask(CONTROL, "DELETE", at.path(_CONFIG_MAPS, OWN, name))

    def mark(self) -> dict[str, Any]:
        return {"metadata": {"annotations": {MARK: self.word}}}

    def target(self, at: Place, cell: Cell) -> dict[str, Any]:
        kind = at.resource(cell.effect)
        place = {"namespace": cell.namespace} if cell.namespace else {}
        return {"apiVersion": kind.api_version, "kind": kind.kind, "name": cell.name, **place}


class Generate(Way):
    """A rule makes an object, or writes over one that is there."""

    word = "generate"
    verbs = ("create", "update")

    def rule(self, at: Place, cell: Cell) -> dict[str, Any]:
        made = at.object_of(cell.effect, cell.namespace, cell.name)
        notes = {**made["metadata"]["annotations"], MARK: self.word}
        data = {"metadata": {"annotations": notes}, **cell.effect.body}
        block = {**self.target(at, cell), "synchronize": cell.verb == "update", "data": data}
        return {"name": "r", "match": self.on_trigger(cell), "generate": block}


class Clone(Way):
    """A rule copies an object of a foreign namespace into the own one."""

    word = "clone"
    verbs = ("create",)

    def prepare(self, at: Place, cell: Cell) -> None:
        at.put(cell.effect, _other(cell), f"of-{cell.name}")

    def rule(self, at: Place, cell: Cell) -> dict[str, Any]:
        source = {"name": f"of-{cell.name}"}
        if cell.namespace:
            source["namespace"] = _other(cell)
        block = {**self.target(at, cell), "synchronize": False, "clone": source}
        return {"name": "r", "match": self.on_trigger(cell), "generate": block}

    async def may(self, at: Place, cell: Cell) -> bool:
        reads = await at.may(cell.actor, "get", cell.effect, _other(cell))
        return reads and await super().may(at, cell)


class LabelSource(Way):
    """A rule copies an object, and the source is labelled as one."""

    word = "clone and label its source"
    forms = ("Policy",)
    verbs = ("update",)

    def rule(self, at: Place, cell: Cell) -> dict[str, Any]:
        place = {"namespace": cell.namespace} if cell.namespace else {}
        block = {**self.target(at, cell), "name": f"copy-{cell.name}", "synchronize": True, "clone": {"name": cell.name, **place}}  # fmt: skip
        return {"name": "r", "match": self.on_trigger(cell), "generate": block}

    def happened(self, at: Place, cell: Cell) -> bool:
        found = at.seen(cell.effect, cell.namespace, cell.name) or {"metadata": {}}
        return CLONE_SOURCE in (found["metadata"].get("labels") or {})


class Mutate(Way):
    """A rule changes what somebody else writes."""

    word = "mutate"
    verbs = ("update",)

    def rule(self, at: Place, cell: Cell) -> dict[str, Any]:
        kind = at.resource(cell.effect)
        match = {"any": [{"resources": {"kinds": [f"{kind.group or ''}/{kind.version}/{kind.kind}".lstrip("/")], "names": [cell.name]}}]}  # fmt: skip
        return {"name": "r", "match": match, "mutate": {"patchStrategicMerge": self.mark()}}

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        for cell in cells:
            if not cell.refusal:
                path = at.path(cell.effect, cell.namespace, cell.name)
                await at.patch(CONTROL, path, {"metadata": {"annotations": {"touched": "1"}}})


class PinImage(Mutate):
    """A rule writes the digest of an image into what somebody else writes; where an image is named, it says itself."""

    word = "pin an image"

    def rule(self, at: Place, cell: Cell) -> dict[str, Any]:
        key = {"publicKeys": SIGNING_KEY, "rekor": {"ignoreTlog": True}}
        entry = {
            "imageReferences": ["*"], "mutateDigest": True, "verifyDigest": False, "required": False, "failureAction": "Enforce",
            "attestors": [{"entries": [{"keys": key}]}],
        }  # fmt: skip
        path = f"/metadata/annotations/{_IMAGE}"
        extractors = {at.resource(cell.effect).kind: [{"path": path}]}
        named = {key: value for key, value in super().rule(at, cell).items() if key != "mutate"}
        return {**named, "imageExtractors": extractors, "verifyImages": [entry]}

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        for cell in cells:
            if not cell.refusal:
                path = at.path(cell.effect, cell.namespace, cell.name)
                named = {"metadata": {"annotations": {_IMAGE: SIGNED_IMAGE}}}
                await at.patch(CONTROL, path, named)

    def happened(self, at: Place, cell: Cell) -> bool:
        found = at.seen(cell.effect, cell.namespace, cell.name) or {"metadata": {}}
        return "@sha256:" in str((found["metadata"].get("annotations") or {}).get(_IMAGE))


class MutateExisting(Way):
    """A rule changes an object that nobody writes just now."""

    word = "mutate existing"
    verbs = ("update",)

    def rule(self, at: Place, cell: Cell) -> dict[str, Any]:
        block = {"targets": [self.target(at, cell)], "patchStrategicMerge": self.mark()}
        return {"name": "r", "match": self.on_trigger(cell), "mutate": block}


class Retarget(MutateExisting):
    """The same, where only the trigger says which object: what is asked when the policy is written cannot know it."""

    word = "mutate existing by variables"

    def rule(self, at: Place, cell: Cell) -> dict[str, Any]:
        made = super().rule(at, cell)
        target = made["mutate"]["targets"][0]
        for key in ("name", "namespace"):
            if key in target:
                target[key] = "{{ request.object.data.empty }}" + target[key]
        return made


class CleanUp(Way):
    """A clean-up policy deletes."""

    word = "clean-up"
    forms = ("CleanupPolicy", "ClusterCleanupPolicy")
    verbs = ("delete",)

    def document(self, at: Place, cell: Cell) -> dict[str, Any]:
        kind, place = at.resource(cell.effect), {"namespace": self.within} if self.within else {}
        resources = {"kinds": [f"{kind.group}/{kind.version}/{kind.kind}".lstrip("/")], "names": [cell.name]}  # fmt: skip
        return {
            "apiVersion": "kyverno.io/v2",
            "kind": self.form,
            "metadata": {"name": _policy_of(cell), **place},
            "spec": {"schedule": "* * * * *", "match": {"any": [{"resources": resources}]}},
        }

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        await at.later(minutes=2)


class Delete(CleanUp):
    """A deleting policy deletes."""

    word = "deletion"
    forms = ("NamespacedDeletingPolicy", "DeletingPolicy")

    def document(self, at: Place, cell: Cell) -> dict[str, Any]:
        kind, place = at.resource(cell.effect), {"namespace": self.within} if self.within else {}
        rule = {"apiGroups": [kind.group], "apiVersions": [kind.version], "resources": [cell.effect.plural], "resourceNames": [cell.name]}  # fmt: skip
        return {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": self.form,
            "metadata": {"name": _policy_of(cell), **place},
            "spec": {"schedule": "* * * * *", "matchConstraints": {"resourceRules": [rule]}},
        }


class TtlLabel(Way):
    """Who may change an object writes when it is to be deleted."""

    word = "TTL label"
    forms = ("",)
    verbs = ("delete",)

    async def ask(self, at: Place, cell: Cell) -> None:
        labels = {"metadata": {"labels": {"cleanup.kyverno.io/ttl": "1m"}}}
        path = at.path(cell.effect, cell.namespace, cell.name)
        status, message = await at.patch(cell.actor, path, labels)
        if status >= 300:
            cell.refusal = message or str(status)

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        await at.later(minutes=2)

    async def clear(self, at: Place, cells: Sequence[Cell]) -> None:
        """Leave the labels: what was to be deleted is deleted, or is kept for good."""


class LookUp(Way):
    """A rule reads an object and says in a denial what is in it."""

    word = "look-up"
    verbs = ("get",)

    def __init__(self, form: str) -> None:
        super().__init__(form)
        self._said: dict[str, str] = {}

    def rule(self, at: Place, cell: Cell) -> dict[str, Any]:
        path = at.path(cell.effect, cell.namespace, cell.name)
        match = {"any": [{"resources": {"kinds": ["ConfigMap"], "names": [cell.name]}}]}
        return {
            "name": "r",
            "match": match,
            "context": [{"name": "seen", "apiCall": {"urlPath": path}}],
            "validate": {
                "failureAction": "Enforce",
                "message": "{{ seen.metadata.annotations.canary }}",
                "deny": {"conditions": {"any": [{"key": "a", "operator": "Equals", "value": "a"}]}},
            },
        }

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        for cell in cells:
            if not cell.refusal:
                made = at.object_of(_CONFIG_MAPS, OWN, cell.name)
                made["metadata"]["annotations"] = {}
                path = at.path(_CONFIG_MAPS, OWN) + "?dryRun=All"
                _, self._said[cell.name] = await at.ask(CONTROL, "POST", path, made)

    def happened(self, at: Place, cell: Cell) -> bool:
        return CANARY + cell.name in self._said.get(cell.name, "")


class SayMatched(LookUp):
    """A rule says in a denial what is in a Secret that it matches, which stands in Events, too; other kinds are what `view` shows."""

    word = "say what is matched"

    def cannot(self, effect: Effect) -> str:
        return "" if effect.plural == "secrets" else "what is no Secret is judged for everybody"

    def rule(self, at: Place, cell: Cell) -> dict[str, Any]:
        kind = at.resource(cell.effect).kind
        match = {"any": [{"resources": {"kinds": [kind], "names": [cell.name]}}]}
        said = {"message": "{{ request.object.metadata.annotations.canary }}", "deny": {}}
        return {"name": "r", "match": match, "validate": {"failureAction": "Enforce", **said}}

    def prepare(self, at: Place, cell: Cell) -> None:
        """Have nothing there: what was there and broke the rule before is forgiven."""

    async def set_off(self, at: Place, cells: Sequence[Cell]) -> None:
        for cell in cells:
            if not cell.refusal:
                path = at.path(cell.effect, cell.namespace) + "?dryRun=All"
                made = at.object_of(cell.effect, cell.namespace, cell.name)
                _, self._said[cell.name] = await at.ask(CONTROL, "POST", path, made)


def _policy_of(cell: Cell) -> str:
    return f"by-{cell.name}"


def _other(cell: Cell) -> str:
    return {OWN: FOREIGN, FOREIGN: OWN}.get(cell.namespace, "")


KINDS_OF_WAY: Final = (
    Generate,
    Clone,
    LabelSource,
    Mutate,
    PinImage,
    MutateExisting,
    Retarget,
    CleanUp,
    Delete,
    TtlLabel,
    LookUp,
    SayMatched,
)
WAYS: Final = tuple(made(form) for made in KINDS_OF_WAY for form in made.forms)
