"""An object as YAML, with what policies object to marked in it: the path, what the rule wants there and what it got.

What a rule objects to is read from the message of its result (`failed at path …`), from the plain paths of its deny conditions and
from its CEL expressions; what it wants stands in the policy. Values of Secrets are never shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine.codes import CODE_ANNOTATION, HIDDEN
from engine.fields import items, part, word
from engine.lang.gotext import compact_json
from engine.lang.pattern.anchors import parse_key
from engine.lang.yaml import load_all
from engine.record import record
from kubectl_kpolicy.output.cells import mark_of, plain
from kubectl_kpolicy.output.structured import yaml_text

from .details import policy_of, rule_of
from .violations import brief_message, is_failure, rows_by_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row

    from .cache import ClusterCache

    Path = tuple[str | int, ...]

_AT = re.compile(r"rule [^\s\[\]]+(?:\[(?P<index>\d+)\])? failed at path (?P<path>/\S*)")
_PLAIN_KEY = re.compile(r"\{\{\s*request\.object\.([\w.]+)\s*(?:\|\|[^}]*)?\}\}")
_SEEN = re.compile(r"\b(?:object|variables\.object)\.([A-Za-z_][\w.]*\w)")
_LONGEST = 120
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@record
class Objection:
    """What a rule objects to: where in the object, what it wants there, and what is there."""

    path: Path
    rule: str
    want: str
    got: str

    def __str__(self) -> str:
        return f"<- {self.rule}: want {self.want}, got {self.got}"


def objections(obj: Object, world: ClusterCache) -> list[Objection]:
    """Return what the failing results about an object object to, as far as a place in it can be told."""
    place = (
        word(obj, "metadata", "namespace"),
        f"{word(obj, 'kind')}/{word(obj, 'metadata', 'name')}",
    )
    found: dict[tuple[Path, str], Objection] = {}
    for row in rows_by_object(world).get(place, ()):
        if is_failure(row):
            for one in _of_result(obj, row, world):
                found.setdefault((one.path, one.rule), one)
    return list(found.values())


def _of_result(obj: Object, row: Row, world: ClusterCache) -> Iterator[Objection]:
    policy = policy_of(row, world)
    name = f"{row.text('policy')}/{row.text('rule')}".rstrip("/")
    if policy is None:
        return
    rule = rule_of(policy, row.text("rule")) or {}
    for found in _AT.finditer(row.text("message")):
        path = _path(found["path"])
        pattern = part(rule, "validate").get("pattern")
        if found["index"] is not None:
            choices = part(rule, "validate").get("anyPattern") or []
            pattern = choices[int(found["index"])] if int(found["index"]) < len(choices) else None
        yield _objection(obj, name, path, _wanted(pattern, _inner(path, row.text("rule"))))
    yield from _of_conditions(obj, rule, name, row)
    yield from _of_expressions(obj, policy, name, row)


def _of_conditions(obj: Object, rule: Object, name: str, row: Row) -> Iterator[Objection]:
    """Yield the deny conditions that look at a plain path of the object."""
    given = part(rule, "validate", "deny").get("conditions")
    groups = given.values() if isinstance(given, dict) else [given or []]
    wrapping = _wrapping(row.text("rule"))
    for condition in (one for group in groups for one in group if isinstance(one, dict)):
        found = _PLAIN_KEY.fullmatch(str(condition.get("key", "")).strip())
        if found is not None:
            path = (*wrapping, *found[1].split("."))
            want = f"not {condition.get('operator')} {_said(condition.get('value'))}"
            yield _objection(obj, name, path, want)


def _of_expressions(obj: Object, policy: Object, name: str, row: Row) -> Iterator[Objection]:
    """Yield the paths of the CEL expression whose message the result has, or of the only one."""
    rules = items(policy, "spec", "validations") or items(
        rule_of(policy, row.text("rule")) or {}, "validate", "cel", "expressions"
    )
    said = brief_message(row)
    for one in rules:
        if len(rules) == 1 or (word(one, "message") and word(one, "message") in said):
            expression = word(one, "expression")
            for path in dict.fromkeys(_SEEN.findall(expression)):
                steps = tuple(path.split("."))
                if steps[-1] not in ("all", "exists", "size", "map", "filter", "startsWith"):
                    yield _objection(obj, name, steps, _said(expression))


def _objection(obj: Object, name: str, path: Path, want: str) -> Objection:
    there, value = _seen(obj, path)
    missing = "/".join(map(str, path[len(there) :]))
    if missing:
        return Objection(there, name, f"{missing}: {want}" if want else missing, "nothing")
    return Objection(path, name, want or "something else", _said(value))


def _path(text: str) -> Path:
    return tuple(int(one) if one.isdecimal() else one for one in text.strip("/").split("/") if one)


def _wrapping(rule: str) -> tuple[str, ...]:
    from engine.autogen import place_of  # here: most screens show no object

    place = place_of(rule)
    return place.path if place is not None else ()


def _inner(path: Path, rule: str) -> Path:
    """Return a path as the rule for Pods has it, from which the one for their controllers was made."""
    wrapping = _wrapping(rule)
    return path[len(wrapping) :] if path[: len(wrapping)] == wrapping else path


def _wanted(pattern: Any, path: Path) -> str:
    """Return what a pattern has at a path, as far down as it goes."""
    place = pattern
    for step in path:
        if isinstance(place, list) and isinstance(step, int):
            place = place[min(step, len(place) - 1)] if place else None
        elif isinstance(place, dict):
            keys = {parse_key(key)[1]: key for key in place}
            place = place.get(keys.get(str(step), keys.get("*", "")))
    return "" if place is None else _said(place)


def _said(value: Any) -> str:
    text = value if isinstance(value, str) and value else compact_json(value)
    return plain(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def _seen(obj: Object, path: Path) -> tuple[Path, Any]:
    """Return how far a path leads into an object, and what is there."""
    place: Any = obj
    for number, step in enumerate(path):
        if isinstance(place, list) and isinstance(step, int) and step < len(place):
            place = place[step]
        elif isinstance(place, dict) and str(step) in place:
            place = place[str(step)]
        else:
            return path[:number], place
    return path, place


# The text: the object without what nobody wrote, each objection at the end of its line.


def shown_object(obj: Object) -> Object:
    """Return an object as it is shown: without who manages which field, and with codes and the values of a Secret hidden."""
    metadata = {
        key: value for key, value in part(obj, "metadata").items() if key != "managedFields"
    }
    if _APPLIED in part(metadata, "annotations"):
        metadata["annotations"] = {
            key: value for key, value in metadata["annotations"].items() if key != _APPLIED
        }
    if CODE_ANNOTATION in part(metadata, "annotations"):
        metadata["annotations"] = {**metadata["annotations"], CODE_ANNOTATION: HIDDEN}
    made = {**obj, "metadata": metadata}
    if obj.get("kind") == "Secret":
        for name in ("data", "stringData"):
            if name in obj:
                made[name] = {
                    key: f"(hidden, {len(str(value))} characters)"
                    for key, value in part(obj, name).items()
                }
    return made


def marked(obj: Object, found: Sequence[Objection]) -> Iterator[tuple[str, str]]:
    """Yield the lines of an object as YAML, each with the objections to it, empty for none."""
    text = yaml_text(obj)
    read = load_all(text)[0]
    marks: dict[int, list[str]] = {}
    for one in found:
        marks.setdefault(read.line_of(one.path), []).append(str(one))
    for number, line in enumerate(text.splitlines(), 1):
        yield plain(line), "; ".join(marks.get(number, ()))


# Who owns the object, and which policies speak of it, as trees in comments above it.


def trees(owners: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of two trees: owners from the outermost to the object itself, and results by policy and rule."""
    if len(owners) > 1:
        yield "owners"
        yield from (f"{'  ' * depth}└ {plain(name)}" for depth, name in enumerate(owners))
    groups: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: not is_failure(row)):
        groups.setdefault(row.text("policy"), []).append(row)
    if groups:
        yield "policies"
    for policy, results in groups.items():
        yield f"└ {plain(policy)}"
        for row in results:
            state = row.text("result")
            message = f": {brief_message(row)}" if is_failure(row) else ""
            yield f"  └ {mark_of(state).glyph} {state} {plain(row.text('rule') + message)}"
