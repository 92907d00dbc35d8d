"""Which images an object names and where: containers of pod-carrying kinds, and paths of `imageExtractors` (row A-88).

For the `images.*` variables (row V-08) and for verifyImages, which writes digests back through the pointers. Apart from
parsing references because only this part knows kinds and object paths.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.errors import EvaluationError, LimitError
from engine.lang.imagetext import DOCKER_HUB, RegistryDefaults
from engine.record import record

from .reference import ImageReference, parse_reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine.model import Block, Json, Object

_MAX_FIELDS = 32
_MAX_IMAGES = 5_000
CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
"""The lists of containers in the spec of a Pod."""


@record
class ImageExtractor:
    """Where images stand in objects of one kind.

    `fields` lead to maps that hold the image text under `value`; `*` walks a list or map. `key` names the field whose
    text identifies the image (empty: the pointer does); `group` is the key below `images`; `jmespath` rewrites the text.
    """

    fields: tuple[str, ...]
    value: str
    group: str
    key: str = ""
    jmespath: str = ""


@record
class FoundImage:
    """One image of an object: its group (`containers`), its key in the group, where it stands, and what it names."""

    group: str
    key: str
    pointer: str
    image: ImageReference


def extract_images(
    obj: Object,
    extractors: Mapping[str, Json] | None = None,
    defaults: RegistryDefaults = DOCKER_HUB,
) -> dict[str, dict[str, dict[str, str]]]:
    """Return what a policy sees as `images` for `obj` (row V-08); groups without images are left out.

    `extractors` is the rule's `imageExtractors` block (kind to list of extractors). Raise EvaluationError when an image
    or an extractor is unreadable.
    """
    shown: dict[str, dict[str, dict[str, str]]] = {}
    for found in find_images(obj, extractors, defaults):
        shown.setdefault(found.group, {})[found.key] = found.image.to_json(found.pointer)
    return shown


def find_images(
    obj: Object,
    extractors: Mapping[str, Json] | None = None,
    defaults: RegistryDefaults = DOCKER_HUB,
) -> list[FoundImage]:
    """Return all images of `obj` in the order of the extractors; parameters and errors as `extract_images`."""
    images: list[FoundImage] = []
    for extractor in _extractors_for(obj.get("kind"), extractors):
        images.extend(_extract(obj, extractor, defaults))
        if len(images) > _MAX_IMAGES:
            raise LimitError(f"more than {_MAX_IMAGES} images in one object")
    return images


def _compile_one(block: Block) -> ImageExtractor:
    """Return one extractor that a rule gives for a kind; raise EvaluationError when it has no path."""
    parts = (part.strip(" ") for part in str(block.get("path", "")).split("/"))
    fields = [part for part in parts if part]
    value = str(block.get("value") or "")
    if not value:
        if not fields:
            raise EvaluationError("an image extractor needs a `path`")
        value = fields.pop()
    if len(fields) > _MAX_FIELDS:
        raise LimitError(f"an image extractor's path has more than {_MAX_FIELDS} parts")
    return ImageExtractor(
        fields=tuple(fields),
        value=value,
        group=str(block.get("name") or "custom"),
        key=str(block.get("key") or ""),
        jmespath=str(block.get("jmesPath") or ""),
    )


def _extractors_for(kind: Json, configured: Mapping[str, Json] | None) -> Sequence[ImageExtractor]:
    if not isinstance(kind, str):
        return ()
    own = configured.get(kind) if configured else None
    if own is None:
        return _standard(kind)
    if not isinstance(own, list) or not own:
        raise EvaluationError(f"no extractors found for {kind}")
    return [_compile_one(one) for one in own if isinstance(one, dict)]


@lru_cache(maxsize=64)
def _standard(kind: str) -> tuple[ImageExtractor, ...]:
    path = POD_SPECS.get(kind)
    if path is None:
        return ()
    return tuple(
        ImageExtractor(fields=(*path, group, "*"), value="image", group=group, key="name")
        for group in CONTAINER_LISTS
    )


_TEMPLATE = ("spec", "template", "spec")
POD_SPECS = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "DaemonSet": _TEMPLATE,
    "Deployment": _TEMPLATE,
    "Job": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
}
"""Where kinds that carry Pods keep the spec of a Pod."""


def _extract(
    obj: Object, extractor: ImageExtractor, defaults: RegistryDefaults
) -> Iterator[FoundImage]:
    for path, holder in _walk(obj, extractor.fields):
        pointer = "/".join(("", *path, extractor.value))
        key = holder.get(extractor.key) if extractor.key else pointer
        if not isinstance(key, str):
            raise EvaluationError("invalid key")
        text = holder.get(extractor.value)
        if not isinstance(text, str):
            continue
        image = _parse(_rewrite(text, extractor.jmespath), defaults)
        yield FoundImage(extractor.group, key, pointer, image)


def _walk(obj: Json, fields: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Json]]]:
    """Yield every map that `fields` lead to, with its path; null ends a path silently, other shapes are errors."""
    level: list[tuple[tuple[str, ...], Json]] = [((), obj)]
    for field in fields:
        following: list[tuple[tuple[str, ...], Json]] = []
        for path, value in level:
            if value is not None:
                following.extend(((*path, key), inner) for key, inner in _step(value, field))
        if len(following) > _MAX_IMAGES:
            raise LimitError(f"more than {_MAX_IMAGES} images in one object")
        level = following
    for path, value in level:
        if value is None:
            continue
        if not isinstance(value, dict):
            raise EvaluationError("invalid image config")
        yield path, value


def _step(value: Json, field: str) -> Iterable[tuple[str, Json]]:
    if field in {"*", "**"}:
        if isinstance(value, list):
            return ((str(index), inner) for index, inner in enumerate(value))
        if isinstance(value, dict):
            return value.items()
        raise EvaluationError("invalid type")
    if not isinstance(value, dict):
        raise EvaluationError("invalid image config")
    return ((field, value.get(field)),)


def _rewrite(text: str, expression: str) -> str:
    if not expression:
        return text
    from engine.lang.jmes import compile as compile_expression
    from engine.lang.jmes.values import Env

    answer = compile_expression(expression)(text, Env())
    if not isinstance(answer, str):
        raise EvaluationError(f"jmespath {expression} must produce a string, but produced {answer}")
    return answer


def _parse(text: str, defaults: RegistryDefaults) -> ImageReference:
    try:
        return parse_reference(text, defaults)
    except EvaluationError as error:
        raise EvaluationError(f"invalid image '{text[:300]}' ({error.message})") from error
