"""What an error of the API server means for somebody who wants to look: kind missing, not known, forbidden, silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube.errors import (
    AccessError,
    Forbidden,
    KubeError,
    NotFound,
    Unauthorized,
    Unreachable,
)
from kubectl_kpolicy.session.cluster import install_hint

from .cache import Problem, Trouble

if TYPE_CHECKING:
    from controllers.kube.kinds import Kind


def problem_of(error: KubeError, kind: Kind) -> Problem:
    """Return the problem with its remedy, in terms of the kind that could not be read."""
    match error:
        case NotFound():
            return Problem(Trouble.MISSING, f"the server has no {kind}", install_hint(kind.group))
        case Forbidden():
            return Problem(Trouble.FORBIDDEN, f"you may not list {kind}",
                           f"ask for it: kubectl auth can-i list {kind} shows what you have")  # fmt: skip
        case Unauthorized() | AccessError():
            return Problem(Trouble.UNAUTHORIZED, error.message,
                           "log in again, or check the user of the kubeconfig's context")  # fmt: skip
        case Unreachable():
            return Problem(Trouble.UNREACHABLE, error.message, "check the network and `kubectl cluster-info`")  # fmt: skip
    return Problem(Trouble.FAILED, error.message, error.help)
