"""The table of cases: rows of YAML files, and what a row asks of an evaluation.

A row is `[expression, expected]` or `[expression, expected, bindings]`. Values that YAML has no type for are tagged:
`!uint 1`, `!hex ff00` (bytes), `!time 2024-01-01T00:00:00Z`, `!span 90` (seconds), `!type int`, `!some value`, `!none`,
`!error kind`. Expected values come from the language definition and the libraries' documentation.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from engine.errors import EngineError
from engine.lang import cel
from engine.lang.cel.typed import encode
from engine.lang.cel.values import as_key

CASES = Path(__file__).parent / "cases"
NOW = dt.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=dt.UTC)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
KINDS = {
    "syntax": "",
    "undeclared": "undeclared reference|found no matching overload",
    "overflow": "overflow|range error|must be between",
    "division": "division by zero|modulus by zero",
    "overload": "no such overload|invalid qualifier|expected iterable type|unsupported|non-optional|can only be used|can be formatted"
    "|join: invalid|must be comparable|have the same type",
    "key": "no such key|no such attribute",
    "repeated": "repeated key|already exists",
    "index": "out of bounds|out of range|invalid substring|cannot slice|negative",
    "conversion": "type conversion error|invalid UTF-8|parse error|not allowed|could not parse|illegal base64|failed to decode"
    "|quantities must match|No Major|Invalid character|leading zeroes|Version string",
    "zone": "unknown time zone",
    "empty": "empty|dereference",
    "pattern": "error parsing regexp|capturing group|replacement string|group",
    "clause": "formatting clause|unexpected end",
    "field": "no such field",
    "message": "",
}
COMPILING = ("syntax", "undeclared")


@dataclass(frozen=True)
class Failure:
    """An expected error, by kind."""

    kind: str


@dataclass(frozen=True)
class Row:
    """One case and where it stands."""

    place: str
    expression: str
    expected: Any
    bindings: dict[str, Any]


class _Loader(yaml.SafeLoader):
    """Reads the tags of the table; equal keys of different types stay apart."""


def _tag(name: str, read: Any) -> None:
    _Loader.add_constructor(f"!{name}", lambda loader, node: read(_content(loader, node)))


def _content(loader: _Loader, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_object(
            yaml.ScalarNode(loader.resolve(yaml.ScalarNode, node.value, (node.style is None, False)),
                            node.value)
        )  # fmt: skip
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return _mapping(loader, node)


def _mapping(loader: _Loader, node: yaml.Node) -> dict[Any, Any]:
    return {
        as_key(loader.construct_object(key, deep=True)): loader.construct_object(value, deep=True)
        for key, value in node.value
    }


def _moment(text: Any) -> cel.Timestamp:
    found = re.fullmatch(r"(.{19})(?:\.(\d+))?Z", text)
    assert found is not None, text
    at = dt.datetime.fromisoformat(f"{found[1]}+00:00")
    whole = (at - EPOCH) // dt.timedelta(seconds=1)
    return cel.Timestamp(whole * 10**9 + int((found[2] or "0").ljust(9, "0")))


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_tag("uint", cel.Uint)
_tag("hex", lambda text: bytes.fromhex(str(text or "")))
_tag("time", _moment)
_tag("span", lambda seconds: cel.Duration(round(seconds * 10**9)))
_tag("type", cel.CelType)
_tag("some", cel.Optional)
_tag("none", lambda _: cel.NONE)
_tag("error", Failure)


def rows(path: Path) -> list[Row]:
    """Return the rows of a file."""
    with path.open(encoding="utf-8") as stream:
        found = yaml.load(stream, _Loader)
    return [
        Row(f"{path.stem}:{number}", row[0], row[1], row[2] if len(row) > 2 else {})
        for number, row in enumerate(found)
    ]


def all_rows() -> list[Row]:
    """Return the rows of all files."""
    return [row for path in sorted(CASES.glob("*.yaml")) for row in rows(path)]


def echo(lookup: Any) -> Any:
    """Answer a lookup with what was asked, so that rows see it; access checks are allowed for `get` only."""
    fields = {
        key: plain(value) for key, value in asdict(lookup).items() if value not in ("", None, ())
    }
    answer = {"lookup": type(lookup).__name__, **fields}
    if isinstance(lookup, cel.lookups.AccessCheck):
        words = " ".join(f"{key}={value}" for key, value in sorted(fields.items()))
        return {"allowed": lookup.verb == "get", "reason": words, "error": lookup.name}
    return lookup.namespace == "ok" if isinstance(lookup, cel.lookups.GenerateObjects) else answer


def plain(value: Any) -> Any:
    """Return a value with lists in place of tuples."""
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if is_dataclass(value) and type(value).__name__ == "Image":
        return asdict(value)
    return value


def evaluated(row: Row) -> Any:
    """Return the typed JSON of a row's value, or the text of its error; `syntax: ` before those of compiling."""
    try:
        program = cel.compile(row.expression)
    except EngineError as error:
        return f"syntax: {error.message}"
    try:
        return encode(program(row.bindings, cel.CelEnv(now=NOW, ask=echo)))
    except EngineError as error:
        return error.message


def expectation(row: Row) -> Any:
    """Return the typed JSON that a row expects."""
    return encode(row.expected)


def ordered(shown: Any) -> Any:
    """Return typed JSON with the entries of maps in one order, since maps have none."""
    if not isinstance(shown, dict):
        return shown
    if shown["type"] == "map":
        return {
            "type": "map",
            "value": sorted(([ordered(k), ordered(v)] for k, v in shown["value"]), key=repr),
        }
    if shown["type"] == "list":
        return {"type": "list", "value": [ordered(part) for part in shown["value"]]}
    if shown["type"] == "double" and isinstance(shown["value"], float):
        return {"type": "double", "value": repr(shown["value"])}
    return shown


def holds(row: Row) -> bool:
    """Return whether an evaluation gives what the row expects."""
    found = evaluated(row)
    if isinstance(row.expected, Failure):
        is_compiling = isinstance(found, str) and found.startswith("syntax: ")
        return (
            isinstance(found, str)
            and is_compiling == (row.expected.kind in COMPILING)
            and re.search(KINDS[row.expected.kind], found) is not None
        )
    return ordered(found) == ordered(expectation(row))
