"""From decoded YAML to the engine's model, with file, line and path in every error."""

from .check import Fault, path_text
from .documents import problems, unknown_fields
from .policies import build_rule, parse_cleanup_policy, parse_exception, parse_policy
from .schema import SPECS

__all__ = [
    "SPECS",
    "Fault",
    "build_rule",
    "parse_cleanup_policy",
    "parse_exception",
    "parse_policy",
    "path_text",
    "problems",
    "unknown_fields",
]
