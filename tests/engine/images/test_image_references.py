"""Image references as policies see them: parts, defaults and the texts of refusals."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EvaluationError
from engine.images import ImageReference, RegistryDefaults, extract_images, parse_reference

SHARED = Path(os.environ.get("KPOLICY_SHARED") or Path(__file__).parents[4] / "shared")
DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nginx", ImageReference("docker.io", "nginx", "latest")),
        ("acme/app:1", ImageReference("docker.io", "acme/app", "1")),
        ("localhost/app", ImageReference("localhost", "app", "latest")),
        ("registry:5000/a/b", ImageReference("registry:5000", "a/b", "latest")),
        ("[::1]:5000/app", ImageReference("[::1]:5000", "app", "latest")),
        (f"ghcr.io/a/b@{DIGEST}", ImageReference("ghcr.io", "a/b", "", DIGEST)),
        (f"ghcr.io/a/b:t@{DIGEST}", ImageReference("ghcr.io", "a/b", "t", DIGEST)),
        ("a_b/c__d:T-1.0", ImageReference("docker.io", "a_b/c__d", "T-1.0")),
        ("x/a---b", ImageReference("docker.io", "x/a---b", "latest")),
    ],
)
def test_a_reference_is_taken_apart(text: str, expected: ImageReference) -> None:
    assert parse_reference(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NGINX", "repository name must be lowercase"),
        ("ghcr.io/Org/app", "repository name must be lowercase"),
        ("nginx:", "invalid reference format"),
        ("", "invalid reference format"),
        ("nginx\n", "invalid reference format"),
        ("nginx:" + "t" * 129, "invalid reference format"),
        ("a___b", "invalid reference format"),
        ("nginx:tag with space", "invalid reference format"),
        ("nginx:é", "invalid reference format"),
        ("nginx@sha256:abc", "invalid reference format"),
        ("nginx@sha256:" + "a" * 32, "invalid checksum digest length"),
        ("nginx@sha256:" + "A" * 64, "invalid checksum digest format"),
        ("nginx@md5:" + "a" * 32, "unsupported digest algorithm"),
        ("nginx@SHA256:" + "a" * 64, "invalid checksum digest format"),
        ("a" * 256, "repository name must not be more than 255 characters"),
    ],
)
def test_a_bad_reference_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        parse_reference(text)

    assert caught.value.message.startswith(f"bad image: docker.io/{text}") or "/" in text
    assert caught.value.message.endswith(
        f", defaultRegistry: docker.io, enableDefaultRegistryMutation: true: {reason}"
    )


def test_another_default_registry_is_written_in_front_of_short_names_only() -> None:
    mirror = RegistryDefaults("mirror.local")

    assert parse_reference("nginx", mirror).reference == "mirror.local/nginx:latest"
    assert parse_reference("ghcr.io/a", mirror).reference == "ghcr.io/a:latest"


def test_without_registry_mutation_short_names_stay_short() -> None:
    plain = RegistryDefaults(mutate=False)

    assert parse_reference("nginx", plain).reference == "nginx:latest"
    assert "registry" not in parse_reference("nginx", plain).to_json()
    assert parse_reference("docker.io/nginx", plain).registry == "docker.io"
    with pytest.raises(EvaluationError, match="enableDefaultRegistryMutation: false"):
        parse_reference("NGINX", plain)


def test_the_digest_wins_in_the_reference_and_the_empty_tag_keeps_its_colon() -> None:
    image = parse_reference(f"ghcr.io/org/app@{DIGEST}")

    assert image.to_json("/p") == {
        "registry": "ghcr.io",
        "name": "app",
        "path": "org/app",
        "digest": DIGEST,
        "reference": f"ghcr.io/org/app@{DIGEST}",
        "referenceWithTag": "ghcr.io/org/app:",
        "jsonPointer": "/p",
    }


@given(st.text(max_size=80) | st.text("aA0._-/:@[]", max_size=80))
def test_any_text_is_parsed_or_refused_as_an_evaluation_error(text: str) -> None:
    try:
        image = parse_reference(text)
    except EvaluationError:
        return
    assert parse_reference(image.reference).digest == image.digest


def test_a_very_long_text_is_refused_quickly_and_shown_short() -> None:
    with pytest.raises(EvaluationError) as caught:
        parse_reference("a-" * 100_000)

    assert len(caught.value.message) < 600


def test_normalised_references_equal_those_observed_of_kyverno() -> None:
    table = SHARED / "observed" / "jmespath.jsonl"
    if not table.exists():
        pytest.skip(f"observed answers not found at {table}; set KPOLICY_SHARED")
    seen = 0
    for line in table.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text = row["expr"].removeprefix("image_normalize('").removesuffix("')")
        if row["group"] != "image" or len(text) != len(row["expr"]) - len("image_normalize('')"):
            continue
        seen += 1
        try:
            answer = parse_reference(text).reference
        except EvaluationError as error:
            answer = f"JMESPath function 'image_normalize': {error.message}"
        assert answer == row.get("result", row.get("error")), text
    assert seen > 15


def test_image_variables_equal_those_observed_of_kyverno() -> None:
    table = SHARED / "observed" / "variables.jsonl"
    if not table.exists():
        pytest.skip(f"observed answers not found at {table}; set KPOLICY_SHARED")
    seen = 0
    for line in table.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get("text") != "v={{ images.containers.c }}":
            continue
        seen += 1
        try:
            shown = extract_images(row["object"])["containers"]["c"]
            answer = "v=" + json.dumps(shown, sort_keys=True, separators=(",", ":"))
        except EvaluationError:
            answer = ""
        assert answer == row["result"], row["object"]
    assert seen > 15
