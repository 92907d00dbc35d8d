"""What can go wrong around signing, told apart by exit code: wrong use, and everything else."""

from engine.errors import EngineError


class SigningError(EngineError):
    """Signing or verifying that could not be done."""


class UsageError(SigningError):
    """Flags or files that do not make sense together; exit code 2."""
