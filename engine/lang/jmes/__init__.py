"""JMESPath as Kyverno speaks it: compiled once into closures, evaluated without side effects.

`compile(text)` gives a `Query`; calling it with data and an `Env` gives the value. Syntax comes from the `jmespath`
package's parser, meaning from row V-20 on; functions are in one table. Nothing here reads a clock, chance or network:
the `Env` brings them.
"""

from . import functions
from .errors import ExpressionError, UnknownKeyError
from .query import Query, compile  # noqa: A004 - the verb of this package
from .values import Env, GoInt, ItemList

__all__ = [
    "Env",
    "ExpressionError",
    "GoInt",
    "ItemList",
    "Query",
    "UnknownKeyError",
    "compile",
    "functions",
]
