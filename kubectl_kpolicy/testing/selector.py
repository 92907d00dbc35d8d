"""`--test-case-selector "policy=…,rule=…,resource=…"`: which expectations of a run are looked at."""

from __future__ import annotations

from engine.errors import DocumentError
from engine.lang import wildcard
from engine.record import record

KEYS = ("policy", "rule", "resource")


@record
class Selector:
    """Wildcard patterns for the names of policy, rule and resource."""

    policy: str = "*"
    rule: str = "*"
    resource: str = "*"

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.policy == self.rule == self.resource == "*"

    def takes(self, policy: str, rule: str, resource: str) -> bool:
        """Return whether a row with these names is looked at."""
        return (
            wildcard.match(self.policy, policy)
            and wildcard.match(self.rule, rule)
            and wildcard.match(self.resource, resource)
        )


def parse_selector(text: str) -> Selector:
    """Read `policy=a,rule=b,resource=c` in any order, each part optional; raises DocumentError for other keys."""
    found: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or key.strip() not in KEYS:
            raise DocumentError(
                f"cannot read `{part}` of the test case selector",
                help="write it as policy=NAME,rule=NAME,resource=NAME",
            )
        found[key.strip()] = value.strip() or "*"
    return Selector(**found)
