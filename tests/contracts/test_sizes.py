"""Sizes: small modules, small functions, no drawers without a label."""

from __future__ import annotations

from statistics import median, quantiles

from .source import functions, lines_of, modules, shown

VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def test_the_median_module_has_at_most_150_lines() -> None:
    assert median(size for path in modules() if (size := lines_of(path)) > 5) <= 150


def test_no_module_has_more_than_600_lines() -> None:
    assert [(shown(path), size) for path in modules() if (size := lines_of(path)) > 600] == []


def test_the_median_function_has_at_most_10_lines_and_19_of_20_at_most_40() -> None:
    sizes = [node.end_lineno - node.lineno + 1 for path in modules() for node in functions(path)]

    assert median(sizes) <= 10
    assert quantiles(sizes, n=20)[-1] <= 40


def test_no_module_is_named_after_nothing() -> None:
    assert [
        shown(path) for path in modules() if path.stem in VAGUE or path.parent.name in VAGUE
    ] == []
