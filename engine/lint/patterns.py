"""Patterns and patches with anchors or values that cannot work (sections 2.1 and 2.2, rows A-81, A-82)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.lang import yaml
from engine.lang.gotext import compact_json

from .findings import Finding, error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Json, Rule

_ADDITION = re.compile(r"\+\(.+\)\Z")
_EXISTENCE = re.compile(r"\^\(.+\)\Z")
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_DEEPEST = 200


def check_pattern(pattern: Json, path: str) -> Iterator[Finding]:
    """Yield anchors of a validate pattern that have no meaning there."""
    stack: list[tuple[str, Json, int]] = [("/", pattern, 0)]
    while stack:
        at, node, depth = stack.pop()
        if depth > _DEEPEST:
            continue
        if isinstance(node, list):
            stack.extend((f"{at}/{index}", item, depth + 1) for index, item in enumerate(node))
        elif isinstance(node, dict):
            for key, value in node.items():
                place = f"{at}/{key}"
                if _ADDITION.match(key):
                    yield error(f"{path}.{place}", f"unsupported anchor {key}")
                elif _EXISTENCE.match(key) and not isinstance(value, list):
                    yield error(
                        f"{path}.{place}", "existence anchor should have value of type list"
                    )
                stack.append((place, value, depth + 1))


def check_merge_patch(patch: Json, path: str) -> Iterator[Finding]:
    """Yield labels and annotations that would not be strings."""
    metadata = patch.get("metadata") if isinstance(patch, dict) else None
    for name in ("labels", "annotations"):
        values = metadata.get(name) if isinstance(metadata, dict) else None
        if isinstance(values, dict) and not all(isinstance(item, str) for item in values.values()):
            text = 'labels and annotations supports only string values, "use double quotes around the non string values"'
            yield error(f"{path}.metadata.{name}", text)


def check_json_patch(text: str, path: str, rule: Rule, rule_path: str) -> Iterator[Finding]:
    """Yield operations of a rule's own JSON patch that can never be applied.

    Paths may hold variables in foreach only (row A-92). A text that becomes YAML only when its variables are replaced
    cannot be judged here.
    """
    try:
        operations = yaml.load(text)
    except EngineError as problem:
        if "{{" not in text:
            yield error(path, f"failed to decode the patch: {problem.message}")
        return
    in_foreach = "foreach" in path
    for operation in operations if isinstance(operations, list) else ():
        given = operation if isinstance(operation, dict) else {}
        where, kind = given.get("path"), given.get("op")
        if not isinstance(where, str) or not where.startswith("/"):
            shown = where if isinstance(where, str) else ""
            yield error(
                path, f"path must begin with a forward slash: {rule_path}: {shown}".rstrip()
            )
        elif "{{" in where and not in_foreach:
            yield error(
                path,
                f'policy contains invalid variables: rule "{rule.name}" should not have variables in patchesJSON6902'
                " path section",
            )
        elif kind not in _OPERATIONS:
            shown = f"invalid operation {compact_json(given)}: unsupported operation"
            yield error(path, f"path must begin with a forward slash: {rule_path}: {shown}")
