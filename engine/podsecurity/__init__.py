"""Kubernetes' Pod Security Standards as Kyverno's podSecurity rules apply them: levels, versions, exclusions, texts.

For the evaluation of rules (`compile_pod_security`) and for the checks of policies and exceptions (`exclusion_faults`).
"""

from .exclusions import exclusion_faults
from .rule import compile_pod_security

__all__ = ["compile_pod_security", "exclusion_faults"]
