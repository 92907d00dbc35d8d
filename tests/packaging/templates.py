"""Makes Helm templates out of objects: what a choice changes in them becomes a value of the chart.

Objects are made once with a mark in the place of every choice, and once more without each choice that may be left out. Marks
become `{{ .Values.… }}`, and what is then missing stands between `{{ if }}` and `{{ end }}`. So the chart decides nothing
that `kubectl kpolicy install` does not.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from controllers.manifests.choice import Choice
from engine.lang.yaml.write import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.model import Object

NOT_VALUES = frozenset({"with_kinds", "with_controllers"})
"""What is no value of the chart: kinds are in a folder of their own, and a chart without controllers is none."""
_LIVE = '(lookup "v1" "Namespace" "" "kube-system")'
"""Whether a cluster is asked: there Helm makes the namespace itself (`--create-namespace`) and fails where the chart has it, too."""
_PLAIN_KEY = re.compile(r"[A-Za-z][\w./-]*")
_FIRST_NUMBER = 900_001


def value_name(name: str) -> str:
    """Return the name of a field of Choice as a value of the chart."""
    first, *rest = name.removeprefix("with_").split("_")
    return first + "".join(part.capitalize() for part in rest)


def values() -> dict[str, Any]:
    """Return the chart's values with their defaults, as fields of Choice have them; `namespace` is whether the chart has it."""
    given = {one.name: one.default for one in fields(Choice) if one.name not in NOT_VALUES}
    del given["namespace"]
    return {
        value_name(name): list(usual) if isinstance(usual, tuple) else usual
        for name, usual in given.items()
    }


@dataclass(slots=True)
class Marks:
    """What stands in the objects in the place of choices: whole numbers, texts, and items of lists."""

    numbers: dict[int, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    items: dict[str, str] = field(default_factory=dict)
    optional: dict[str, Any] = field(default_factory=dict)
    """Fields that may be left out, with what leaves them out."""


def marked_choice() -> tuple[Choice, Marks]:
    """Return the choice that has a mark for everything and leaves out nothing."""
    marks, given = Marks(), {}
    for number, one in enumerate(fields(Choice)):
        if one.name in NOT_VALUES:
            continue
        name, mark = f".Values.{value_name(one.name)}", f"mark-of-{one.name.replace('_', '-')}-x"
        match one.default:
            case bool():
                given[one.name], marks.optional[one.name] = True, False
            case int():
                marks.numbers[_FIRST_NUMBER + number] = name
                given[one.name] = _FIRST_NUMBER + number
            case tuple():
                marks.items[mark], marks.optional[one.name] = name, ()
                given[one.name] = (mark,)
            case _:
                marks.texts[mark] = ".Release.Namespace" if one.name == "namespace" else name
                given[one.name] = mark
                if not one.default:
                    marks.optional[one.name] = ""
    return Choice(**given), marks


def condition_of(name: str) -> str:
    """Return the condition under which an optional field is not left out."""
    condition = f".Values.{value_name(name)}"
    return f"and {condition} (not {_LIVE})" if name == "with_namespace" else condition


def templates(make: Callable[[Choice], list[Object]], **more: tuple[Any, str]) -> list[str]:
    """Return the template of each object that a function makes of a choice.

    `more` are fields that are no values of their own here: what leaves something out, and the condition under which nothing is.
    """
    choice, marks = marked_choice()
    left_out = {name: (off, condition_of(name)) for name, off in marks.optional.items()} | more
    whole = make(choice)
    conditions: dict[tuple[Any, ...], str] = {}
    for name, (off, condition) in left_out.items():
        for path in _missing(whole, make(replace(choice, **{name: off})), (), marks):
            assert path not in conditions, f"two conditions at {path}"
            conditions[path] = condition
    writer = _Writer(marks, conditions)
    return [writer.document(one, number) for number, one in enumerate(whole)]


def _missing(
    whole: Any, part: Any, path: tuple[Any, ...], marks: Marks
) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of what is in one value and not in the other; items that are marks are written as often as there are values."""
    match whole:
        case dict():
            for key, value in whole.items():
                if key not in part:
                    yield (*path, key)
                else:
                    yield from _missing(value, part[key], (*path, key), marks)
        case list() if len(whole) == len(part):
            for index, (one, other) in enumerate(zip(whole, part, strict=True)):
                yield from _missing(one, other, (*path, index), marks)
        case list():
            kept = iter([*part, None])
            ahead = next(kept)
            for index, one in enumerate(whole):
                if _is_same(one, ahead):
                    yield from _missing(one, ahead, (*path, index), marks)
                    ahead = next(kept)
                elif not (isinstance(one, str) and one in marks.items):
                    yield (*path, index)
            assert ahead is None, f"what is at {path} is another one without a choice"
        case _:
            assert whole == part, f"what is at {path} is another one without a choice"


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two items of lists are the same thing: equal, or the same object, in which something may be missing."""
    if one == other:
        return True
    if not (isinstance(one, dict) and isinstance(other, dict) and "kind" in one):
        return False
    return bool(
        one["kind"] == other.get("kind") and one["metadata"]["name"] == other["metadata"]["name"]
    )


class _Writer:
    """Writes values as the text of a template."""

    def __init__(self, marks: Marks, conditions: dict[tuple[Any, ...], str]) -> None:
        self._marks = marks
        self._conditions = conditions

    def document(self, obj: Object, number: int) -> str:
        """Return one object."""
        lines = ["---", *self._lines(obj, (number,), 0)]
        return "\n".join(self._between(lines, (number,))) + "\n"

    def _between(self, lines: list[str], path: tuple[Any, ...]) -> list[str]:
        condition = self._conditions.get(path)
        return [f"{{{{- if {condition} }}}}", *lines, "{{- end }}"] if condition else lines

    def _lines(self, value: Any, path: tuple[Any, ...], column: int) -> Iterator[str]:
        if isinstance(value, dict):
            for key, below in value.items():
                entry = list(self._entry(key, below, (*path, key), column))
                yield from self._between(entry, (*path, key))
        else:
            for index, item in enumerate(value):
                yield from self._between(
                    list(self._item(item, (*path, index), column)), (*path, index)
                )

    def _entry(self, key: str, value: Any, path: tuple[Any, ...], column: int) -> Iterator[str]:
        name = key if _PLAIN_KEY.fullmatch(key) else json.dumps(key)
        if isinstance(value, dict | list) and value:
            yield f"{' ' * column}{name}:"
            yield from self._lines(value, path, column + 2 * isinstance(value, dict))
        else:
            yield f"{' ' * column}{name}: {self._scalar(value)}"

    def _item(self, item: Any, path: tuple[Any, ...], column: int) -> Iterator[str]:
        own = item.values() if isinstance(item, dict) else (item,)
        mark = next((one for one in self._marks.items if one in own), "")
        if mark:
            yield f"{{{{- range {self._marks.items[mark]} }}}}"
        if isinstance(item, dict | list) and item:
            first, *rest = self._lines(item, path, column + 2)
            assert not first.startswith("{{"), f"{path} begins with a condition"
            yield f"{' ' * column}- {first[column + 2 :]}"
            yield from rest
        else:
            yield f"{' ' * column}- {self._scalar(item)}"
        if mark:
            yield "{{- end }}"

    def _scalar(self, value: Any) -> str:
        if not isinstance(value, str):
            named = self._marks.numbers.get(value) if type(value) is int else None
            return f"{{{{ {named} }}}}" if named else json.dumps(value)
        if value in self._marks.items:
            return "{{ . | quote }}"
        if value in self._marks.texts:
            return f"{{{{ {self._marks.texts[value]} | quote }}}}"
        if (
            "{{" not in value
            and "\n" not in value
            and not any(mark in value for mark in self._marks.texts)
        ):
            return write(value).strip()
        text = json.dumps(value, ensure_ascii=False).replace("{{", '{{ "{{" }}')
        for mark, name in self._marks.texts.items():
            text = text.replace(mark, f"{{{{ {name} }}}}")
        return text
