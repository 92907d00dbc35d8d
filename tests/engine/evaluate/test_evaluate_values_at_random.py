"""Texts and values put together at random: no value makes a text show what the text itself does not ask for."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

from engine.errors import EngineError
from engine.lang.jmes.values import Env
from engine.lang.variables import ExpressionText, Scope, Template
from tests.engine.evaluate.builders import NOW

SECRET = "s3cr3t"
# fmt: off
PIECES = [
    "{{", "}}", "{{ ", " }}", "'", '"', "`", "\\", "a", "d.x", "d.y", ".", "(", ")", "[", "]", "||", " ", "-", "{", "}", "d",
    "|", "0", "x", "'{{ d.x }}'", '"{{ d.y }}"', "`{{ d.x }}`", "d.{{ d.x }}",
]
VALUES: list[Any] = [
    "'", '"', "`", "\\", "{{ s.t }}", "s.t", "' || s.t || '", "` || s.t || `", '" || s.t || "', "]", "5", "x", "d.y", "(@)",
    {"a": "`"}, ["s.t"], 5, None, True, "\\'", "\\`", "\n", "'\\", "}}", "{{", "1\\",
]
# fmt: on
ROUNDS = 3000


def _leaks(*, rereads: bool) -> int:
    chance = random.Random(7)
    leaks = 0
    for _ in range(ROUNDS):
        text = "".join(chance.choices(PIECES, k=chance.randint(1, 14)))
        data = {"x": chance.choice(VALUES), "y": chance.choice(VALUES)}
        scope = Scope({"d": data, "s": {"t": SECRET}}, Env(now=NOW), rereads=rereads)
        with suppress(EngineError):
            leaks += SECRET in str(Template(text).render(scope))
        with suppress(EngineError):
            expression = ExpressionText(text, starts_path=False).render(scope)
            leaks += SECRET in str(scope.query(expression))
    return leaks


def test_no_value_of_many_makes_a_text_show_what_it_does_not_ask_for() -> None:
    assert _leaks(rereads=False) == 0


def test_the_same_texts_and_values_show_it_where_values_are_read_again() -> None:
    assert _leaks(rereads=True) > 0
