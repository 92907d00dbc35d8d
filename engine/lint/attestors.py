"""What images are to be verified with: references, and attestors that can vouch for something (section 1.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.fields import items
from engine.model.policy import mutates_digest

from .findings import Finding, error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Block

_WAYS = ("keys", "certificates", "keyless", "attestor")
_NEEDED = {
    "keys": (("publicKeys", "kms", "secret"), "A public key, kms key or secret is required"),
    "certificates": (("cert", "certChain"), "A certificate or certificate chain is required"),
}
_DEEPEST = 20


def check_images(entry: Block, path: str, action: str) -> Iterator[Finding]:
    """Yield what is wrong with one entry of `verifyImages`, of which `action` (`Audit` or `Enforce`) says what failing means."""
    if not entry.get("imageReferences") and not entry.get("image"):
        yield error(path, "An image reference is required")
    if action == "Audit" and mutates_digest(entry):
        text = "mutateDigest must be set to false for 'Audit' failure action"
        yield error(f"{path}.mutateDigest", f"Invalid value: {text}")
    for index, attestation in enumerate(items(entry, "attestations")):
        yield from _check_sets(attestation, f"{path}.attestations[{index}].attestors")
    yield from _check_sets(entry, f"{path}.attestors")
    if entry.get("type") == "Notary":
        yield from _check_notary(entry, f"{path}.attestors")


def _check_notary(entry: Block, path: str) -> Iterator[Finding]:
    """Refuse attestors that Notary knows nothing of: it vouches by certificates."""
    for one in items(entry, "attestors"):
        for attestor in items(one, "entries"):
            for name, shown in (("keyless", "Keyless"), ("keys", "Keys")):
                if attestor.get(name) is not None:
                    yield error(
                        path, f"Invalid value: {shown} field is not allowed for type notary"
                    )


def _check_sets(block: Block, path: str) -> Iterator[Finding]:
    for index, one in enumerate(items(block, "attestors")):
        yield from _check_set(one, f"{path}[{index}]", 0)


def _check_set(block: Block, path: str, depth: int) -> Iterator[Finding]:
    """Check a set of attestors and those that are nested in it."""
    entries, count = items(block, "entries"), block.get("count")
    if isinstance(count, int) and count > len(entries):
        yield error(path, "Invalid value: Count cannot exceed available entries")
    if not entries:
        yield error(path, "Invalid value: An entry is required")
    for index, entry in enumerate(entries):
        at = f"{path}.entries[{index}]"
        yield from _check_attestor(entry, at)
        nested = entry.get("attestor")
        if isinstance(nested, dict) and depth < _DEEPEST:
            yield from _check_set(nested, f"{at}.attestor", depth + 1)


def _check_attestor(entry: Block, path: str) -> Iterator[Finding]:
    given = {name: entry[name] for name in _WAYS if isinstance(entry.get(name), dict)}
    if len(given) != 1:
        text = "keys, certificates, keyless, or a nested attestor is required"
        yield error(path, f"Invalid value: {text}")
    for way, (names, text) in _NEEDED.items():
        if way in given and not any(given[way].get(name) for name in names):
            yield error(path, f"Invalid value: {text}")
    if (keyless := given.get("keyless")) is not None:
        rekor = keyless.get("rekor")
        if rekor is None and not keyless.get("roots"):
            yield error(path, "Invalid value: Either Rekor URL or roots are required")
        if isinstance(rekor, dict) and not rekor.get("url"):
            yield error(path, "Invalid value: An URL is required")
