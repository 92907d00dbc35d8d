"""The types of built-in kinds, read once from `types.json.xz`: what fields there are, of which type, how lists merge.

For whoever walks an object of a built-in kind: protobuf, unknown-field checks, strategic merge, server-side apply, OpenAPI.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

LEAVES = frozenset(
    [
        "string",
        "bool",
        "int32",
        "int64",
        "float64",
        "bytes",
        "time",
        "microtime",
        "duration",
        "fields",
        "quantity",
        "intorstring",
        "raw",
        "json",
    ]
)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct; `type` is a leaf, the name of a struct, or either after `[]`, `map:` or `items:`."""

    type: str
    number: int = 0
    pointer: bool = False
    required: bool = False
    strategy: frozenset[str] = frozenset()
    merge_key: str = ""
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct: its fields by JSON name, those of embedded structs included; `inline` are the embedded ones for protobuf."""

    fields: dict[str, Field]
    inline: tuple[tuple[int, str], ...]
    own: frozenset[str]
    text: str


@cache
def _table() -> dict[str, Any]:
    import lzma

    import orjson

    packed = Path(__file__).with_name("types.json.xz").read_bytes()
    table: dict[str, Any] = orjson.loads(lzma.decompress(packed))
    return table


@cache
def struct(name: str) -> Struct | None:
    """Return a struct by name; None for leaves and unknown names."""
    raw = _table().get(name)
    if raw is None:
        return None
    fields = {key: _field(value) for key, value in raw["f"].items()}
    own = frozenset(fields)
    inline = tuple((number, kind) for number, kind in raw.get("i", ()))
    for _, kind in inline:
        if embedded := struct(kind):
            fields.update(embedded.fields)
    return Struct(fields, inline, own, raw["d"])


def _field(raw: dict[str, Any]) -> Field:
    return Field(
        type=raw["t"],
        number=raw.get("n", 0),
        pointer="p" in raw,
        required="r" in raw,
        strategy=frozenset(raw.get("s", "").split(",")) - {""},
        merge_key=raw.get("m", ""),
        list_type=raw.get("l", ""),
        list_keys=tuple(raw.get("k", ())),
        text=raw["d"],
    )


def item_type(type_name: str) -> str:
    """Return the type of what a list or map holds, the type itself for anything else."""
    for prefix in ("[]", "map:", "items:"):
        if type_name.startswith(prefix):
            return type_name[len(prefix) :]
    return type_name


def is_list(type_name: str) -> bool:
    """Tell whether a type is a list."""
    return type_name.startswith(("[]", "items:"))
