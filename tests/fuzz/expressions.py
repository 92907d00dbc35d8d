"""Inputs that nobody would write: CEL expressions from a grammar, changed rows of the table, junk; and data for them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from engine.lang import cel
from engine.lang.cel.functions.authorizing import Authorizer
from tests.engine.cel.rows import all_rows

if TYPE_CHECKING:
    from random import Random

NAMES: Final = ("x", "y", "object", "s", "n", "l", "m", "t", "d", "f", "o", "b", "z")
LEAVES: Final[dict[str, tuple[str, ...]]] = {
    "int": ("0", "1", "-1", "7", "9223372036854775807", "-9223372036854775808", "y[0]", "object.size", "63", "i"),
    "uint": ("0u", "2u", "18446744073709551615u", "n"),
    "double": ("0.5", "1e308", "-0.0", "0.0/0.0", "f", "5e-324"),
    "string": ('""', '"a"', '"1"', '"é🐱"', '"[0-9]+"', '"(a+)+$"', '"1.5Gi"', '"2024-02-29T12:34:56Z"', '"90m"', '"10.0.0.0/8"',
        '"::1"', '"https://a.b:80/c?d=e"', '"1.2.3"', '"nginx:1"', '"Europe/Berlin"', '"%s %d %.3f %x"', '"{\\"a\\": 1}"',
        "'a: [1]'", '"\\ud83d"', "r'\\'", "s", "l[0]", '"get"', '"uuid"', '"aGk="', '"%s"', '"v1"'),
    "bytes": ('b"\\xff"', 'b""', "b", 'b"a"'),
    "bool": ("true", "false", "x == 1", "has(object.a)"),
    "list": ("[]", "[1, 2]", '["a", "b"]', "y", "l", "[[1], [2]]", "[0.5, 1u, 2]", "[null, true]"),
    "map": ("{}", "object", "m", '{"a": {"b": 1}}', "{1: 2}", "{true: 1}"),
    "null": ("null",),
    "timestamp": ('timestamp("9999-12-31T23:59:59Z")', "timestamp(0)", "t"),
    "duration": ('duration("-2562047h")', 'duration("90m")', "d"),
    "type": ("int", "type", "google.protobuf.Timestamp"),
    "optional_type": ("optional.none()", "optional.of(1)", "o", "object.?a.b", "y[?1]"),
    "Authorizer": ("z",),
    "Check": ('z.path("/x")', 'z.group("apps")'),
    "Decision": ('z.path("/x").check("get")',),
    "Quantity": ('quantity("1.5Gi")', 'quantity("1e100")', 'quantity("-1n")'),
    "URL": ('url("https://[::1]:80/a?b=c")', 'url("/a")'),
    "IP": ('ip("10.0.0.1")', 'ip("::1")'),
    "CIDR": ('cidr("10.0.0.0/8")', 'cidr("::/0")'),
    "Format": ("format.uuid()", "format.qualifiedName()"),
    "Semver": ('semver("1.2.3-rc.1")',),
    "Image": ('image("ghcr.io/a/b:v1")',),
    "HttpClient": ('http.Client("x")',),
    "dyn": ("x", "m.a", "object.a.b", "z", "i"),
}  # fmt: skip
SHAPES: Final[dict[str, tuple[str, ...]]] = {
    "int": ("{int} + {int}", "{int} * {int}", "{int} % {int}", "-{int}", "{int} - {int}", "{int} / {int}"),
    "uint": ("{uint} + {uint}", "{uint} - {uint}", "{uint} / {uint}"),
    "double": ("{double} * {double}", "{double} / {double}", "-{double}"),
    "string": ("{string} + {string}", "{string}.format({list})", "{list}.map(i, {string}).join({string})",
        "(s + s + s).replace({string}, s + s)", "y.map(i, s).join(s)"),
    "bytes": ("{bytes} + {bytes}",),
    "bool": ("{dyn} == {dyn}", "{int} < {double}", "{string} >= {string}", "{dyn} in {list}", "{dyn} in {map}", "!{bool}",
        "{bool} && {bool}", "{bool} || {bool}", "{list}.all(i, {bool})", "{list}.exists(i, {bool})", "{map}.all(i, j, {bool})",
        "{list}.exists_one(i, {bool})", "{list}.existsOne(i, j, {bool})", "has({map}.a)", "{bool} && {dyn}"),
    "list": ("[{dyn}, {dyn}]", "[?{optional_type}]", "{list} + {list}", "{list}.map(i, {dyn})", "{list}.filter(i, {bool})",
        "{list}.map(i, {bool}, {dyn})", "{map}.transformList(i, j, {dyn})", "{list}.sortBy(i, {int})", "{map}.map(i, {string})",
        "{list}.map(i, {list}.map(j, {dyn}))", "y.map(i, y.map(j, {int}))", "y.map(i, l + y)", "y.map(i, y).flatten()"),
    "map": ('{"a": {dyn}, "b": {dyn}}', "{{dyn}: {dyn}}", "{?{string}: {optional_type}}", "{map}.transformMap(i, j, {dyn})",
        "{list}.transformMap(i, j, {bool}, {dyn})", "{map}.transformMapEntry(i, j, {{string}: i})", "Object{a: {dyn}}",
        "google.protobuf.Struct{fields: {map}}"),
    "timestamp": ("{timestamp} + {duration}", "{timestamp} - {duration}"),
    "duration": ("{timestamp} - {timestamp}", "{duration} + {duration}"),
    "optional_type": ("{map}.?a", "{list}[?{int}]", "{optional_type}.optMap(i, {dyn})", "{map}[?{string}].b",
        "{optional_type}.optFlatMap(i, {optional_type})"),
    "dyn": ("{map}.a", "{list}[{int}]", "{map}[{dyn}]", "cel.bind(i, {dyn}, {dyn})", "({dyn})", "{bool} ? {dyn} : {dyn}",
        "{optional_type}.orValue({dyn})"),
}  # fmt: skip
JUNK: Final = "\x00\t\n \"'`\\()[]{}.,:?!&|=<>+-*/%#@$^~;_0123456789abcdeEuUxXrRbB\u00e9\u2028\ud800\U0001f431"
_HOLE: Final = re.compile(r"\{(\w+)\}")
_KINDS: Final = tuple(SHAPES)


def _calls() -> dict[str, tuple[str, ...]]:
    """Return calls of all functions as shapes, by what they give."""
    found: dict[str, list[str]] = {}
    for _, signature in cel.signatures():
        called, _, result = signature.partition(" -> ")
        name, _, parameters = called[:-1].partition("(")
        receiver, _, method = name.rpartition(".")
        holes = ", ".join(f"{{{part.strip(' .')}}}" for part in parameters.split(",") if part)
        is_method = receiver in LEAVES or receiver[:1].isupper()
        start = f"{{{receiver}}}.{method}" if is_method else name
        found.setdefault(result, []).append(f"{start}({holes})")
    return {result: tuple(shapes) for result, shapes in found.items()}


_CALLS: Final = _calls()
_ROWS: Final = tuple(row.expression for row in all_rows())


def expression(chance: Random) -> str:
    """Return an expression: three in five from the grammar, three in ten changed ones, the rest junk."""
    kind = chance.random()
    if kind < 0.6:
        return grown(chance, chance.choice((1, 2, 2, 3, 3, 4)))
    if kind < 0.9:
        return changed(chance, chance.choice(_ROWS))
    return junk(chance)


def grown(chance: Random, depth: int, kind: str = "") -> str:
    """Return an expression of the grammar, at most so deep; nearly always of the kind, and with sound types below."""
    if not kind or chance.random() < 0.03:
        kind = chance.choice(_KINDS)
    shapes = SHAPES.get(kind, ()) if chance.random() < 0.5 else _CALLS.get(kind, ())
    if kind == "dyn" and chance.random() < 0.5:
        return grown(chance, depth, chance.choice(_KINDS))
    if depth <= 0 or not shapes:
        return chance.choice(LEAVES[kind])
    if chance.random() < 0.005:
        opening = chance.choice(("(", "[", "!", "-", "{1: ", "a.", "f("))
        return opening * chance.randrange(200) + grown(chance, 0)
    shape = chance.choice(shapes)
    built = _HOLE.sub(lambda hole: grown(chance, depth - chance.choice((1, 1, 2)), hole[1]), shape)
    return f"({built})" if chance.random() < 0.5 else built


def changed(chance: Random, text: str) -> str:
    """Return a text with some pieces taken out, doubled, replaced by junk or by pieces of other rows."""
    for _ in range(chance.choice((1, 1, 2, 3, 5))):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.choice((0, 1, 1, 2, 5, 20)))
        other = chance.choice(_ROWS)
        cut = chance.randrange(len(other) + 1)
        new = chance.choice(("", chance.choice(JUNK), text[at:end] * 2, other[cut : cut + 8]))
        text = text[:at] + new + text[end:]
    return text


def junk(chance: Random) -> str:
    """Return characters without a plan, one of them sometimes very often."""
    size = chance.choice((1, 3, 10, 40))
    text = "".join(chance.choice(JUNK) for _ in range(size))
    return text * chance.randrange(300) if chance.random() < 0.05 else text


def bindings(chance: Random) -> dict[str, Any]:
    """Return values of all types by name; some large, some of odd numbers."""
    texts = ("", "a", "1.5Gi", "é🐱", "\ud800", "a" * 5000, "2024-02-29T12:34:56Z", "{", "%s" * 50)
    numbers = (0, 1, -1, 2**63 - 1, -(2**63), 7)
    return {
        "x": chance.choice((*texts, *numbers, None, True)),
        "y": [chance.choice(numbers) for _ in range(chance.choice((0, 1, 3, 300)))],
        "object": {"a": {"b": chance.choice(texts)}, "spec": {"a-b": [1, {"a": 2}]}, "size": 3, "": 1},
        "s": chance.choice(texts),
        "n": cel.Uint(chance.choice((0, 1, 2**64 - 1))),
        "l": [chance.choice(texts[:4]) for _ in range(chance.choice((0, 2, 60)))],
        "m": {"a": 1, "b": "x", 1: 2.5, "c-d": None},
        "t": cel.Timestamp(chance.choice((0, -1, 253_402_300_800 * 10**9 - 1, -62_135_596_800 * 10**9))),
        "d": cel.Duration(chance.choice((0, -1, 2**63 - 1, -(2**63)))),
        "f": chance.choice((0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, 5e-324, 2.5, -0.5)),
        "o": chance.choice((cel.NONE, cel.Optional(1), cel.Optional({"a": [1]}))),
        "b": chance.choice((b"", b"\xff", b"a" * 300)),
        "z": chance.choice((Authorizer(), _nested(chance.choice((5, 150, 3000))))),
        "i": 1,
        "j": "a",
    }  # fmt: skip


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value
