"""What image verification writes on an object, and what the validating stage reads back (row A-90c).

The mutating stage verifies and leaves its verdicts in an annotation; the validating stage, which may run on another
replica, only asks whether every image has one and carries a digest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.model import Outcome, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Json, Object

    from .extract import FoundImage
    from .verify import ImageRule, ImageVerdict

VERIFIED_ANNOTATION: Final = "kyverno.io/verify-images"
SCOPED_ANNOTATION: Final = "kyverno.io/verify-images-scoped"
OUTCOMES_ANNOTATION: Final = "kyverno.io/image-verification-outcomes"

_GOOD = frozenset({"pass", "skip", True})


def annotation_text(verdicts: Iterable[ImageVerdict]) -> str:
    """Return the value of the verdict annotation: image, as it stands after pinning, to status.

    Only verdicts of this evaluation are written; what the submitter put there is replaced, never merged.
    """
    import orjson

    listed: dict[str, str] = {}
    for one in verdicts:
        # INVARIANT: an image that two rules judge is verified only when both say so.
        if listed.get(_as_written(one), Status.PASS) == Status.PASS:
            listed[_as_written(one)] = str(one.status)
    return orjson.dumps(listed, option=orjson.OPT_SORT_KEYS).decode()


def validate_image(rule: ImageRule, found: FoundImage, obj: Object) -> Outcome:
    """Return the validating stage's outcome for one selected image of the object as mutated."""
    image = found.image.reference
    if rule.verifies_digest and not found.image.digest:
        return Outcome(Status.FAIL, f"missing digest for {image}")
    if rule.is_required and not is_verified(obj, image):
        return Outcome(Status.FAIL, f"unverified image {image}")
    return Outcome(Status.PASS, "image verified")


def is_verified(obj: Object, image: str) -> bool:
    """Tell whether the verdict annotation says that the image is verified."""
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(VERIFIED_ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return False
    verdict = _read(text).get(image)
    return isinstance(verdict, str | bool) and verdict in _GOOD


def _read(text: str) -> dict[str, Json]:
    import orjson

    try:
        found = orjson.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _as_written(verdict: ImageVerdict) -> str:
    """Return the image as the object names it after the patch: with a digest the tag no longer shows."""
    if verdict.patch is None:
        return verdict.image
    return f"{verdict.image.rpartition(':')[0]}@{verdict.digest}"
