"""What the API server would make of a signed manifest: the request to ask it, and the comparison with its answer.

For rules with `dryRun.enable`, where other webhooks change objects on their way in. The engine states the
request and judges the answer; asking is the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.record import record

from .compare import Difference, differences

if TYPE_CHECKING:
    from engine.model import Json, Object

    from .ignore import IgnoredFields

DEFAULT_NAMESPACE: Final = "kyverno-dryrun"
_RENAMED: Final = frozenset(
    {
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("spec", "names", "kind"),
        ("spec", "names", "listKind"),
        ("spec", "names", "singular"),
        ("spec", "names", "plural"),
    }
)
_SIMULATED_NAMES: Final = (
    ("kind", "Sim"),
    ("listKind", "Sim"),
    ("singular", "sim"),
    ("plural", "sim"),
)


@record
class DryRun:
    """A policy's wish for a dry run, and the namespace it names for it (empty: the caller's default)."""

    namespace: str = ""

    def request(self, signed: Object, live: Object, default: str = DEFAULT_NAMESPACE) -> Object:
        """Return the object to create with `dryRun=All`: the signed one under a name of its own."""
        metadata = dict(_map(signed.get("metadata")))
        metadata.pop("namespace", None)
        if _map(live.get("metadata")).get("namespace"):
            metadata["namespace"] = self.namespace or default
        name = str(metadata.get("name") or "")
        if signed.get("kind") != "CustomResourceDefinition":
            return {**signed, "metadata": {**metadata, "name": f"{name}-dry-run"}}
        spec = _map(signed.get("spec"))
        names = dict(_map(spec.get("names")))
        names.update(
            {key: mark + str(names[key]) for key, mark in _SIMULATED_NAMES if key in names}
        )
        return {
            **signed,
            "metadata": {**metadata, "name": f"sim{name}"},
            "spec": {**spec, "names": names},
        }

    def changes(self, simulated: Object, live: Object, ignored: IgnoredFields) -> list[Difference]:
        """Return how the live object differs from the API server's answer, without the names that were changed."""
        found = differences(simulated, live, lax=ignored.lax)
        kept = ignored.keep(found, simulated, live)
        return [one for one in kept if one.path not in _RENAMED]


def compile_dry_run(block: Json) -> DryRun | None:
    """Return the wish for a dry run, None when the policy has none."""
    if not isinstance(block, dict) or block.get("enable") is not True:
        return None
    return DryRun(str(block.get("namespace") or ""))


def _map(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
