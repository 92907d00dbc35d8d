"""The test file format (rows K-05 and K-06), read strictly: every error names file, line and field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import DocumentError
from engine.evaluate.policy_set import CLASSIC
from engine.model.kinds import CEL_KINDS
from engine.record import field, record
from kubectl_kpolicy.apply.mocks import CALLS, ENTRIES
from kubectl_kpolicy.apply.shapes import ANY, FLAG, HEAD, TEXT, check_shape, place
from kubectl_kpolicy.apply.values import SPEC as VALUES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from engine.lang.yaml import Document
    from engine.model import Policy

STATUSES = ("pass", "fail", "skip", "warn", "error")
OPERATIONS = ("", "CREATE", "UPDATE", "DELETE", "CONNECT")

_WITHOUT_EFFECT = (
    "isValidatingAdmissionPolicy",
    "isMutatingAdmissionPolicy",
    *(f"is{one.kind}" for one in CEL_KINDS if not one.is_namespaced),
)
"""Flags that say of which kind a policy is, and choose none (row CC-20)."""

_SPEC = {
    "group": TEXT, "version": TEXT, "kind": TEXT, "namespace": TEXT, "subresource": TEXT, "name": TEXT,
}  # fmt: skip
_RESULT = {
    "policy": TEXT, "rule": TEXT, "result": TEXT, "status": TEXT, "kind": TEXT, "operation": TEXT,
    "resource": TEXT, "resources": [TEXT], "resourceSpecs": [_SPEC], "namespace": TEXT,
    "patchedResource": TEXT, "patchedResources": TEXT, "generatedResource": TEXT,
    "generatedResources": [TEXT], "cloneSourceResource": TEXT, "failOnMissingResources": FLAG,
    **dict.fromkeys(_WITHOUT_EFFECT, FLAG),
}  # fmt: skip
_FILE = {
    **HEAD,
    "policies": [TEXT], "resources": [TEXT], "targetResources": [TEXT],
    "jsonPayload": TEXT, "jsonPayloads": [TEXT], "httpPayloads": [TEXT], "envoyPayloads": [TEXT],
    "paramResources": [TEXT], "variables": TEXT, "values": VALUES, "userinfo": TEXT,
    "exceptions": [TEXT], "context": TEXT, "clusterResources": [TEXT],
    "apiCallResponses": CALLS, "globalContextEntries": ENTRIES,
    "results": [_RESULT], "checks": ANY,
}  # fmt: skip


@record
class Declared:
    """One resource as a result names it; empty fields fit anything."""

    text: str
    name: str
    namespace: str = ""
    kind: str = ""
    group: str | None = None
    version: str | None = None


@record
class Expectation:
    """One entry of `results`."""

    index: int
    policy: str
    rule: str
    status: str
    resources: tuple[Declared, ...]
    operation: str = ""
    patched: str = ""
    generated: tuple[str, ...] = ()
    clone_source: str = ""
    fails_on_missing: bool = False

    def is_of(self, policy: Policy) -> bool:
        """Tell whether a policy is the one that is meant: by name or key, in CEL by what follows a slash (row CC-20)."""
        written = self.policy if policy.kind in CLASSIC else self.policy.rpartition("/")[2]
        return written in (policy.key, policy.name)


@record
class TestCase:
    """One test file; paths are as written, relative to its folder."""

    __test__ = False

    path: Path
    name: str
    expectations: tuple[Expectation, ...]
    spec: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
    """Which document of the file it is."""

    @property
    def place(self) -> str:
        """The file, with the number of the document where it is not the first."""
        return f"{self.path}#{self.number}" if self.number else str(self.path)

    @property
    def folder(self) -> Path:
        """The folder that relative paths start from."""
        return self.path.parent

    def paths(self, key: str) -> list[Path]:
        """Return the paths under a key of the file, completed."""
        given = self.spec.get(key) or ()
        return [self.folder / path for path in ([given] if isinstance(given, str) else given)]


def read_case(path: Path, document: Document, number: int = 0) -> TestCase:
    """Read the document of this `number` in a test file; raises DocumentError naming file, line and field."""
    if isinstance(document.value, dict) and not document.value.get("apiVersion"):
        raise DocumentError(
            "test file uses a deprecated schema",
            at=place(document),
            help="start it with `apiVersion: cli.kyverno.io/v1alpha1` and `kind: Test`, the name under `metadata`",
        )
    spec = check_shape(document, _FILE, what="test file")
    return TestCase(
        path=path,
        name=str((spec.get("metadata") or {}).get("name") or ""),
        expectations=tuple(
            _expectation(document, index, result)
            for index, result in enumerate(spec.get("results") or ())
        ),
        spec=spec,
        number=number,
    )


def _expectation(document: Document, index: int, result: Mapping[str, Any]) -> Expectation:
    status = result.get("result") or result.get("status") or ""
    _require(document, index, "result", status, STATUSES)
    _require(document, index, "operation", result.get("operation") or "", OPERATIONS)
    if not result.get("policy"):
        raise DocumentError(
            f"`results[{index}].policy` of test file is missing",
            at=place(document, ("results", index)),
        )
    generated = [result.get("generatedResource"), *(result.get("generatedResources") or ())]
    return Expectation(
        index=index,
        policy=result["policy"],
        rule=result.get("rule") or "",
        status=status,
        resources=_declared(result),
        operation=result.get("operation") or "",
        patched=result.get("patchedResources") or result.get("patchedResource") or "",
        generated=tuple(path for path in generated if path),
        clone_source=result.get("cloneSourceResource") or "",
        fails_on_missing=result.get("failOnMissingResources") is True,
    )


def _require(document: Document, index: int, name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise DocumentError(
            f"`results[{index}].{name}` of test file is `{value}`",
            at=place(document, ("results", index, name)),
            help=f"write one of {', '.join(filter(None, known))}",
        )


def _declared(result: Mapping[str, Any]) -> tuple[Declared, ...]:
    kind = result.get("kind") or ""
    names = [*(result.get("resources") or ()), *filter(None, [result.get("resource")])]
    return (
        *(_named(text, kind, result.get("namespace") or "") for text in names),
        *(_specified(spec, kind) for spec in result.get("resourceSpecs") or ()),
    )


def _named(text: str, kind: str, namespace: str) -> Declared:
    before, _, name = text.rpartition("/")
    return Declared(text, name, before.rpartition("/")[2] or namespace, kind)


def _specified(spec: Mapping[str, Any], kind: str) -> Declared:
    given = (spec.get("kind") or kind, spec.get("namespace") or "", spec.get("name") or "")
    own_kind, namespace, name = given
    text = "/".join(filter(None, given))
    return Declared(text, name, namespace, own_kind, spec.get("group"), spec.get("version"))
