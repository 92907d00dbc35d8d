"""The default text of `apply`, in Kyverno's words: header, changed objects, failures by policy and object, last line (K-03)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from engine.errors import EngineError
from engine.evaluate.policy_set import CLASSIC
from engine.model import Object, RuleType, Status
from kubectl_kpolicy.output.diagnostics import report

from .names import resource_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .processor import PolicyAnswer
    from .verdicts import Counts

DIVIDER = "-" * 70
_GENERATED = "\n\nGenerate:\nGeneration completed successfully.\n"
"""What stands after the objects of a generating policy (row CC-11), and not after those of a classic one."""


def header(rules: int, resources: int, exceptions: int) -> str:
    """Return the first lines."""
    with_exceptions = f" with {exceptions} exception(s)" if exceptions else ""
    return f"\nApplying {rules} policy rule(s) to {resources} resource(s){with_exceptions}...\n"


def invalid_policies(names: Sequence[str]) -> str:
    """Return the block that names policies which were left out."""
    if not names:
        return ""
    lines = [f"{number}. {name}" for number, name in enumerate(names, 1)]
    return "\n".join([DIVIDER, "Invalid Policies:", *lines, DIVIDER, ""])


def changed_objects(answer: PolicyAnswer) -> list[tuple[str, Object]]:
    """Return what a policy changed or made: `mutated` or `generated`, and the object."""
    made = [("generated", obj) for result in answer.results for obj in result.generated]
    is_done = any(result.status is Status.PASS for result in answer.results)
    if answer.type is RuleType.MUTATION and answer.patched and is_done:
        made.append(("mutated", answer.patched))
    return made


def targets_of(answer: PolicyAnswer) -> list[Object]:
    """Return other objects that a policy changed."""
    return [
        target.after
        for result in answer.results
        if result.status is Status.PASS
        for target in result.targets
    ]


def changed_text(answer: PolicyAnswer, *, bare: bool = False) -> str:
    """Return the objects a policy changed or made; `bare` leaves out the line that says so."""
    from engine.lang.yaml.write import GO, write  # here: few runs print objects

    head = f"\npolicy {answer.policy.name} applied to {resource_path(answer.object)}:"
    text = ""
    for what, obj in changed_objects(answer):
        text += f"{'' if bare else head}\n{write(obj, GO, sort=True)}\n---\n"
        if what == "mutated" and (targets := targets_of(answer)):
            text += "patched targets: \n"
            text += "".join(f"\n{write(target, GO, sort=True)}\n---\n" for target in targets)
    return f"{text}{_GENERATED}" if text and _generates_by_cel(answer) else text


def _generates_by_cel(answer: PolicyAnswer) -> bool:
    return answer.type is RuleType.GENERATION and answer.policy.kind not in CLASSIC


class Differences:
    """What policies change, as unified differences of YAML: each policy against what the one before it left."""

    def __init__(self) -> None:
        self._object: Object | None = None
        self._left: Object | None = None

    def text(self, answer: PolicyAnswer) -> str:
        """Return what one answer changes, makes and changes elsewhere; the answers on an object come one after the other."""
        if answer.object is not self._object:
            self._object = self._left = answer.object
        text = ""
        for what, obj in changed_objects(answer):
            if what == "mutated":
                text += difference(self._left, obj, answer.policy.name)
                self._left = obj
            else:
                text += difference(None, obj, answer.policy.name)
        for result in answer.results:
            for target in result.targets if result.status is Status.PASS else ():
                text += difference(target.before, target.after, answer.policy.name)
        return text


def difference(before: Object | None, after: Object, policy: str) -> str:
    """Return how an object differs from what it was, None for one that was not there; empty where it does not."""
    from difflib import unified_diff  # here: few runs print differences

    from engine.lang.yaml.write import GO, write

    place = resource_path(after)
    old = [] if before is None else write(before, GO, sort=True).splitlines()
    new = write(after, GO, sort=True).splitlines()
    of = "/dev/null" if before is None else place
    lines = unified_diff(old, new, of, f"{place} after {policy}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def answer_text(answer: PolicyAnswer, *, audit_warn: bool = False) -> str:
    """Return what is said of one policy on one object: skipped and failed mutation, and failed rules, numbered."""
    place = resource_path(answer.object)
    name = answer.policy.name
    text = ""
    failed = []
    for result in answer.results:
        if result.status is Status.FAIL:
            failed.append(result)
        if answer.type is RuleType.MUTATION and result.status is Status.SKIP:
            text += f"\nskipped mutate policy {name} -> resource {place}\n"
        if answer.type is RuleType.MUTATION and result.status is Status.ERROR:
            text += f"\nerror while applying mutate policy {name} -> resource {place} \nerror:  {result.message}\n"
    if failed:
        as_warning = audit_warn and not any(result.enforce for result in failed)
        text += f"policy {name} -> resource {place} failed{' as audit warning' if as_warning else ''}:\n"
        for number, result in enumerate(failed, 1):
            text += f"{number} - {result.rule} {result.message}\n"
        text += "\n"
    return text


def errors_of(answer: PolicyAnswer) -> list[EngineError]:
    """Return the errors that the text leaves out, as Kyverno's does: those of all rules but mutating ones."""
    if answer.type is RuleType.MUTATION:
        return []
    on = f"policy `{answer.policy.key}` on {resource_path(answer.object)}"
    return [
        EngineError(f"{f'rule `{one.rule}` of ' if one.rule else ''}{on}: {one.message}")
        for one in answer.results
        if one.status is Status.ERROR
    ]


class Narrator:
    """Writes the text as results come in; failures stand after everything that was changed or made.

    Errors that this text leaves out are told on standard error.
    """

    def __init__(
        self,
        out: TextIO,
        *,
        audit_warn: bool,
        bare: bool,
        quiet_changes: bool,
        differences: Differences | None = None,
    ) -> None:
        self._out = out
        self._audit_warn = audit_warn
        self._bare = bare
        self._quiet_changes = quiet_changes
        self._differences = differences
        self._later: list[str] = []
        self._errors: list[EngineError] = []

    def add(self, answers: Sequence[PolicyAnswer]) -> None:
        """Take the answers on one object."""
        for answer in answers:
            if all(result.status is Status.PASS for result in answer.results) and (
                answer.type is RuleType.VALIDATION
            ):
                continue
            if self._differences is not None:
                self._out.write(self._differences.text(answer))
            elif not self._quiet_changes:
                self._out.write(changed_text(answer, bare=self._bare))
            if said := answer_text(answer, audit_warn=self._audit_warn):
                self._later.append(said)
            self._errors += errors_of(answer)

    def finish(self, counts: Counts) -> None:
        """Write the failures and the last line."""
        self._out.writelines(self._later)
        self._out.write(f"\n{counts.line()}\n")
        for error in self._errors:
            report(error)
