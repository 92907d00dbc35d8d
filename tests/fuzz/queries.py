"""JMESPath expressions and texts with variables from a grammar; and the data that they are evaluated on."""

from __future__ import annotations

import zlib
from random import Random
from typing import TYPE_CHECKING, Any, Final

from engine.lang.jmes import functions
from tests.fuzz import trees

if TYPE_CHECKING:
    from collections.abc import Sequence

_POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-1", "namespace": "shop", "labels": {"team": "blue", "a/b": "x"}, "annotations": {"note": "{{ request.object.kind }}"}},
    "spec": {"containers": [{"name": "c", "image": "nginx:1.25", "ports": [{"containerPort": 80}], "resources": {"limits": {"memory": "1Gi", "cpu": "500m"}}},
                            {"name": "d", "image": "ghcr.io/a/b@sha256:" + "0" * 64}], "hostPID": False},
}  # fmt: skip
_FIELDS: Final = (
    "request.object", "request.object.metadata.name", "request.object.metadata.labels", "request.object.spec.containers",
    "request.object.spec.containers[].image", "request.operation", "request.userInfo.groups", "element", "elementIndex", "@", "texts", "numbers",
    "odd", "deep", "missing", "texts[0]", "numbers[*]", "images", "serviceAccountName", '"a.b"', "time", "certificate",
)  # fmt: skip
_LITERALS: Final = (
    "'a'", "''", "'1Gi'", "'500m'", "'-1n'", "'1h30m'", "'2026-11-22T00:00:00Z'", "'Mon, 02 Jan 2006 15:04:05 MST'", "'[0-9]+'", "'(a+)+$'", "'*'", "'?*'",
    "'1.2.3'", "'>=1.0.0 <2'", "'nginx:1'", "'aGk='", "'[1, 2'", "'a: [1]'", "'Europe/Berlin'", "'10.0.0.0/8'", "'/a/../b'", "'%s'", "`0`", "`-1`", "`1.5`", "`1e308`",
    "`9223372036854775807`", "`[]`", "`{}`", "`null`", "`true`", '`[1, "a", null]`', '`{"a": {"b": [1]}}`', '`"é"`', "'[a-z]{3,9}'", "'{{'",
)  # fmt: skip
_SHAPES: Final = (
    "{}.a", "{}[0]", "{}[-1]", "{}[]", "{}[*]", "{}.*", "{}[::2]", "{}[1:3]", "{}[?{}]", "{} | {}", "{} || {}", "{} && {}", "!{}", "{} == {}", "{} < {}",
    "{} >= {}", "[{}, {}]", "{{a: {}, b: {}}}", "({})", "{}.{{a: {}}}", "{}[].[{}]", "sort_by({}, &{})", "map(&{}, {})", "max_by({}, &{})", "{}[?@ != {}]",
)  # fmt: skip


def _calls() -> Sequence[str]:
    found = []
    for name, function in sorted(functions.table().items()):
        rest = function.signature.partition("(")[2]
        parameters = [one for one in rest.partition(")")[0].removesuffix("...").split(", ") if one]
        holes = ("&{}" if "expref" in one else "{}" for one in parameters)
        found.append(f"{name}({', '.join(holes)})")
    return found


_CALLS: Final = _calls()


def query(chance: Random, depth: int = 3) -> str:
    """Return a JMESPath expression."""
    kind = chance.random()
    if depth <= 0 or kind < 0.2:
        return chance.choice(_FIELDS if chance.random() < 0.6 else _LITERALS)
    if kind < 0.21:
        opening = chance.choice(("(", "[", "!", "a.", "length(", "{a: "))
        return opening * chance.choice((5, 60, 120)) + "a"
    shape = chance.choice(_CALLS if kind < 0.65 else _SHAPES)
    parts = [query(chance, depth - 1) for _ in range(shape.replace("{{", "").count("{}"))]
    return shape.format(*parts)


def made_query(chance: Random) -> bytes:
    """Return an expression, now and then with a piece changed."""
    text = query(chance, chance.choice((1, 2, 3)))
    return (trees.cut(chance, text) if chance.random() < 0.2 else text).encode()


def made_template(chance: Random) -> bytes:
    """Return a text with variables: in a row, nested, shallow, escaped, unclosed."""
    parts = [_part(chance, 2) for _ in range(chance.choice((1, 1, 2, 3, 8)))]
    text = "".join(parts)
    if chance.random() < 0.01:
        text *= 200
    return (trees.cut(chance, text) if chance.random() < 0.2 else text).encode()


def _part(chance: Random, depth: int) -> str:
    kind = chance.random()
    if kind < 0.2:
        return chance.choice(("x", " ", "-", "{", "}", "\\", "{{", "}}", "$(", "é", "\n", ""))
    inner = query(chance, 1)
    if depth > 0 and kind < 0.4:
        inner = chance.choice(("request.object.metadata.{}", "{}", "texts[{}]", "'{}'")).replace("{}", _part(chance, depth - 1))  # fmt: skip
    opening = chance.choice(("{{ ", "{{", "{{- ", "\\{{ ", "{{{"))
    return f"{opening}{inner}{chance.choice((' }}', '}}', '}}', '}'))}"


def data_for(text: str) -> dict[str, Any]:
    """Return data to evaluate a text on, always the same for the same text; texts mention variables, numbers are odd."""
    chance = Random(zlib.crc32(text.encode(errors="replace")))
    size = chance.choice((0, 2, 5, 300))
    return {
        "request": {"object": _POD, "operation": "CREATE", "userInfo": {"username": "eve", "groups": ["a", "b"]}},
        "element": _POD["spec"]["containers"][0],
        "elementIndex": chance.choice((0, 1)),
        "texts": [chance.choice(trees.TEXTS) for _ in range(size)],
        "numbers": [chance.choice(trees.NUMBERS) for _ in range(size)],
        "odd": trees.grown(chance, 4),
        "deep": trees.deep(chance),
        "images": {"containers": {"c": {"registry": "docker.io", "name": "nginx", "tag": "1.25"}}},
        "serviceAccountName": "default",
        "a.b": chance.choice(trees.TEXTS),
        "time": "2026-11-22T03:10:00Z",
        "certificate": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    }  # fmt: skip
