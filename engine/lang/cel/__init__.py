"""The Common Expression Language as Kubernetes and Kyverno speak it: compiled once into closures over plain values.

What others call:

    program = compile("object.spec.replicas > 1")            # CelSyntaxError(EngineError), with .position .line .column
    program({"object": {...}}, CelEnv(now=..., ask=...))      # a plain value; CelError(EvaluationError), with .position .path
    program.names                                             # names that the bindings have to offer

Bindings are any mapping. A binding that should compute its parts when read (variables of policies) is a subclass of
`dict` with `__missing__` and `__contains__`. Anything from outside is a lookup of `engine.lang.cel.lookups` given to
`CelEnv.ask`, whose own exceptions pass through unabsorbed. One CelEnv may serve many programs; they share its budget.
"""

from . import lookups
from .checker import Rule
from .env import DEFAULT_BUDGET, CelEnv
from .errors import BudgetError, CelError, CelSyntaxError
from .functions import NAMES as LIBRARIES
from .functions import signatures
from .program import Program, compile, readable  # noqa: A004 - the verb of this package
from .values import NONE, CelType, Duration, Optional, Timestamp, Uint, type_name

__all__ = [
    "DEFAULT_BUDGET",
    "LIBRARIES",
    "NONE",
    "BudgetError",
    "CelEnv",
    "CelError",
    "CelSyntaxError",
    "CelType",
    "Duration",
    "Optional",
    "Program",
    "Rule",
    "Timestamp",
    "Uint",
    "compile",
    "lookups",
    "readable",
    "signatures",
    "type_name",
]
