"""Printer columns: which columns `kubectl get` shows of a kind, and what stands in them.

Built-in kinds have theirs in `printers`, custom kinds in their CRD; everything else shows name and age.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import orjson

from kpolicy_sandbox.clock import parse_instant

Object = dict[str, Any]
Cell = Callable[[Object, datetime], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those with a priority above 0 are for `-o wide`."""

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""

    def definition(self) -> Object:
        """Return the column as a Table describes it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def custom_columns(columns: Any) -> list[Column]:
    """Return the columns that a custom kind declares, the name first; name and age where it declares none."""
    if not columns:
        return [NAME, AGE]
    return [
        NAME,
        *(
            Column(
                name=column["name"],
                cell=_from_path(column["jsonPath"], column["type"]),
                type=column["type"],
                priority=column.get("priority", 0),
                format=column.get("format", ""),
                description=column.get("description", ""),
            )
            for column in columns
        ),
    ]


def _from_path(path: str, kind: str) -> Cell:
    find = json_path(path)

    def cell(obj: Object, now: datetime) -> Any:
        found = find(obj)
        if not found:
            return None
        value = found[0]
        if kind == "date":
            return age_of(value, now)
        if kind in {"integer", "number", "boolean"}:
            return value
        return value if isinstance(value, str) else orjson.dumps(value).decode()

    return cell


_STEP = re.compile(
    r"""\.(?P<key>[\w$-]+(?:\\\.[\w$/-]+)*)|\[['"](?P<quoted>[^'"]+)['"]\]|\[(?P<index>\d+)\]|\[(?P<all>\*)\]"""
    r"""|\[\?\(@\.(?P<field>[\w.-]+)\s*==\s*['"](?P<value>[^'"]*)['"]\)\]"""
)


@cache
def json_path(path: str) -> Callable[[Any], list[Any]]:
    """Compile a simple JSONPath (`.a.b`, `['x']`, `[0]`, `[*]`, `[?(@.type=="Ready")]`); what it cannot read finds nothing."""
    steps = list(_STEP.finditer(path))
    if "".join(step[0] for step in steps) != path.strip("{}"):
        return lambda _: []

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = [inner for one in found for inner in _follow(step, one)]
        return found

    return find


def _follow(step: re.Match[str], value: Any) -> list[Any]:
    key = step["quoted"] or (step["key"] or "").replace("\\.", ".")
    if key:
        found = value.get(key) if isinstance(value, dict) else None
        return [] if found is None else [found]
    if not isinstance(value, list):
        return []
    if step["index"]:
        return value[int(step["index"]) : int(step["index"]) + 1]
    if step["all"]:
        return value
    return [
        one for one in value if isinstance(one, dict) and one.get(step["field"]) == step["value"]
    ]


def age_of(stamp: Any, now: datetime) -> str:
    """Return how long ago an instant was, as Kubernetes writes it: `45s`, `5m30s`, `3h`, `2d4h`."""
    instant = parse_instant(stamp)
    if instant is None:
        return "<unknown>"
    return duration_text(int((now - instant).total_seconds()))


def duration_text(seconds: int) -> str:
    """Return a duration in at most two units, the small one only while it says something."""
    if seconds < 0:
        return "0s" if seconds >= -2 else "<invalid>"
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


NAME = Column(
    "Name",
    lambda obj, _: obj["metadata"]["name"],
    format="name",
    description="Name must be unique within a namespace.",
)
AGE = Column(
    "Age",
    lambda obj, now: age_of(obj["metadata"].get("creationTimestamp"), now),
    description="Time since the object was created.",
)
