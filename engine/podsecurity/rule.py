"""A whole podSecurity rule compiled into one question about an object (row A-76), with Kyverno's texts (row P-47).

The checks, their versions and the exclusions are chosen once; asking about an object that complies runs the checks and
nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import PolicyError
from engine.lang.gotext import compact_json
from engine.model import Block, Object, Outcome, Status

from .exclusions import Exclusion, compile_exclusions, exclusion_faults, refuse, without
from .pod import TEMPLATE_PATHS, Container, MalformedPodError, Violation, fault_text, pod_of
from .standards import LEVELS, Check, checks_for, minor_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Found = list[tuple[Check, Violation]]

_PATH: Final = "spec.rules[0].podSecurity"


def compile_pod_security(
    spec: Block, extra_exclusions: Iterable[Block] = ()
) -> Callable[[Object, str], Outcome]:
    """Compile a `validate.podSecurity` block into a function of an object and the rule's name.

    The function answers for Pods and pod controllers; rules that autogen makes are asked with the controller itself. It
    answers PASS, FAIL (with report properties), ERROR for objects that hold no readable pod, and SKIP without a message
    when the rule fails but `extra_exclusions`, those of matching exceptions, excuse everything (row X-05).

    Raises PolicyError, in Kyverno's words with the first rule as its place, for a level, version or exclusion that is not
    acceptable. DELETE requests are the caller's to leave out: they are not checked.
    """
    level, version, minor = _level_and_version(spec, _PATH)
    refuse(exclusion_faults(spec.get("exclude"), f"{_PATH}.exclude", level=level))
    checks = checks_for(level, minor)
    own = compile_exclusions(spec.get("exclude") or ())
    extra = compile_exclusions(extra_exclusions)

    def evaluate(obj: Object, rule_name: str) -> Outcome:
        try:
            pod = pod_of(obj)
            found = [
                (check, violation) for check, test in checks if (violation := test(pod)) is not None
            ]
        except MalformedPodError as error:
            return Outcome(Status.ERROR, f"failed to get pod resource: {error.message}")
        if found and own:
            found = _excused(found, own)
        if not found:
            return Outcome(Status.PASS, f"Validation rule '{rule_name}' passed.")
        if extra:
            found = _excused(found, extra)
            if not found:
                return Outcome(Status.SKIP)
        text = _failure_text(found, rule_name, f"{level}:{version}", obj["kind"])
        return Outcome(Status.FAIL, text, properties=_properties(found, level, version))

    return evaluate


def _level_and_version(spec: Block, path: str) -> tuple[str, str, int]:
    level, version = spec.get("level"), spec.get("version") or ""
    if level not in LEVELS:
        raise PolicyError(f'{path}.level: Unsupported value: "{level or ""}"')
    minor = minor_of(version) if isinstance(version, str) else None
    if minor is None:
        raise PolicyError(f'{path}.version: Unsupported value: "{version}"')
    return level, version, minor


def _excused(found: Found, exclusions: Sequence[Exclusion]) -> Found:
    return [
        (check, left)
        for check, violation in found
        if (left := without(violation, check.control, exclusions)) is not None
    ]


def _failure_text(found: Found, rule_name: str, standard: str, kind: str) -> str:
    prefix = ".".join((*TEMPLATE_PATHS[kind], "spec"))
    groups = (
        f"(Forbidden reason: {violation.reason}, field error list: [{_errors(violation, prefix)}])"
        for _, violation in found
    )
    return f"Validation rule '{rule_name}' failed. It violates PodSecurity \"{standard}\": {''.join(groups)}"


def _errors(violation: Violation, prefix: str) -> str:
    return ", ".join(fault_text(fault, _place(fault.path, prefix)) for fault in violation.faults)


def _place(path: str, prefix: str) -> str:
    """Return where a field of the pod stands in the object; annotations always in `spec.template`, as Kyverno has it."""
    if path.startswith("metadata."):
        return f"spec.template.{path}"
    return prefix + path.removeprefix("spec")


def _properties(found: Found, level: str, version: str) -> dict[str, str]:
    """Return the report properties of a failure (row R-04)."""
    controls = ",".join(_control_json(check, violation) for check, violation in found)
    return {
        "standard": level,
        "version": version,
        "controls": ",".join(check.id for check, _ in found),
        "controlsJSON": f"[{controls}]",
    }


def _control_json(check: Check, violation: Violation) -> str:
    images = [full_reference(container) for container in violation.named]
    shown = compact_json(images) if images else "null"
    return f'{{"ID":"{check.id}","Name":"{check.control}","Images":{shown}}}'


# Image names as reports show them: with registry and tag filled in (row V-09).
#
# Only the report's list of images needs it; exclusions compare images as the pod spells them.


def full_reference(container: Container) -> str:
    """Return the container's image in full; the container's name when it has no image."""
    image = container.image
    if not image:
        return container.name
    first, slash, _ = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        image = f"docker.io/{image}"
    if "@" in image:
        return _without_tag(image)
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def _without_tag(image: str) -> str:
    """Drop the tag of an image that also has a digest: the digest decides."""
    name, _, digest = image.partition("@")
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}@{digest}"
