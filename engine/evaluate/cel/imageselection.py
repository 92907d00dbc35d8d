"""Which images of an object a policy is about: by the well-known fields, by its extractors, by its references (rows IP-02, IP-03).

Also what each of them is pinned to, where the webhook changes requests (row IP-20): there only the well-known fields count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError, PolicyError
from engine.evaluate.state import NO_ANSWER, Answers, RuleAnswer
from engine.fields import part
from engine.images.extract import CONTAINER_LISTS, POD_SPECS
from engine.lang import wildcard
from engine.lang.cel import CelError
from engine.lang.cel.functions.imagenames import parse
from engine.model import Block, Json, Object, Outcome, Status
from engine.mutate.handler import apply_json6902
from engine.record import record

from .expressions import Named, compile_expression, compile_named

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from .imageevidence import ImageBindings

    Fits = Callable[[str, ImageBindings], bool]

_GROUPS: Final = frozenset({"", "apps", "batch"})


@record
class ImageSelection:
    """Compiled extractors and references of a policy."""

    extractors: tuple[Named, ...]
    references: tuple[Fits, ...]

    def matching(self, bindings: ImageBindings) -> dict[str, list[str]]:
        """Return the images that the policy is about, by the name of the field or extractor; raises EvaluationError."""
        found: dict[str, list[Any]] = {}
        for name, container in containers(bindings):
            found.setdefault(name, [])
            if container is not None and container[1].get("image"):
                found[name].append(container[1]["image"])
        for one in self.extractors:
            found[one.name] = _images(bindings.value_of(one.program), one.name)
        return {
            name: [image for image in images if self.fits(image, bindings)]
            for name, images in found.items()
        }

    def fits(self, image: Any, bindings: ImageBindings) -> bool:
        """Tell whether an image, as it is written, is one of those that the policy names; without names all are."""
        if not isinstance(image, str):
            raise EvaluationError("an image that is no text")
        return not self.references or any(fits(image, bindings) for fits in self.references)


def compile_selection(spec: Block, names: Collection[str]) -> ImageSelection:
    """Compile `images` and `matchImageReferences`; raises PolicyError."""
    return ImageSelection(
        compile_named(spec.get("images") or (), names, place="images"),
        tuple(
            _reference(block, f"matchImageReferences[{index}]")
            for index, block in enumerate(spec.get("matchImageReferences") or ())
        ),
    )


def _reference(block: Block, place: str) -> Fits:
    glob, expression = block.get("glob"), block.get("expression")
    if bool(glob) == bool(expression):
        raise PolicyError(f"`{place}` must have exactly one of glob, expression")
    if glob:
        return lambda image, _: wildcard.match(str(glob), image)
    program = compile_expression(expression, ("ref",), place=place)

    def fits(image: str, bindings: ImageBindings) -> bool:
        return program({"ref": image}, bindings.env) is True

    return fits


def containers(
    bindings: ImageBindings,
) -> Iterator[tuple[str, tuple[str, Mapping[str, Any]] | None]]:
    """Yield each list of containers of the object by name, with nothing once, then with every container and its pointer."""
    review = bindings.review
    path = POD_SPECS.get(review.kind) if review.group in _GROUPS and not review.payload else None
    if path is None:
        return
    spec = part(review.object, *path)
    for name in CONTAINER_LISTS:
        yield name, None
        listed = spec.get(name)
        for index, one in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(one, dict):
                yield name, ("/".join(("", *path, name, str(index), "image")), one)


def _images(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise CelError(f"extractor `{name}` does not give a list of images")
    return list(value)


def pinned(
    selection: ImageSelection, bindings: ImageBindings, obj: Object, exempt: Callable[[str], bool]
) -> Answers:
    """Return the object with the digest written behind each tag, and an error for each image that has none.

    One image that cannot be resolved does not keep the others from being pinned.
    """
    wanted = []
    for _, container in containers(bindings):
        image = container[1].get("image") if container else None
        if not (container and isinstance(image, str)) or "@" in image or exempt(image):
            continue
        if selection.fits(image, bindings):
            wanted.append((container[0], image))
    if not wanted:
        return NO_ANSWER
    patches, wrong = [], ""
    for (pointer, image), answer in zip(
        wanted, bindings.metadata([image for _, image in wanted]), strict=True
    ):
        name, digest = parse(image), _digest(answer.value)
        if name is None or not digest:
            reason = answer.error or ("nobody to ask" if name else "not an image")
            text = f"failed to update digest: failed to resolve digest for image {image}: {reason}"
            wrong = wrong or text
            continue
        value = f"{name.registry}/{name.repository}:{name.tag}@{digest}"
        patches.append({"op": "replace", "path": pointer, "value": value})
    patched = apply_json6902(patches, obj) if patches else None
    answers = [RuleAnswer(Outcome(Status.PASS, "success"), patched=patched)] if patches else []
    if wrong:
        answers.append(RuleAnswer(Outcome(Status.ERROR, wrong)))
    return tuple(answers)


def _digest(data: Json) -> str:
    resolved = str(data.get("resolvedImage") or "") if isinstance(data, dict) else ""
    return resolved.rpartition("@")[2] if "@" in resolved else ""
