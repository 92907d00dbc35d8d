"""What a check found: the reason it forbids the pod, and every field at fault, in Kyverno's words (row P-47).

Faults stay values until nobody excuses them, because exclusions are decided field by field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .pod import Container

BadValue = str | bool | int | tuple[str, ...] | None


@record
class Fault:
    """One field at fault, as a path in a Pod.

    `bad` is the value found, None where the presence alone is the fault. `required` says that the field is missing.
    `container` is the container it belongs to, None for fields of the pod.
    """

    path: str
    bad: BadValue = None
    required: bool = False
    container: Container | None = None

    def values(self) -> tuple[str, ...]:
        """Return the found values as the texts that an exclusion's `values` are compared with."""
        if self.bad is None:
            return ()
        return self.bad if isinstance(self.bad, tuple) else (_shown(self.bad),)


@record
class Violation:
    """Why one check forbids the pod.

    `named` are the containers that Kubernetes' own text says must change; reports list their images. `hidden` are faults
    that Kubernetes leaves out while there are others; they count once all others are excused.
    """

    reason: str
    faults: tuple[Fault, ...]
    named: tuple[Container, ...] = ()
    hidden: tuple[Fault, ...] = ()


def violation(
    reason: str,
    faults: Sequence[Fault],
    *,
    hidden: Sequence[Fault] = (),
    names: bool = True,
) -> Violation | None:
    """Make a violation of the faults found, None when there are none; `names` says whether images are reported."""
    if not faults:
        return None
    named: dict[str, Container] = {}
    if names:
        for fault in faults:
            if fault.container is not None:
                named.setdefault(fault.container.path, fault.container)
    return Violation(reason, tuple(faults), tuple(named.values()), tuple(hidden))


def fault_text(fault: Fault, path: str) -> str:
    """Write one entry of the field error list; `path` is where the field stands in the object."""
    if fault.required:
        return f"{path}: Required value"
    if fault.bad is None or fault.bad == "":
        return f"{path}: Forbidden"
    if isinstance(fault.bad, tuple):
        return f"{path} is forbidden, forbidden values found: [{' '.join(fault.bad)}]"
    return f"{path} is forbidden, forbidden values found: {_shown(fault.bad)}"


def _shown(value: str | bool | int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
