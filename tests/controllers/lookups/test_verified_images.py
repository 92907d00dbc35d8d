"""What is remembered of images that passed: for how long, how many, and what asks anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from controllers.lookups.registry.images import VerifiedImages
from engine.evaluate import SignatureLookup
from engine.model.result import ImageFinding
from tests.clock import ManualClock
from tests.controllers.kube.apiserver import run

from .fake_registry import FakeRegistry, registry

if TYPE_CHECKING:
    from controllers.lookups.registry.images import Images

KEY = ("f", "ghcr.io/acme/app", "sha256:1")


def test_a_pass_is_kept_for_its_time_and_not_longer_by_being_kept_again() -> None:
    async def scenario() -> None:
        clock = ManualClock()
        kept = VerifiedImages(clock, seconds=60)
        kept.add(*KEY)
        await clock.advance(59)
        kept.add(*KEY)
        assert kept.holds(*KEY)
        await clock.advance(2)
        assert not kept.holds(*KEY)

    run(scenario())


@pytest.mark.parametrize("place", [0, 1, 2])
def test_every_part_of_what_was_asked_counts(place: int) -> None:
    kept = VerifiedImages()
    kept.add(*KEY)
    other = [*KEY]
    other[place] += "x"

    assert not kept.holds(*other)


def test_the_oldest_goes_when_there_is_no_room() -> None:
    kept = VerifiedImages(most=2)
    for number in range(5):
        kept.add(str(number), "r", "d")

    assert len(kept) == 2
    assert kept.holds("4", "r", "d")
    assert not kept.holds("0", "r", "d")


def test_an_image_that_passed_is_not_gathered_for_again_until_its_tag_moves() -> None:
    async def scenario() -> None:
        fake = FakeRegistry()
        async with registry(fake) as images:
            digest = fake.image("v1")
            lookup = SignatureLookup(f"{fake.host}/acme/app:v1", confirmation="f")
            first = await images.signatures(lookup)
            _confirm(images, lookup, digest)
            again = await images.signatures(lookup)
            other = await images.signatures(SignatureLookup(lookup.reference, confirmation="g"))
            moved = fake.image("v1", Env=["new"])
            after = await images.signatures(lookup)
        assert [one.is_confirmed for one in (first, again, other, after)] == [
            False, True, False, False,
        ]  # fmt: skip
        assert (again.digest, after.digest) == (digest, moved)

    run(scenario())


def _confirm(images: Images, lookup: SignatureLookup, digest: str) -> None:
    finding = ImageFinding(lookup.reference, True, True, digest=digest, confirmation="f")
    images.confirm([finding, ImageFinding("acme/other:1", False, True, confirmation="f")])
