"""Documents that are no Kubernetes objects: JSON files, HTTP requests and Envoy checks that policies of their mode judge."""

from __future__ import annotations

from os.path import basename
from typing import TYPE_CHECKING

from engine.errors import DocumentError, Location
from engine.model import kinds
from engine.record import record
from kubectl_kpolicy.session.sources import placed, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from engine.model import Object, Policy


@record
class Payload:
    """One document, the mode of the policies it is for, and the name by which results show it."""

    mode: str
    name: str
    value: Object

    @property
    def shown(self) -> Object:
        """What stands for the document in results, where an object has kind and name."""
        return {"kind": self.mode, "metadata": {"name": self.name}}


def read_payloads(paths: Iterable[str | Path], mode: str) -> list[Payload]:
    """Read the payloads of one mode; raises DocumentError for a file that cannot be read or is no map."""
    found = []
    for path in map(str, paths):
        for document in read_file(placed(path)):
            if not isinstance(document.value, dict):
                at = Location(document.file, document.line)
                raise DocumentError("a payload must be a map", at=at)
            found.append(Payload(mode, basename(document.file), document.value))
    return found


def mode_of(policy: Policy) -> str:
    """Return the mode of the documents that a policy is for: `Kubernetes` for objects."""
    is_told = policy.kind.endswith("ValidatingPolicy")
    return kinds.mode_of(policy.raw.get("spec") or {}) if is_told else kinds.KUBERNETES


def is_timed(policy: Policy) -> bool:
    """Tell whether a policy works by a schedule, and judges documents of any form."""
    row = kinds.BY_NAME.get(policy.kind)
    return row is not None and row.family.is_timed
