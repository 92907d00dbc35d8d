"""Reads `jmespath.jsonl` rows, runs them, and says whether the answer is the observed one."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EngineError
from engine.lang import jmes

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("KPOLICY_SHARED") or HERE.parents[3] / "shared")
NOW = datetime(2026, 11, 21, tzinfo=UTC)
# Phases that are an effect of upstream's command line or a crash: any error will do.
ANY_ERROR = ("print", "panic")


def jmespath_rows() -> list[dict[str, Any]]:
    """Return the rows, or skip where the tables are not at hand."""
    path = SHARED / "observed" / "jmespath.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is not there; set KPOLICY_SHARED to the folder that holds observed/")
    return [json.loads(line, parse_int=_integer) for line in path.read_text("utf-8").splitlines()]


def difference(row: dict[str, Any]) -> str:
    """Return how the answer to a row differs from the observed one; empty when it does not."""
    before = json.dumps(row["input"])
    try:
        result = jmes.compile(row["expr"])(row["input"], jmes.Env(now=NOW))
    except EngineError as error:
        if "result" in row or (row["phase"] not in ANY_ERROR and str(error) != row["error"]):
            return f"error {error}"
        return ""
    finally:
        assert json.dumps(row["input"]) == before, "the input was changed"
    if "result" not in row or comparable(result) != comparable(row["result"]):
        return f"result {result!r}"
    return ""


def comparable(value: Any) -> Any:
    """Return a value in which every number is a 64-bit float, zero with its sign, and no boolean equals a number."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, int | float):
        return ("number", repr(float(value)))
    if isinstance(value, list):
        return [comparable(element) for element in value]
    if isinstance(value, dict):
        return {key: comparable(member) for key, member in value.items()}
    return value


def _integer(text: str) -> float:
    return -0.0 if text == "-0" else int(text)
