"""JUnit reports, which CI systems show as test results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Case = tuple[str, str, str | None]
    """Name, class, and the text of the failure or None."""


def junit_text(name: str, suites: Mapping[str, Sequence[Case]]) -> str:
    """Return a report with one suite for each key."""
    totals = _totals([case for cases in suites.values() for case in cases])
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites name={_quoted(name)} {totals}>"]  # fmt: skip
    for suite, cases in suites.items():
        lines.append(f"  <testsuite name={_quoted(suite)} {_totals(cases)}>")
        lines += [_case(case) for case in cases]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"])


def _totals(cases: Sequence[Case]) -> str:
    failures = sum(failure is not None for _, _, failure in cases)
    return f'tests="{len(cases)}" failures="{failures}" errors="0"'


def _case(case: Case) -> str:
    name, group, failure = case
    head = f"    <testcase name={_quoted(name)} classname={_quoted(group)}"
    if failure is None:
        return f"{head}/>"
    text = _escaped(failure)
    return f"{head}>\n      <failure>{text}</failure>\n    </testcase>"


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace('"', "&quot;").replace("\n", "&#10;") + '"'


def _escaped(text: str) -> str:
    """Escape markup, and replace control characters, which XML cannot carry."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(char if char >= " " or char in "\t\n" else "\ufffd" for char in safe)
