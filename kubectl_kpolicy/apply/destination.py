"""`apply -o FILE`: objects as policies leave them, and those they generate, in one file or a file each in a folder (row K-02).

Every policy that mutates writes each object, be it changed or not, except one that its patches do not fit; one that names targets
writes these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import vocabulary
from engine.autogen import names_of, place_of
from engine.errors import EngineError, reason_of
from engine.model import Object, Policy, RuleType

from .names import name_of, reference
from .narration import changed_objects, targets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from .processor import PolicyAnswer
    from .rows import Row


class Destination:
    """A file (ends in `.yaml` or `.yml`), emptied first, or a folder, made where it is missing."""

    def __init__(self, path: str) -> None:
        from pathlib import Path  # here: most runs write no files

        self._path = Path(path)
        self._is_file = self._path.suffix in (".yaml", ".yml") and not self._path.is_dir()
        self._started: set[Path] = set()
        try:
            if self._is_file:
                self._path.write_text("")
                self._started.add(self._path)
            else:
                self._path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed(error) from error

    def add(self, obj: Object, answers: Sequence[PolicyAnswer], mutating: Sequence[Policy]) -> None:
        """Write an object as each of the `mutating` policies leaves it, and what answers on it changed or made beside."""
        # here: few runs write files
        from engine.evaluate.cel.mutating_policies import names_targets

        found = {one.policy.identity: one for one in answers if one.type is RuleType.MUTATION}
        for policy in mutating:
            if names_targets(policy.raw["spec"]):
                continue
            left = found[policy.identity].patched if policy.identity in found else obj
            if left:
                obj = left
                self._write(obj, "mutated")
        written = {policy.identity for policy in mutating}
        for answer in answers:
            for what, changed in changed_objects(answer):
                if what == "generated" or answer.policy.identity not in written:
                    self._write(changed, what)
            for target in targets_of(answer):
                self._write(target, "mutated")

    def _write(self, obj: Object, what: str) -> None:
        from engine.lang.yaml.write import GO, write  # here: few runs write objects

        name = (name_of(obj) or "object").replace("/", "_")
        path = self._path if self._is_file else self._path / f"{name}-{what}.yaml"
        mode = "a" if path in self._started else "w"
        self._started.add(path)
        try:
            with path.open(mode) as file:
                file.write(f"{write(obj, GO, sort=True)}\n---\n\n")
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> EngineError:
        return EngineError(f"cannot write to `{self._path}`: {reason_of(error)}")


# `apply --generate-exceptions`: a PolicyException for every object that fails, with a TTL (row X-10).
#
# Unlike Kyverno's CLI, results of namespaced policies are taken too, and one exception names all failing rules of a policy
# on an object.

_POD_MAKERS = {
    "CronJob": ["CronJob", "Job", "Pod"],
    "Deployment": ["Deployment", "ReplicaSet", "Pod"],
    "Job": ["Job", "Pod"],
    "DaemonSet": ["DaemonSet", "Pod"],
    "StatefulSet": ["StatefulSet", "Pod"],
    "ReplicaSet": ["ReplicaSet", "Pod"],
    "ReplicationController": ["ReplicationController", "Pod"],
}


def exceptions_for(rows: Iterable[Row], ttl: str) -> list[dict[str, Any]]:
    """Return one exception for each policy and object with failing rules."""
    failed: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.status == "fail":
            failed.setdefault((row.policy.key, row.resource), []).append(row)
    return [_exception(below, ttl) for below in failed.values()]


def _exception(rows: list[Row], ttl: str) -> dict[str, Any]:
    place = reference(rows[0].object)
    kind, name = place.get("kind", ""), place.get("name", "")
    rules = list(dict.fromkeys(rule for row in rows for rule in _rules(row)))
    resources: dict[str, Any] = {"kinds": [kind], "names": [name]}
    if any(place_of(row.result.rule) for row in rows):
        resources = {"kinds": _POD_MAKERS.get(kind, [kind]), "names": [name, f"{name}-*"]}
    if place.get("namespace"):
        resources["namespaces"] = [place["namespace"]]
    parts = [rows[0].policy.key.replace("/", "-"), place.get("namespace", ""), kind.lower(), name]
    return {
        "apiVersion": vocabulary.KYVERNO_V2,
        "kind": "PolicyException",
        "metadata": {
            "name": "-".join(part for part in parts if part)[:253],
            "labels": {vocabulary.TTL_LABEL: ttl},
        },
        "spec": {
            "exceptions": [{"policyName": rows[0].policy.key, "ruleNames": rules}],
            "match": {"any": [{"resources": resources}]},
        },
    }


def _rules(row: Row) -> Sequence[str]:
    """Return a rule and, for one of autogen, those that concern the objects its object makes (row G-07)."""
    rule = row.result.rule
    made = (names_of(one.name) for one in row.policy.rules)
    names = next((names for names in made if rule in names), (rule,))
    return names[names.index(rule) :: -1]
