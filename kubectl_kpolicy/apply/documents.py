"""Documents sorted by what they are: policies, exceptions, clean-up policies, kinds that are not evaluated yet, objects.

One bad policy never stops the others: what cannot be read as a policy becomes a problem beside the rest. A document is
parsed once per process, because many test cases name the same policy files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from engine import parse
from engine.errors import DocumentError, EngineError, Location
from engine.fields import members
from engine.model import CleanupPolicy, Object, Policy, PolicyException
from engine.model.kinds import BY_NAME, CEL_GROUP, CLASSIC_GROUP, loaded
from engine.model.policy import Binding, CelException
from engine.record import field, record

from .names import name_of

if TYPE_CHECKING:
    from engine.lang.yaml import Document

Parsed = Policy | PolicyException | CleanupPolicy | CelException | Binding
_Parser = Callable[..., Parsed]

_CEL_GROUPS = (CEL_GROUP, "admissionregistration.k8s.io")


@record
class Unsupported:
    """A policy of a kind that this version does not evaluate."""

    kind: str
    name: str
    at: Location


@record
class Loaded:
    """What a set of documents holds."""

    policies: list[Policy] = field(default_factory=list)
    exceptions: list[PolicyException | CelException] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    cleanups: list[CleanupPolicy] = field(default_factory=list)
    unsupported: list[Unsupported] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    problems: list[EngineError] = field(default_factory=list)
    doubts: list[EngineError] = field(default_factory=list)
    strays: list[EngineError] = field(default_factory=list)
    """Documents that are no objects, such as values files and descriptions of packages, passed over."""


_parsed: dict[tuple[int, bool], tuple[Object, Parsed | EngineError]] = {}


def sort_documents(documents: Iterable[Document], *, strict: bool = True) -> Loaded:
    """Sort documents; policies that cannot be read as such stand in `problems`. `strict` refuses unknown fields."""
    loaded = Loaded()
    for document, value in expanded(without_strays(documents, loaded.strays)):
        _sort(document, value, loaded, strict=strict)
    return loaded


def _sort(document: Document, value: Object, loaded: Loaded, *, strict: bool) -> None:
    group = str(value.get("apiVersion", "")).rpartition("/")[0]
    kind = str(value.get("kind", ""))
    parser = _parser_of(group, kind)
    if parser is not None:
        _keep(_parse(parser, document, value, strict=strict), loaded)
        if not strict:
            loaded.doubts.extend(_unknown_fields(document, value))
    elif group in _CEL_GROUPS and "Webhook" not in kind:
        loaded.unsupported.append(
            Unsupported(kind, name_of(value), Location(document.file, document.line))
        )
    else:
        loaded.objects.append(value)


def _parser_of(group: str, kind: str) -> _Parser | None:
    """Return what reads a kind of policy, None for other documents; the readers of CEL kinds are loaded when met."""
    row = BY_NAME.get(kind)
    if row is not None and row.group == group:
        found: _Parser | None = loaded(row.family.parser) if row.is_evaluated else None
        return found
    if group == CLASSIC_GROUP:
        return parse.parse_exception if kind == "PolicyException" else None
    if group not in _CEL_GROUPS:
        return None
    from engine.parse.celpolicies import PARSERS

    return PARSERS[group].get(kind)


def _unknown_fields(document: Document, value: Object) -> Iterator[EngineError]:
    line_of = document.line_of if value is document.value else None
    for found in parse.unknown_fields(value, line_of=line_of):
        yield EngineError(
            f"unknown field `{found.path}`",
            at=Location(document.file, found.line or document.line),
            help=f"did you mean `{found.nearest}`?" if found.nearest else "",
        )


def _keep(found: Parsed | EngineError, loaded: Loaded) -> None:
    match found:
        case Policy():
            loaded.policies.append(found)
        case PolicyException() | CelException():
            loaded.exceptions.append(found)
        case CleanupPolicy():
            loaded.cleanups.append(found)
        case Binding():
            loaded.bindings.append(found)
        case _:
            loaded.problems.append(found)


def _parse(
    parser: _Parser, document: Document, value: Object, *, strict: bool
) -> Parsed | EngineError:
    key = (id(value), strict)
    known = _parsed.get(key)
    if known is None:
        found: Parsed | EngineError
        try:
            found = parser(
                value,
                at=Location(document.file, document.line),
                line_of=document.line_of if value is document.value else None,
                strict=strict,
            )
        except EngineError as error:
            found = error
        # INVARIANT: the value is kept beside its result, so that its id cannot come to mean another one
        known = _parsed[key] = (value, found)
    return known[1]


def expanded(documents: Iterable[Document]) -> Iterator[tuple[Document, Object]]:
    """Yield every object with its document, the members of `List` kinds one by one.

    Raises DocumentError for a document that is no object with a kind.
    """
    for document in documents:
        yield from ((document, value) for value in _members(document, document.value))


def without_strays(documents: Iterable[Document], strays: list[EngineError]) -> list[Document]:
    """Return the documents that are objects, and note the others; all as they are where none is an object."""
    given = list(documents)
    kept = [one for one in given if isinstance(one.value, dict) and one.value.get("kind")]
    if len(kept) in (0, len(given)):
        return given
    known = set(map(id, kept))
    strays += [
        EngineError("left out: the document is no Kubernetes object, it has no `kind`", at=Location(one.file, one.line))
        for one in given
        if id(one) not in known
    ]  # fmt: skip
    return kept


def _members(document: Document, value: Any) -> Iterator[Object]:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not kind or not isinstance(kind, str):
        wrong = "its `kind` is not a string" if kind else "it has no `kind`"
        raise DocumentError(
            f"document is not a Kubernetes object: {wrong}",
            at=Location(document.file, document.line),
        )
    found = members(value)
    if found is None:
        yield value
        return
    for item in found:
        yield from _members(document, item)


def objects_of(documents: Iterable[Document]) -> list[Object]:
    """Return all objects of documents, whatever their kind: policies can be the objects that policies look at."""
    return [value for _, value in expanded(documents)]
