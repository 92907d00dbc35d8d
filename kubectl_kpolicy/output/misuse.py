"""The error for words of a command line that cannot be meant so; it ends a command as a wrong flag does, with exit code 2."""

from engine.errors import EngineError


class Misuse(EngineError):  # noqa: N818 - it names what happened
    """What was typed is no such thing: a length of time, a column, an object, a filter. Nothing was done."""
