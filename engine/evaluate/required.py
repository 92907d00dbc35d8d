"""Images that policies require to be verified: settled once all policies of a request have answered (row IP-06)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.model import RuleResult, RuleType, Status
from engine.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model.result import ImageFinding


def settled(results: list[RuleResult]) -> list[RuleResult]:
    """Return results in which a pass is a failure where a required image was verified by no policy of them."""
    judged = [one for one in results if one.type is RuleType.VALIDATION]
    found = [image for one in judged for image in one.images]
    if not any(image.is_wanted for image in found):
        return results
    verified = {image.image for image in found if image.is_verified}
    tried = {image.image for image in found if image.is_tried}
    return [_settled(one, verified, tried) for one in results]


def _settled(result: RuleResult, verified: set[str], tried: set[str]) -> RuleResult:
    missing = _first(result.images, verified)
    if result.status is not Status.PASS or missing is None:
        return result
    text = f"image {missing.image} is not verified: no policy performed a signature or attestation check on it"
    if missing.image in tried:
        text = f"image {missing.image} failed signature or attestation verification"
    return replace(result, status=Status.FAIL, message=text)


def _first(images: Iterable[ImageFinding], verified: set[str]) -> ImageFinding | None:
    return next((one for one in images if one.is_wanted and one.image not in verified), None)
