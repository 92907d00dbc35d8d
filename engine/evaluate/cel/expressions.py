"""Lists of named and unnamed expressions compiled once: validations, conditions, variables, audit annotations.

What an expression that fails, errs or is not met means to Kubernetes is written here, for every kind of policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import EvaluationError, PolicyError
from engine.lang import cel
from engine.lang.cel.values import TYPES
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from engine.lang.cel import Program
    from engine.model import Block

    from .bindings import Bindings

_LONGEST_MESSAGE = 5 * 1024
_KUBERNETES = frozenset(cel.LIBRARIES) - {"kyverno"}


@record
class Validation:
    """One expression that has to be true, and the words for when it is not."""

    source: str
    check: Program
    message: str
    message_of: Program | None


@record
class Named:
    """A named expression: a condition, or the value of an audit annotation."""

    name: str
    program: Program


def compile_expression(
    text: Any,
    names: Collection[str],
    *,
    place: str = "",
    is_of_kubernetes: bool = False,
    may_mix: bool = False,
) -> Program:
    """Compile one expression that may read `names`; raises PolicyError naming `place` for one that cannot work.

    One that `is_of_kubernetes` may use no functions but those that the API server has. Lists and maps that are written out
    hold one type, but where an expression `may_mix` them.
    """
    source = str(text or "").strip()
    try:
        program = cel.compile(source, _KUBERNETES) if is_of_kubernetes else cel.compile(source)
    except cel.CelSyntaxError as error:
        raise PolicyError(f"`{place}` does not compile: {error.message}") from error
    for name in sorted(program.names):
        if name not in names and name not in TYPES:
            raise PolicyError(f"`{place}` does not compile: undeclared reference to `{name}`")
    for fault in program.check().faults:
        if not (may_mix and fault.rule is cel.Rule.MIXED):
            raise PolicyError(f"`{place}` does not compile: {fault.message}")
    return program


def compile_validations(
    blocks: Iterable[Block], names: Collection[str], *, message: str = ""
) -> tuple[Validation, ...]:
    """Compile validations; `message` stands in for those that have none of their own."""
    return tuple(
        Validation(
            str(block.get("expression", "")).strip(),
            compile_expression(block.get("expression"), names, place=f"validations[{index}]"),
            str(block.get("message") or message).strip(),
            compile_expression(
                block["messageExpression"], names, place=f"validations[{index}].messageExpression"
            )
            if block.get("messageExpression")
            else None,
        )
        for index, block in enumerate(blocks)
    )


def compile_named(
    blocks: Iterable[Block], names: Collection[str], *, place: str, key: str = "name",
    expression: str = "expression", may_mix: bool = False,
) -> tuple[Named, ...]:  # fmt: skip
    """Compile a list of named expressions; see `compile_expression` for those that `may_mix`."""
    return tuple(
        Named(
            str(block.get(key, "")),
            compile_expression(
                block.get(expression), names, place=f"{place}[{index}]", may_mix=may_mix
            ),
        )
        for index, block in enumerate(blocks)
    )


def compile_conditions(
    spec: Block, names: Collection[str], *, may_mix: bool = False
) -> tuple[Named, ...]:
    """Compile the match conditions of a spec; see `compile_expression` for those that `may_mix`."""
    blocks = spec.get("matchConditions") or ()
    return compile_named(blocks, names, place="matchConditions", may_mix=may_mix)


def compile_variables(
    spec: Block, names: Collection[str], *, may_mix: bool = False
) -> Mapping[str, Program]:
    """Compile the variables of a spec by name; see `compile_expression` for those that `may_mix`."""
    blocks = spec.get("variables") or ()
    found = compile_named(blocks, names, place="variables", may_mix=may_mix)
    return {item.name: item.program for item in found}


def compile_annotations(
    spec: Block, names: Collection[str], *, may_mix: bool = False
) -> tuple[Named, ...]:
    """Compile the audit annotations of a spec; see `compile_expression` for those that `may_mix`."""
    return compile_named(
        spec.get("auditAnnotations") or (), names, place="auditAnnotations", key="key",
        expression="valueExpression", may_mix=may_mix,
    )  # fmt: skip


def unmet(conditions: Iterable[Named], bindings: Bindings, *, is_native: bool = True) -> str | None:
    """Return the name of the first condition that is false, None when all are true.

    A false condition wins over those that cannot be evaluated. Without one their errors are raised: the first with the API
    server's words around it, or all without any for policies of Kyverno.
    """
    failed: list[EvaluationError] = []
    for condition in conditions:
        try:
            holds = bindings.value_of(condition.program) is True
        except EvaluationError as error:
            failed.append(errored(condition.program.source, error) if is_native else error)
            continue
        if bindings.trace is not None:
            bindings.trace.add("condition", condition.program.source, holds)
        if not holds:
            return condition.name
    if failed and is_native:
        raise failed[0]
    if failed:
        raise failed[0].reworded("; ".join(error.message for error in failed))
    return None


def errored(source: str, error: EvaluationError) -> EvaluationError:
    """Return an error with the API server's words around it."""
    return error.reworded(f"expression '{source}' resulted in error: {error.message}")


def failure_message(validation: Validation, bindings: Bindings) -> str:
    """Return what is said of an object that does not meet a validation.

    The message expression counts where it gives one line of text that is not too long; then the message, then the
    expression itself.
    """
    if validation.message_of is not None and (told := _told(validation.message_of, bindings)):
        return told
    return validation.message or f"failed expression: {validation.source}"


def _told(program: Program, bindings: Bindings) -> str:
    try:
        value = bindings.value_of(program)
    except EvaluationError:
        return ""
    if not isinstance(value, str):
        return ""
    text = value.strip()
    return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text


def annotations_of(annotations: Iterable[Named], bindings: Bindings) -> dict[str, str]:
    """Return the audit annotations that are texts; null leaves one out, and so does an error."""
    found = {}
    for annotation in annotations:
        try:
            value = bindings.value_of(annotation.program)
        except EvaluationError:
            continue
        if isinstance(value, str):
            found[annotation.name] = value
    return found
