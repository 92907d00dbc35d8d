"""The author's message of a validate rule, rendered only when a rule fails (rows P-40 to P-46, O-01, O-02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.lang.variables import as_text, compile_document

from .answers import joined

if TYPE_CHECKING:
    from engine.lang.variables import Scope
    from engine.model import Json

NOT_A_STRING = "the produced message didn't resolve to a string, check your policy definition."


class Message:
    """`validate.message` of one rule; `rule` names the rule in messages."""

    __slots__ = ("_document", "rule", "text")

    def __init__(self, text: Json, rule: str) -> None:
        self.text = str(text or "")
        self.rule = rule
        self._document = compile_document(self.text)

    def render(self, scope: Scope) -> str:
        """Return the message with its variables replaced; raises EvaluationError when one cannot be resolved."""
        value = self._document.render(scope, "")
        return value if isinstance(value, str) else NOT_A_STRING

    def of_denial(self, conditions: str, scope: Scope) -> str:
        """Return the text of a deny rule that holds: own message and those of the conditions.

        Where a variable cannot be resolved only the conditions' messages are left.
        """
        if not self.text and not conditions:
            return f"validation error: rule {self.rule} failed"
        try:
            own = self.render(scope) if self.text else ""
        except EvaluationError:
            return conditions
        if own is NOT_A_STRING and conditions:
            return self._embedded(conditions, scope)
        return joined("; ", own, conditions)

    def _embedded(self, conditions: str, scope: Scope) -> str:
        """Return both texts as one, in which a value that is not a string stands as JSON."""
        if scope.rereads:
            return str(compile_document(joined("; ", self.text, conditions)).render(scope))
        return joined("; ", as_text(self._document.render(scope)), conditions)
