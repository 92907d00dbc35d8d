"""Time-boxed exceptions on request: who may ask for what, who must agree, and what state a grant is in at an instant.

Pure tables and decisions over `kpolicy.io/v1alpha1` GrantPolicy and Grant, for the controller that keeps their status, the
webhook, the commands and the console. A request is written once; afterwards only decisions are added to it, each under the
name of who makes it, which an admission policy of the API server itself sees to.
"""

from .approvals import cannot_decide, may_approve, standing
from .cause import exception_of
from .issuing import issuing_policy, parse_issued
from .lifecycle import FINAL, Facts, GrantStatus, next_status
from .model import Grant, GrantPolicy, length_of, length_text, parse_grant, parse_grant_policy
from .requests import Circumstances, chosen_policy, refusals
from .subjects import Refusal

__all__ = [
    "FINAL",
    "Circumstances",
    "Facts",
    "Grant",
    "GrantPolicy",
    "GrantStatus",
    "Refusal",
    "cannot_decide",
    "chosen_policy",
    "exception_of",
    "issuing_policy",
    "length_of",
    "length_text",
    "may_approve",
    "next_status",
    "parse_grant",
    "parse_grant_policy",
    "parse_issued",
    "refusals",
    "standing",
]
