"""What the expressions of a policy may read and call, and of what types that is.

Each kind has its own names and functions; each variable may read those before it, and comes to a type of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang import cel
from engine.lang.cel import Program, types
from engine.lang.cel.ast import Bind, Call, Comprehension, Ident, Literal, MessageLiteral, walk
from engine.lang.cel.checker import OBJECTS, VARIABLES, Fault
from engine.lang.cel.types import UNKNOWN, Type, list_of, map_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.lang.cel.ast import Node
    from engine.model import Block

_REQUEST: Final = "kubernetes.AdmissionRequest"
_KIND: Final = "kubernetes.GroupVersionKind"
_RESOURCE: Final = "kubernetes.GroupVersionResource"
_USER: Final = "kubernetes.UserInfo"
_NAMESPACE: Final = "kubernetes.Namespace"
_NAMESPACE_METADATA: Final = "kubernetes.NamespaceMetadata"
_EXCEPTIONS: Final = "exceptions"
_TEXTS: Final = map_of("string", "string")
_STRUCTURES: Final[Mapping[str, Mapping[str, Type]]] = {
    _REQUEST: {
        **dict.fromkeys(("uid", "subResource", "requestSubResource", "name", "namespace", "operation"), "string"),
        **dict.fromkeys(("kind", "requestKind"), _KIND),
        **dict.fromkeys(("resource", "requestResource"), _RESOURCE),
        **dict.fromkeys(("object", "oldObject", "options"), types.DYN),
        "userInfo": _USER,
        "dryRun": "bool",
    },
    _KIND: dict.fromkeys(("group", "version", "kind"), "string"),
    _RESOURCE: dict.fromkeys(("group", "version", "resource"), "string"),
    _USER: {
        "username": "string",
        "uid": "string",
        "groups": list_of("string"),
        "extra": map_of("string", list_of("string")),
    },
    _NAMESPACE: {"metadata": _NAMESPACE_METADATA, "spec": UNKNOWN, "status": UNKNOWN},
    _NAMESPACE_METADATA: {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), "string"),
        **dict.fromkeys(("uid", "creationTimestamp", "deletionTimestamp"), UNKNOWN),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), "int"),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": list_of("string"),
    },
    _EXCEPTIONS: {"allowedImages": list_of(UNKNOWN), "allowedValues": list_of(UNKNOWN)},
}  # fmt: skip
_KNOWN: Final[Mapping[str, Type]] = {
    **OBJECTS,
    "request": _REQUEST,
    "namespaceObject": _NAMESPACE,
    "exceptions": _EXCEPTIONS,
    VARIABLES: VARIABLES,
    **{
        f"{name}.{field}": kind
        for name, fields in _STRUCTURES.items()
        for field, kind in {types.CLOSED: UNKNOWN, **fields}.items()
    },
}
_ONLY: Final[Mapping[str, frozenset[str]]] = {
    "generator": frozenset({"Generating"}),
    "parseServiceAccount": frozenset({"Validating", "Mutating", "ImageValidating"}),
    "x509": frozenset({"Validating", "Mutating", "Generating", "Deleting"}),
    **dict.fromkeys(("Object", "JSONPatch", "jsonpatch"), frozenset({"Mutating"})),
    **dict.fromkeys(
        ("verifyImageSignatures", "verifyAttestationSignatures", "extractPayload", "getImageData"),
        frozenset({"ImageValidating"}),
    ),
}
"""What only policies of some families know."""

_CHECKED: Final = {
    ("duration", False): "duration(x)",
    ("timestamp", False): "timestamp(x)",
    ("matches", True): "''.matches(x)",
}
"""Functions whose texts the API server tries when they are written out, and how."""


class Scope:
    """What expressions of a policy of one family read and call; of no family in particular, whatever there is.

    `variables` are the names of those that the policy defines.
    """

    def __init__(self, family: str = "", blocks: Iterable[Block] = ()) -> None:
        self._family = family
        self._known = dict(_KNOWN)
        self.variables: list[str] = []
        for block in blocks:
            name = str(block.get("name", ""))
            self._known[f"{VARIABLES}.{name}"] = self.output(block.get("expression"))
            self.variables.append(name)

    def output(self, text: object) -> Type:
        """Return the type that an expression comes to, an unknown one where it cannot be read."""
        program = cel.readable(text)
        return UNKNOWN if program is None else program.check(self._known).type

    def faults(self, program: Program) -> Iterator[Fault]:
        """Yield what keeps an expression from being compiled; policies that generate may mix types in literals."""
        generates = self._family == "Generating"
        for fault in program.check(self._known).faults:
            if not (generates and fault.rule is cel.Rule.MIXED):
                yield fault
        nodes = tuple(walk(program.tree))
        local = {name for node in nodes for name in _bound(node)}
        for node in nodes:
            name = _named(node)
            if (
                name not in local
                and self._family
                and self._family not in _ONLY.get(name, {self._family})
            ):
                text = f"undeclared reference to '{name}' (in container '')"
                yield Fault(text, node.at, cel.Rule.TYPES)
            if isinstance(node, Call) and not generates and _is_wrong(node):
                place = node.arguments[0].at
                yield Fault(f"invalid {node.name} argument", place, cel.Rule.TYPES)


NO_SCOPE: Final = Scope()


def scope_of(kind: str, spec: Block) -> Scope:
    """Return what the expressions of a policy of a kind may read and call; native policies have no functions of Kyverno."""
    is_native = "Admission" in kind
    family = "" if is_native else kind.removeprefix("Namespaced").removesuffix("Policy")
    return Scope(family, spec.get("variables") or ())


def _named(node: Node) -> str:
    """Return the name that a call or a message begins with."""
    if isinstance(node, MessageLiteral):
        return node.name.partition(".")[0]
    if not isinstance(node, Call):
        return ""
    if isinstance(node.target, Ident):
        return node.target.name
    return node.name if node.target is None else ""


def _bound(node: Node) -> tuple[str, ...]:
    """Return the names that a macro binds in its bodies, which hide functions of these names."""
    if isinstance(node, Comprehension):
        return node.first, node.second
    return (node.name,) if isinstance(node, Bind) else ()


def _is_wrong(node: Call) -> bool:
    """Tell whether a call is given a text that the function does not take, whatever else it is given."""
    trial = _CHECKED.get((node.name, node.target is not None))
    given = node.arguments[0] if len(node.arguments) == 1 else None
    if trial is None or not isinstance(given, Literal) or not isinstance(given.value, str):
        return False
    try:
        cel.compile(trial)({"x": given.value})
    except cel.CelError:
        return True
    return False
