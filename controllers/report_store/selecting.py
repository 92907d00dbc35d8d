"""Label and field selectors of a list or watch: as conditions that the database tests, and as tests of a report in hand.

Beside the fields of every object, reports can be chosen by `scope.*` and by what their results hold: all `results.*` of a selector
are about one and the same result, and a report is chosen as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from controllers.kube import Invalid
from controllers.kube.paths import FieldTest, Requirement, field_tests, label_requirements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object

RESULT_FIELDS: Final = ("policy", "rule", "result", "severity", "category", "source")
_PLACE: Final = {"metadata.name": "name", "metadata.namespace": "namespace"}
_SCOPE: Final = {
    f"scope.{field}": f"scope_{field.lower()}" for field in ("kind", "name", "namespace", "uid")
}
_OF_REPORT: Final = {**_PLACE, **_SCOPE}
_OF_RESULT: Final = {f"results.{field}": field for field in RESULT_FIELDS}
_AMONG_LABELS: Final = (
    "SELECT 1 FROM labels x WHERE x.namespace = reports.namespace AND x.name = reports.name AND "
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a table, with the values of its placeholders; empty for all."""

    sql: str = ""
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """What a query chooses."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldTest, ...] = ()
    of_results: tuple[FieldTest, ...] = ()

    @property
    def is_all(self) -> bool:
        """Whether everything is chosen."""
        return not (self.labels or self.fields or self.of_results)

    @property
    def name(self) -> str:
        """The one name that is asked for, for whoever judges the right to it; empty where there is none."""
        named = (one.value for one in self.fields if one.path == "metadata.name" and one.is_equal)
        return next(named, "")

    def fits(self, report: Object) -> bool:
        """Tell whether a report is chosen."""
        labels = (report.get("metadata") or {}).get("labels") or {}
        return (
            all(one.holds(labels) for one in self.labels)
            and all(one.holds(report) for one in self.fields)
            and self._has_result(report)
        )

    def _has_result(self, report: Object) -> bool:
        if not self.of_results:
            return True
        rows = ({"results": row} for row in report.get("results") or ())
        return any(all(one.holds(row) for one in self.of_results) for row in rows)

    def of_a_result(self) -> Condition:
        """Return the part that is about one result, as a condition on the table of results."""
        parts = [f"results.{_OF_RESULT[one.path]} {_operator(one)} ?" for one in self.of_results]
        return Condition(" AND ".join(parts), tuple(one.value for one in self.of_results))

    def of_a_report(self) -> Condition:
        """Return the rest, as a condition on the table of reports."""
        parts: list[str] = []
        values: list[Any] = []
        for test in self.fields:
            parts.append(f"reports.{_OF_REPORT[test.path]} {_operator(test)} ?")
            values.append(test.value)
        for label in self.labels:
            sql, given = _of_label(label)
            parts.append(sql)
            values += given
        return Condition(" AND ".join(parts), tuple(values))


def _operator(test: FieldTest) -> str:
    return "=" if test.is_equal else "<>"


def _of_label(label: Requirement) -> tuple[str, list[str]]:
    values = sorted(label.values or ())
    marks = ", ".join("?" * len(values))
    within = f" AND x.value IN ({marks})" if values else ""
    wanted = "EXISTS" if label.is_wanted else "NOT EXISTS"
    sql = f"{wanted} ({_AMONG_LABELS}x.label = ?{within})"
    return sql, [label.key, *values]


def selector_of(query: Mapping[str, str]) -> Selector:
    """Return what the query of a list or watch chooses; raises Invalid for a field that reports are not chosen by."""
    tests = field_tests(query.get("fieldSelector", ""))
    for test in tests:
        if test.path not in _OF_REPORT and test.path not in _OF_RESULT:
            raise Invalid(f"field label not supported: {test.path}")
    return Selector(
        label_requirements(query.get("labelSelector", "")),
        tuple(one for one in tests if one.path in _OF_REPORT),
        tuple(one for one in tests if one.path in _OF_RESULT),
    )
