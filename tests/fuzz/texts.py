"""Targets that read a text: wildcards, quantities, YAML, JMESPath, texts with variables, CEL."""

from __future__ import annotations

import zlib
from random import Random
from typing import TYPE_CHECKING, Final

from engine.errors import DocumentError
from engine.lang import jmes, quantity, wildcard, yaml
from engine.lang.variables import Scope, Template
from tests.fuzz import expressions, queries, trees
from tests.fuzz.corpora import seeds_of
from tests.fuzz.target import Target
from tests.fuzz.trial import outcome

if TYPE_CHECKING:
    from collections.abc import Callable

_BUDGET: Final = 1_000_000
_COMPARED: Final = 300
_WILD: Final = "ab*?*?a-/.é\n[]^$\\"
_DIGITS: Final = "0123456789999+-..eEinumkKMGTPi 1٣"


def _wildcard(data: bytes) -> str:
    """A pattern and a text, parted by a line break; a slow reading in a few lines must come to the same answer."""
    pattern, _, text = data.decode(errors="replace").partition("\n")
    found = wildcard.match(pattern, text)
    if len(pattern) * len(text) <= _COMPARED:
        assert found == _fits(pattern, text), "another answer than the plain reading"
    return str(found)


def _fits(pattern: str, text: str) -> bool:
    """Tell by the definition whether a text fits: which ends of the text each piece of the pattern can reach."""
    reached = {0}
    for letter in pattern:
        if letter == "*":
            reached = set(range(min(reached), len(text) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(text) and letter in ("?", text[at])}
    return len(text) in reached


def _made_wildcard(chance: Random) -> bytes:
    pattern = "".join(chance.choices(_WILD, k=chance.choice((1, 3, 8, 20)))) * chance.choice(
        (1, 1, 1, 1, 20)
    )
    text = "".join(chance.choices("ab-/.é", k=chance.choice((0, 3, 10, 30)))) * chance.choice(
        (1, 1, 1, 1, 100)
    )
    if chance.random() < 0.5:
        text = pattern.replace("*", text[:5]).replace("?", "a")
    return f"{pattern}\n{text}".encode()


def _quantity(data: bytes) -> str:
    """One or two quantities, parted by a blank; what is written canonically is read as the same number."""
    first, _, second = data.decode(errors="replace").partition(" ")
    one, other = quantity.parse(first), quantity.parse(second)
    if one is None:
        return "none"
    again = quantity.parse(one.text())
    assert again is None or again == one, f"read back as {again}"
    if other is not None:
        (one < other, one == other, hash(one))
        one.add(other).text()
        one.subtract(other).text()
        one.multiply(other).text()
        one.divide(other)
    one.approximate()
    return f"{one.format.value} {one.value > 0}"


def _made_quantity(chance: Random) -> bytes:
    words = []
    for _ in range(2):
        digits = "".join(chance.choices(_DIGITS, k=chance.choice((1, 3, 6, 25))))
        digits *= chance.choice((1, 1, 1, 1, 60))
        words.append(digits + chance.choice(("", "m", "Gi", "e3", "E", "e-9", "e9999999999", "n", "Ei")))  # fmt: skip
    return " ".join(words).encode()


def _yaml(data: bytes) -> str:
    """Documents of a text, read twice: strictly, and as Kubernetes does."""
    for strict in (True, False):
        try:
            documents = yaml.load_all(data, strict=strict)
        except DocumentError as error:
            if not strict:
                raise
            strictly = type(error).__name__
        else:
            strictly = str(len(documents))
    return f"{strictly} {len(documents)}"


def _made_yaml(chance: Random) -> bytes:
    text = chance.choice(seeds_of("yaml")).decode(errors="replace")
    for _ in range(chance.choice((1, 2, 5))):
        text = trees.cut(chance, text)
        if chance.random() < 0.3:
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(_YAML_WORDS) + text[at:]
    return text.encode(errors="replace")


_YAML_WORDS: Final = (
    "&a ", "*a", "<<: *a", "- ", ": ", "? ", "!!binary ", "!!set {a}", "!!timestamp ", "|+\n  ", ">-\n", "---\n", "...\n", "%YAML 1.1\n", "\t", "0o17", "0x1F", "1_000",
    "190:20:30", ".inf", "~", "yes", "2001-01-01", "\ufeff", "'", '"', "\\x41", "{" * 50, "[" * 250, "&b [*a, *a, *a, *a, *a, *a, *a, *a, *a]", "0" * 5000,
)  # fmt: skip


def _jmespath(data: bytes) -> str:
    text = data.decode(errors="replace")
    query = jmes.compile(text)
    value = query(queries.data_for(text), jmes.Env(budget=_BUDGET))
    return type(value).__name__


def _template(data: bytes) -> str:
    text = data.decode(errors="replace")
    if "{{" not in text:
        return "plain"
    scope = Scope(queries.data_for(text), jmes.Env(budget=_BUDGET), is_delete=len(text) % 5 == 0)
    value = Template(text).render(scope, "/spec", ".metadata.name")
    return type(value).__name__


def _cel(data: bytes) -> str:
    text = data.decode(errors="replace")
    chance = Random(zlib.crc32(data))
    return outcome(text, expressions.bindings(chance))


def _encoded(make: Callable[[Random], str]) -> Callable[[Random], bytes]:
    return lambda chance: make(chance).encode(errors="replace")


TARGETS: Final = (
    Target("wildcard", _wildcard, _made_wildcard),
    Target("quantity", _quantity, _made_quantity),
    Target("yaml", _yaml, _made_yaml),
    Target("jmespath", _jmespath, queries.made_query),
    Target("template", _template, queries.made_template),
    Target("cel", _cel, _encoded(expressions.expression)),
)
