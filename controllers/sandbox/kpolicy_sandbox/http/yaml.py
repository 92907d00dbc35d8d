"""YAML of request bodies, read as Kubernetes reads it before it makes JSON of it: mostly YAML 1.1, dates are text, keys are text.

kubectl sends JSON even where it says YAML; this is for bodies that people write. Aliases are refused, as nothing bounds what they grow to.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"), False),
}  # fmt: skip
_INTEGER = re.compile(r"([-+]?)(?:0x([0-9a-fA-F]+)|0b([01]+)|0o?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)  # fmt: skip
_BASES = (16, 2, 8, 10)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)


class _Loader(yaml.CSafeLoader):
    """Leaves every scalar as it is written."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - it is PyYAML's class attribute


def load(raw: bytes) -> Any:
    """Return the value of a document. ValueError for what is none."""
    try:
        node = yaml.compose(raw, Loader=_Loader)
        return None if node is None else _value(node, set())
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _value(node: yaml.Node, seen: set[int]) -> Any:
    if id(node) in seen:
        raise ValueError("aliases are not read")
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        return [_value(one, seen) for one in node.value]
    if isinstance(node, yaml.MappingNode):
        return {_key(key): _value(one, seen) for key, one in node.value}
    return _scalar(node)


def _key(node: yaml.Node) -> str:
    found = _scalar(node)
    return ("false", "true")[found] if isinstance(found, bool) else str(node.value)


def _scalar(node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.style else _plain(node.value)
    raise ValueError("the key of a map is no text")


def _plain(text: str) -> Any:
    """Return what a scalar without quotes means."""
    if text in _WORDS:
        return _WORDS[text]
    bare = text.replace("_", "")
    if found := _INTEGER.fullmatch(bare):
        digits, base = next((one, base) for one, base in zip(found.groups()[1:], _BASES, strict=True) if one)  # fmt: skip
        return int(found[1] + digits, base)
    if _FLOAT.fullmatch(bare) and math.isfinite(number := float(bare)):
        return number
    return text
