"""Expressions that are read without the parser: the very trees that the parser gives, and nothing else."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys

import pytest

from engine.lang.jmes.errors import ExpressionError
from engine.lang.jmes.parser import parse
from engine.lang.jmes.query import plain_tree


@pytest.mark.parametrize(
    "text",
    [
        "a", "_", "A9._b.c", "request.object.spec.restartPolicy || 'Always'", "a||''", "a.b  ||  'x y'",
        "a || '|| '", "a.b || '\u00e9\n'", "true", "null.false", "a" * 300, "a[]", "a.[b]", "a.[b,c, d]",
        "request.object.spec.[containers, initContainers, ephemeralContainers][]", "a.b.[c][] || 'd'", "a.b[]||'x'", ".".join("abcdefgh" * 40),
    ],
)  # fmt: skip
def test_a_plain_expression_has_the_tree_of_the_parser(text):
    assert plain_tree(text) is not None
    assert plain_tree(text) == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "", " a", "a ", "a.", ".a", "a..b", "1a", "a-b", "\u00e9", "a.b()", "a[0]", "a.*", '"a"', "@", "a | b", "a || b",
        "a || 'x' || 'y'", "a || 'it\\'s'", "a || 'x\\\\'", "a.[]", "a.[b,]", "a.[b ,c]", "a[b]", "a[][]", "a[].b", "a.[b].c", "[a]", "a.[b.c]", "a && 'x'", "a || `1`", "!a", "a == 'x'", "a\n", "a.b || 'x'\n", "'x'",
    ],
)  # fmt: skip
def test_all_else_is_left_to_the_parser(text):
    assert plain_tree(text) is None


def test_pieces_put_together_by_chance_have_one_tree():
    chance = random.Random(7)
    pieces = [
        "a",
        "b1",
        "_c",
        ".",
        " ",
        "[]",
        ".[",
        "]",
        ", ",
        "||",
        "| |",
        "'x'",
        "''",
        "'\\'",
        "\n",
        "(",
        "[0]",
        "-",
        "\u00e9",
        "|",
    ]
    agreed = 0
    for length, _ in itertools.product(range(1, 8), range(900)):
        text = "".join(chance.choices(pieces, k=length))
        tree = plain_tree(text)
        if tree is not None:
            agreed += 1
            try:
                assert tree == parse(text), text
            except ExpressionError as error:
                pytest.fail(f"{text!r}: {error.message}")
    assert agreed > 50


def test_a_policy_of_plain_expressions_loads_no_parser():
    code = (
        "import sys\nfrom engine.lang.jmes import compile\ncompile(\"a.b.[c, d][] || 'e'\")\n"
        "assert 'jmespath' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
