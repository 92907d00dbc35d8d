"""What image verification writes on an object: the verdicts of `verifyImages`, for whoever reads the object (row A-90c).

Nothing of ours reads it: the validating stage verifies what it was given again, so that a verdict which somebody else wrote
on an object is worth nothing. What a submitter put there is replaced by the verdicts of this evaluation, never merged.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from engine.model import RuleType, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Object, RuleResult
    from engine.model.result import ImageFinding

VERIFIED_ANNOTATION: Final = "kyverno.io/verify-images"


def with_outcomes(obj: Object, results: Iterable[RuleResult]) -> Object:
    """Return an object annotated with the status of each image that rules judged; one without such stays as it is."""
    listed: dict[str, str] = {}
    for result in results:
        if result.type is RuleType.IMAGE_VERIFY:
            for one in result.images:
                # INVARIANT: an image that two rules judge is verified only when both say so.
                name = _named(one)
                if listed.get(name, Status.PASS) == Status.PASS:
                    listed[name] = result.status.value
    if not listed:
        return obj
    metadata = obj.get("metadata") or {}
    text = json.dumps(listed, sort_keys=True, separators=(",", ":"))
    annotations = {**(metadata.get("annotations") or {}), VERIFIED_ANNOTATION: text}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _named(found: ImageFinding) -> str:
    """Return the image by its digest where that is known: there the tag no longer counts."""
    if not found.digest or "@" in found.image:
        return found.image
    head, colon, tag = found.image.rpartition(":")
    repository = head if colon and "/" not in tag else found.image
    return f"{repository}@{found.digest}"
