"""From decoded YAML to the engine's model, with file, line and path in every error."""

from .check import Fault, Problem, path_text
from .documents import UnknownField, document_shape, problems, unknown_fields
from .policies import (
    CLEANUP_KINDS,
    EXCEPTION_KINDS,
    POLICY_KINDS,
    action,
    action_overrides,
    build_rule,
    parse_cleanup_policy,
    parse_exception,
    parse_policy,
)
from .schema import SPECS

__all__ = [
    "CLEANUP_KINDS",
    "EXCEPTION_KINDS",
    "POLICY_KINDS",
    "SPECS",
    "Fault",
    "Problem",
    "UnknownField",
    "action",
    "action_overrides",
    "build_rule",
    "document_shape",
    "parse_cleanup_policy",
    "parse_exception",
    "parse_policy",
    "path_text",
    "problems",
    "unknown_fields",
]
