"""Variables in policies: `{{ expressions }}` compiled once and rendered in a scope of data."""

from .document import Document, compile_document
from .expression import Expression
from .scope import Scope
from .template import ExpressionText, Template, as_text, has_variables, parts_of

__all__ = [
    "Document",
    "Expression",
    "ExpressionText",
    "Scope",
    "Template",
    "as_text",
    "compile_document",
    "has_variables",
    "parts_of",
]
