"""What a rule or an exception excuses: controls, narrowed to images, to one field and to values (rows A-76, X-05).

An exclusion excuses single fields, never a whole check, so that what it does not name stays forbidden. Deliberate
differences to Kyverno, all towards forbidding: a wrong setting that is excused does not hide a missing one elsewhere; an
exclusion without images excuses the *unset* field of the first container (Kyverno: any fault of it), because there it only
says that the pod need not set it; and an exclusion that does not pass `exclusion_faults` excuses nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.errors import PolicyError
from engine.lang import wildcard
from engine.record import record, replace

from .standards import BASELINE, CHECKS, RESTRICTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.model import Block

    from .pod import Fault, Violation

_CONTROLS: Final = frozenset(check.control for check in CHECKS if check.control)
_RESTRICTED_ONLY: Final = frozenset(
    check.control for check in CHECKS if check.level == RESTRICTED
) - frozenset(check.control for check in CHECKS if check.level == BASELINE)
_OF_CONTAINERS: Final = frozenset(
    {
        "Capabilities",
        "Privileged Containers",
        "/proc Mount Type",
        "Host Ports",
        "Privilege Escalation",
    }
)
_OF_PODS: Final = frozenset({"Host Namespaces", "HostPath Volumes", "Sysctls", "Volume Types"})
_INDEX: Final = re.compile(r"\[[0-9]+\]")
_FIRST_CONTAINER: Final = "spec.containers[0]."
_ANNOTATION: Final = "metadata.annotations["


@record
class Exclusion:
    """One entry of `exclude`, compiled. `images` None means fields of the pod, an empty `field` every field."""

    control: str
    images: tuple[Callable[[str], bool], ...] | None
    field: str
    values: tuple[Callable[[str], bool], ...]

    def covers(self, control: str, fault: Fault) -> bool:
        """Tell whether this entry excuses a fault of `control`."""
        return (
            control == self.control
            and self._is_in_scope(fault)
            and (not self.field or _is_field(self.field, fault.path))
            and self._allows(fault)
        )

    def _is_in_scope(self, fault: Fault) -> bool:
        container = fault.container
        if self.images is not None:
            return container is not None and any(fits(container.image) for fits in self.images)
        return container is None or (fault.required and fault.path.startswith(_FIRST_CONTAINER))

    def _allows(self, fault: Fault) -> bool:
        """Tell whether all found values are among those excused; a missing field has none."""
        if not self.values:
            return True
        return all(any(fits(value) for fits in self.values) for value in fault.values())


def _is_field(wanted: str, path: str) -> bool:
    if wanted in (path, _INDEX.sub("[*]", path)):
        return True
    return path.startswith(_ANNOTATION) and wildcard.match(wanted.replace('"', ""), path)


def compile_exclusions(entries: Iterable[Block]) -> tuple[Exclusion, ...]:
    """Compile the acceptable entries of an `exclude` list; entries with faults excuse nothing."""
    return tuple(_compile(entry) for entry in entries if not entry_faults(entry, "exclude"))


def _compile(entry: Block) -> Exclusion:
    images = entry.get("images")
    return Exclusion(
        control=entry["controlName"],
        images=tuple(wildcard.compiled(image) for image in images) if images else None,
        field=entry.get("restrictedField") or "",
        values=tuple(wildcard.compiled(value) for value in entry.get("values") or ()),
    )


def without(
    violation: Violation, control: str, exclusions: Sequence[Exclusion]
) -> Violation | None:
    """Return the violation without the faults that are excused, None when nothing is left of it.

    The order is Kyverno's: the last fault takes the place of an excused one. A violation that names no field cannot be
    excused.
    """
    if not violation.faults:
        return violation
    left = _left(violation.faults, control, exclusions)
    hidden = _left(violation.hidden, control, exclusions)
    if left:
        return replace(violation, faults=tuple(left), hidden=tuple(hidden))
    if not hidden:
        return None
    named = tuple(fault.container for fault in hidden if fault.container is not None)
    return replace(violation, faults=tuple(hidden), hidden=(), named=named)


def _left(faults: Sequence[Fault], control: str, exclusions: Sequence[Exclusion]) -> list[Fault]:
    left = list(faults)
    for exclusion in exclusions:
        at = 0
        while at < len(left):
            if exclusion.covers(control, left[at]):
                left[at] = left[-1]
                left.pop()
            else:
                at += 1
    return left


def exclusion_faults(entries: object, path: str, *, level: str = "") -> list[str]:
    """Check an `exclude` list (or an exception's `podSecurity`) and return what is wrong, in Kyverno's words.

    `path` is where the list stands, e.g. `spec.rules[0].podSecurity.exclude`; with `level` the controls must belong to it.
    """
    if entries is None:
        return []
    if not isinstance(entries, (list, tuple)):
        return [f"{path}: Invalid value: must be a list"]
    found: list[str] = []
    for index, entry in enumerate(entries):
        place = f"{path}[{index}]"
        faults = entry_faults(entry, place)
        found += faults
        if level == BASELINE and isinstance(entry, dict):
            control = entry.get("controlName")
            if control in _RESTRICTED_ONLY:
                text = "Invalid control name defined at the given level"
                found.append(f'{place}.controlName: Invalid value: "{control}": {text}')
    return found


def entry_faults(entry: object, path: str) -> list[str]:
    """Check one entry by itself."""
    if not isinstance(entry, dict):
        return [f"{path}: Invalid value: must be an object"]
    wrong = [
        f"{path}.{name}: Invalid value: must be a list of strings"
        for name in ("images", "values")
        if not _is_texts(entry.get(name))
    ]
    field = entry.get("restrictedField")
    if field is not None and not isinstance(field, str):
        wrong.append(f"{path}.restrictedField: Invalid value: must be a string")
    return wrong or [*_control_faults(entry, path), *_field_faults(entry, path)]


def _is_texts(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def _control_faults(entry: Block, path: str) -> list[str]:
    control = entry.get("controlName")
    if not isinstance(control, str) or control not in _CONTROLS:
        return [f'{path}.controlName: Unsupported value: "{control or ""}"']
    if control in _OF_CONTAINERS and not entry.get("images"):
        text = "exclude.images must be specified for the container level control"
        return [f'{path}.controlName: Invalid value: "{control}": {text}']
    if control in _OF_PODS and entry.get("images"):
        text = "exclude.images must not be specified for the pod level control"
        return [f'{path}.controlName: Invalid value: "{control}": {text}']
    return []


def _field_faults(entry: Block, path: str) -> list[str]:
    has_field, has_values = bool(entry.get("restrictedField")), bool(entry.get("values"))
    if has_field and not has_values:
        return [f"{path}.values: Forbidden: values is required"]
    if has_values and not has_field:
        return [f"{path}.restrictedField: Forbidden: restrictedField is required"]
    return []


def refuse(faults: Sequence[str]) -> None:
    """Raise PolicyError with all faults in Kyverno's form, nothing when there are none."""
    if faults:
        raise PolicyError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
