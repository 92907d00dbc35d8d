"""What the tests of expressions share: one call that evaluates, and the error texts."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EngineError
from engine.lang import jmes
from engine.lang.chance import Chance


def value(expression: str, data: Any = None, **inputs: Any) -> Any:
    """Return the value of an expression on data, with the given fields of the evaluation's inputs."""
    return jmes.compile(expression)(data, jmes.Env(**inputs))


def error(expression: str, data: Any = None, **inputs: Any) -> str:
    """Return the text of the engine's error."""
    with pytest.raises(EngineError) as raised:
        value(expression, data, **inputs)
    return str(raised.value)


def made(pattern: str, seed: bytes = b"") -> str:
    """Return the text that `random` makes from a seed."""
    text = value("random(@)", pattern, chance=Chance(seed))
    assert isinstance(text, str)
    return text
