"""What a test expected beside what was answered: one row for each result and resource, with two verdicts.

`verdict` is Kyverno's own rule, by which no answer counts as a pass (row K-06). `strict` also asks that there was one where
pass, fail, warn or error is expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.fields import part
from engine.model import Object, Status
from engine.record import record
from engine.vocabulary import MANAGED_BY
from kubectl_kpolicy.apply.names import identity, labels_of, resource_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .format import Declared, Expectation

OK, MISS = "ok", "miss"
EXCLUDED, NOT_FOUND = "Excluded", "Not found"


@record
class Row:
    """One line of a test's outcome; `actual` is None where no rule answered."""

    file: str
    result: int
    declared: str
    policy: str
    rule: str
    resource: str
    operation: str
    expected: str
    actual: str | None
    verdict: str
    strict: str
    reason: str
    message: str


@record
class Answered:
    """One rule's answer on one object, with the objects that it left or made."""

    object: Object
    status: str
    message: str
    patched: tuple[Object, ...]
    generated: tuple[Object, ...]


@record
class Asked:
    """What a test asks: one of its results, for a resource as it names it, in an operation. Its methods make the rows of answers."""

    file: str
    expected: Expectation
    declared: Declared
    operation: str

    def answered(self, found: Answered, difference: str) -> Row:
        """Make the row of an answer; `difference` says in what a patched or generated object is not the expected one.

        An object other than the expected one is an answer `fail`: tests of mutation expect it where they show a wrong object.
        """
        wanted = self.expected.status
        status = str(Status.FAIL) if difference else found.status
        verdict, reason = OK, "Ok"
        if status != wanted:
            verdict, reason = (
                MISS,
                "Resource diff" if difference else f"Want {wanted}, got {status}",
            )
        shown, message = resource_path(found.object), difference or found.message
        return self._row(shown, status, verdict, verdict, reason, message)

    def silent(self, obj: Object) -> Row:
        """Make the row of a resource that no rule answered for."""
        strict = OK if self.expected.status == Status.SKIP else MISS
        return self._row(resource_path(obj), None, OK, strict, EXCLUDED, EXCLUDED)

    def missing(self, reason: str, message: str) -> Row:
        """Make the row of something that a test names and that is not there: a miss by both rules."""
        return self._row(self.declared.text, None, MISS, MISS, reason, message)

    def _row(
        self,
        resource: str,
        actual: str | None,
        verdict: str,
        strict: str,
        reason: str,
        message: str,
    ) -> Row:
        return Row(
            file=self.file,
            result=self.expected.index,
            declared=self.declared.text,
            policy=self.expected.policy,
            rule=self.expected.rule,
            resource=resource,
            operation=self.operation,
            expected=self.expected.status,
            actual=actual,
            verdict=verdict,
            strict=strict,
            reason=reason,
            message=message,
        )


# Expected objects of a test (`patchedResources`, `generatedResource`) against those that rules left or made.
#
# Labels that generation puts on its objects do not count, empty parts equal absent ones, and a number is equal to the same
# number written otherwise.

_GENERATED = "generate.kyverno.io/"


def difference(
    expected: Sequence[Object], found: Iterable[Object], what: str, *, may_miss: bool = False
) -> str:
    """Return in what `found` differs from the expected objects of the same identity, or an empty text.

    An object that has no counterpart among the expected ones is not compared; none at all with one is a difference, unless it
    `may_miss`.
    """
    by_identity = {identity(obj): obj for obj in expected}
    compared = False
    for obj in found:
        wanted = by_identity.get(identity(obj))
        if wanted is None:
            continue
        compared = True
        path = first_difference(_tidy(wanted), _tidy(obj))
        if path is not None:
            return f"{what} differs at {path or '/'}"
    return "" if compared or may_miss else f"{what} not found in manifest"


def _tidy(obj: Object) -> Any:
    """Return an object without the labels of generation and without null, empty maps and empty lists (as Kyverno's CLI)."""
    labels = labels_of(obj)
    if labels:
        kept = {
            key: value
            for key, value in labels.items()
            if not key.startswith(_GENERATED) and (key, value) != (MANAGED_BY, "kyverno")
        }
        obj = {**obj, "metadata": {**part(obj, "metadata"), "labels": kept}}
    return _filled(obj)


def _filled(value: Any) -> Any:
    """Return `value` without its empty parts, None when nothing is left."""
    if isinstance(value, dict):
        pairs = ((key, _filled(below)) for key, below in value.items())
        return {key: below for key, below in pairs if below is not None} or None
    if isinstance(value, list):
        return [below for item in value if (below := _filled(item)) is not None] or None
    return value


def first_difference(wanted: Any, found: Any) -> str | None:
    """Return the slash path of the first difference of two decoded values, or None; `true` is not `1`."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            if key not in wanted or key not in found:
                return f"/{key}"
            below = first_difference(wanted[key], found[key])
            if below is not None:
                return f"/{key}{below}"
        return None
    if isinstance(wanted, list) and isinstance(found, list):
        for index, (one, other) in enumerate(zip(wanted, found, strict=False)):
            below = first_difference(one, other)
            if below is not None:
                return f"/{index}{below}"
        return None if len(wanted) == len(found) else f"/{min(len(wanted), len(found))}"
    same = wanted == found and isinstance(wanted, bool) == isinstance(found, bool)
    return None if same else ""
