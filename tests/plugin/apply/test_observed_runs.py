"""Whole runs of `apply` against what Kyverno's own command line answered on objects that nobody wrote by hand."""

from __future__ import annotations

from tests.engine.observed import whole
from tests.plugin.apply.observed_runs import HERE, verdicts


def test_classic_policies_answer_on_damaged_objects_as_observed(tmp_path, capsys):
    whole.compare("damaged", verdicts("damaged", tmp_path, capsys), at=HERE)


def test_policies_in_cel_answer_on_damaged_objects_as_observed(tmp_path, capsys):
    whole.compare("celkinds", verdicts("celkinds", tmp_path, capsys), at=HERE)
