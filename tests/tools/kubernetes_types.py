"""Makes the sandbox's `types.json.xz`, the table of Kubernetes' types, out of the Go sources that define them.

For whoever raises the sandbox to a newer Kubernetes: `python -m tests.tools.kubernetes_types MODULES` with the folder that
`go mod download` of k8s.io/api, apimachinery and apiextensions-apiserver filled. One table then serves unknown-field checks,
strategic merge, server-side apply, protobuf bodies and `kubectl explain`; it never runs while the sandbox does.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from pathlib import Path
from typing import Any

from kpolicy_sandbox import schema

PACKAGES = {
    "core.v1": "api@*/core/v1",
    "apps.v1": "api@*/apps/v1",
    "batch.v1": "api@*/batch/v1",
    "rbac.v1": "api@*/rbac/v1",
    "networking.v1": "api@*/networking/v1",
    "policy.v1": "api@*/policy/v1",
    "coordination.v1": "api@*/coordination/v1",
    "events.v1": "api@*/events/v1",
    "admissionregistration.v1": "api@*/admissionregistration/v1",
    "authentication.v1": "api@*/authentication/v1",
    "authorization.v1": "api@*/authorization/v1",
    "autoscaling.v1": "api@*/autoscaling/v1",
    "autoscaling.v2": "api@*/autoscaling/v2",
    "scheduling.v1": "api@*/scheduling/v1",
    "storage.v1": "api@*/storage/v1",
    "discovery.v1": "api@*/discovery/v1",
    "meta.v1": "apimachinery@*/pkg/apis/meta/v1",
    "apiextensions.v1": "apiextensions-apiserver@*/pkg/apis/apiextensions/v1",
}
SPECIAL = {
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime",
    "meta.v1.Duration": "duration",
    "meta.v1.FieldsV1": "fields",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intorstring",
    "runtime.RawExtension": "raw",
    "apiextensions.v1.JSON": "json",
    "apiextensions.v1.JSONSchemaProps": "json",
    "apiextensions.v1.JSONSchemaPropsOrBool": "json",
    "apiextensions.v1.JSONSchemaPropsOrArray": "json",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "json",
}
SCALARS = {"string", "bool", "int32", "int64", "float64", "int", "byte", "[]byte"}
ALIASES = {"types.UID": "string", "types.NodeName": "string", "types.NamespacedName": "string"}
STRUCT = re.compile(
    r"((?:^[ \t]*//[^\n]*\n)*(?:^[ \t]*\n)?(?:^[ \t]*//[^\n]*\n)*)^type (\w+) struct \{(?:\}|\n(.*?)^\})",
    re.MULTILINE | re.DOTALL,
)
NAMED = re.compile(r"^type (\w+) ((?:\[\]|map\[)?[\w\].*]+)\s*$", re.MULTILINE)
GROUPED = re.compile(r"^\t(\w+) (string|\[\]\w+)\s*$", re.MULTILINE)
FIELD = re.compile(r"^\t(?:(\w+)\s+)?([*\w\[\].]+)\s+`(.*?)`")


def main(modules: Path) -> None:
    """Write the table beside this file."""
    packages = {
        package: "\n".join(
            file.read_text()
            for file in sorted(next(modules.glob(place)).glob("*types*.go"))
            if "_test" not in file.name and "zz_" not in file.name and "swagger" not in file.name
        )
        for package, place in PACKAGES.items()
    }
    known = {
        f"{package}.{found[1]}": found[2]
        for package, text in packages.items()
        for found in [*NAMED.finditer(text), *GROUPED.finditer(text)]
    }
    types: dict[str, Any] = {}
    for package, text in packages.items():
        for doc, name, body in STRUCT.findall(text):
            if f"{package}.{name}" not in SPECIAL and not name.endswith("List"):
                types[f"{package}.{name}"] = _struct(package, doc, body, known)
    place = Path(schema.__file__).with_name("types.json.xz")
    text = json.dumps(types, separators=(",", ":"), sort_keys=True)
    place.write_bytes(lzma.compress(text.encode(), preset=9))
    print(f"{len(types)} types, {len(text)} bytes, {place.stat().st_size} compressed")


def _struct(package: str, doc: str, body: str, known: dict[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    inline: list[list[Any]] = []
    comments: list[str] = []
    for line in body.splitlines():
        stripped = line.strip()
        if stripped.startswith("//"):
            comments.append(stripped[2:].strip())
            continue
        if found := FIELD.match(line):
            _field(package, found, comments, known, fields, inline)
        if stripped:
            comments = []
    made: dict[str, Any] = {"f": fields, "d": _text(doc.replace("//", "").splitlines())}
    if inline:
        made["i"] = inline
    return made


def _field(
    package: str,
    found: re.Match[str],
    comments: list[str],
    known: dict[str, str],
    fields: dict[str, Any],
    inline: list[list[Any]],
) -> None:
    tags = dict(re.findall(r'(\w+):"([^"]*)"', found[3]))
    name, _, options = tags.get("json", "").partition(",")
    proto = tags.get("protobuf", "").split(",")
    number = int(proto[1]) if len(proto) > 1 else 0
    kind = resolve(package, found[2].lstrip("*"), known)
    if not name:
        if kind != "meta.v1.TypeMeta":
            inline.append([number, kind])
        return
    made: dict[str, Any] = {"t": kind, "d": _text(comments)}
    if number:
        made["n"] = number
    if found[2].startswith("*"):
        made["p"] = 1
    if "omitempty" not in options and "+optional" not in comments:
        made["r"] = 1
    if "patchStrategy" in tags:
        made["s"] = tags["patchStrategy"]
        made["m"] = tags.get("patchMergeKey", "")
    for comment in comments:
        if comment.startswith("+listType="):
            made["l"] = comment.partition("=")[2]
        if comment.startswith("+listMapKey="):
            made.setdefault("k", []).append(comment.partition("=")[2])
    fields[name] = made


def resolve(package: str, text: str, known: dict[str, str]) -> str:
    """Return the table's name of a Go type as it is written in a package."""
    if text == "[]byte":
        return "bytes"
    if text.startswith("[]"):
        return "[]" + resolve(package, text[2:].lstrip("*"), known)
    if found := re.match(r"map\[[\w.]+\](.*)", text):
        return "map:" + resolve(package, found[1].lstrip("*"), known)
    if text in SCALARS:
        return "int32" if text in {"int", "byte"} else text
    if text in ALIASES:
        return ALIASES[text]
    full = _qualified(package, text)
    if full in SPECIAL:
        return SPECIAL[full]
    if full in known:
        target = known[full]
        inner = resolve(full.rpartition(".")[0], target, known)
        # a named list is a message of its own in protobuf, with the items as its field 1
        return f"items:{inner[2:]}" if inner.startswith("[]") else inner
    return full


def _qualified(package: str, text: str) -> str:
    if "." not in text:
        return f"{package}.{text}"
    prefix, _, name = text.partition(".")
    imports = {"metav1": "meta.v1", "v1": "core.v1", "corev1": "core.v1", "apiv1": "core.v1"}
    return f"{imports.get(prefix, prefix)}.{name}"


def _text(lines: list[str]) -> str:
    """Return the first paragraph of a comment, without the markers of code generators."""
    kept: list[str] = []
    for line in lines:
        line = line.strip()
        if line.startswith(("+", "---")):
            continue
        if not line and kept:
            break
        kept.append(line)
    return " ".join(kept).strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
