"""The pod inside an object: its template found, the fields that the security standards look at, and what is wrong with them.

Kyverno decodes the object into Kubernetes' own types before it checks it, so a field of the wrong type is an error there and
never passes. The readers here keep that promise on plain dicts without decoding what nobody looks at. Faults stay values
until nobody excuses them, because exclusions are decided field by field (row P-47).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.model import Object


_IN_SPEC: Final = ("spec", "template")
TEMPLATE_PATHS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "Pod": (),
        "DaemonSet": _IN_SPEC,
        "Deployment": _IN_SPEC,
        "Job": _IN_SPEC,
        "StatefulSet": _IN_SPEC,
        "ReplicaSet": _IN_SPEC,
        "ReplicationController": _IN_SPEC,
        "CronJob": ("spec", "jobTemplate", "spec", "template"),
    }
)
"""Where each kind keeps its pod; other kinds cannot be checked (row A-76)."""

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


class MalformedPodError(EvaluationError):
    """A field that the standards look at does not have the type Kubernetes gives it."""


@record
class Container:
    """One container of any of the three lists; `path` is its place in a Pod, `security` None when it has no context."""

    path: str
    name: str
    image: str
    body: Mapping[str, Any]
    security: Mapping[str, Any] | None

    @property
    def context(self) -> Mapping[str, Any]:
        """The security context, empty when there is none."""
        return self.security if self.security is not None else _EMPTY


@record
class Pod:
    """A pod or pod template; containers in the order init, ordinary, ephemeral, as Kubernetes visits them."""

    annotations: Mapping[str, Any]
    spec: Mapping[str, Any]
    security: Mapping[str, Any]
    containers: Sequence[Container]

    @property
    def is_windows(self) -> bool:
        """Whether `spec.os.name` says that Linux-only fields cannot be set."""
        return word(block(self.spec, "os"), "name") == "windows"

    @property
    def has_own_users(self) -> bool:
        """Whether the pod runs in a user namespace (`hostUsers: false`)."""
        return flag(self.spec, "hostUsers") is False


def contexts(pod: Pod) -> list[tuple[str, Container | None, Mapping[str, Any]]]:
    """Return the security contexts that a pod and its containers have, each with its owner's place and the container."""
    return [
        ("spec", None, pod.security),
        *((one.path, one, one.security) for one in pod.containers if one.security is not None),
    ]


def pod_of(obj: Object) -> Pod:
    """Find the pod of `obj`, a Pod or a pod controller.

    Raises MalformedPodError for other kinds and where a part has the wrong type. A missing template is an empty pod.
    """
    path = TEMPLATE_PATHS.get(word(obj, "kind"))
    if path is None:
        raise MalformedPodError("could not find correct resource type")
    holder: Mapping[str, Any] = obj
    for key in path:
        holder = block(holder, key)
    spec = block(holder, "spec")
    return Pod(
        annotations=block(block(holder, "metadata"), "annotations"),
        spec=spec,
        security=block(spec, "securityContext"),
        containers=[
            _container(entry, f"spec.{name}[{index}]")
            for name in _LISTS
            for index, entry in enumerate(entries(spec, name))
        ],
    )


def _container(entry: Mapping[str, Any], path: str) -> Container:
    return Container(
        path=path,
        name=word(entry, "name"),
        image=word(entry, "image"),
        body=entry,
        security=optional_block(entry, "securityContext"),
    )


def optional_block(parent: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """Read a map; None when it is absent or null."""
    value = parent.get(key)
    if value is None or isinstance(value, dict):
        return value
    raise _wrong(key, "a map", value)


def block(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Read a map; empty when it is absent or null."""
    value = parent.get(key)
    if value is None:
        return _EMPTY
    if isinstance(value, dict):
        return value
    raise _wrong(key, "a map", value)


def entries(parent: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """Read a list of maps; empty when it is absent or null, a null entry is an empty map."""
    value = parent.get(key)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _wrong(key, "a list", value)
    if all(isinstance(entry, dict) for entry in value):
        return value
    return [_entry(entry, key) for entry in value]


def _entry(entry: object, key: str) -> Mapping[str, Any]:
    if entry is None:
        return _EMPTY
    if isinstance(entry, dict):
        return entry
    raise _wrong(key, "a list of maps", entry)


def words(parent: Mapping[str, Any], key: str) -> Sequence[str]:
    """Read a list of strings; empty when it is absent or null."""
    value = parent.get(key)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _wrong(key, "a list", value)
    for entry in value:
        if entry is not None and not isinstance(entry, str):
            raise _wrong(key, "a list of strings", entry)
    return ["" if entry is None else entry for entry in value]


def word(parent: Mapping[str, Any], key: str) -> str:
    """Read a string; empty when it is absent or null."""
    value = parent.get(key)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise _wrong(key, "a string", value)


def flag(parent: Mapping[str, Any], key: str) -> bool | None:
    """Read a boolean; None when it is absent or null."""
    value = parent.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise _wrong(key, "a boolean", value)


def number(parent: Mapping[str, Any], key: str) -> int | None:
    """Read a whole number; None when it is absent or null."""
    value = parent.get(key)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise _wrong(key, "a whole number", value)


def _wrong(key: str, wanted: str, value: object) -> MalformedPodError:
    return MalformedPodError(f"field `{key}` must be {wanted}, not {type(value).__name__}")


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
    reason: str, faults: Sequence[Fault], *, hidden: Sequence[Fault] = (), names: bool = True
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
