"""One reader of instants: every place that takes one agrees on what has no zone, and on the ends of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from controllers.kube.errors import AccessError
from engine.errors import EngineError, EvaluationError
from engine.lang import rfc3339

WITHOUT_ZONE = "2026-11-21T10:18:00"
BEYOND = "0001-01-01T00:00:00+14:00"


@pytest.mark.parametrize(
    "text", ["2026-11-21T10:18:00Z", "2026-11-21T12:18:00+02:00", "2026-11-21T10:18:00.000Z"]
)
def test_an_instant_is_read_in_utc(text: str) -> None:
    found = rfc3339.read(text)

    assert found == datetime(2026, 11, 21, 10, 18, tzinfo=UTC)
    assert found is not None
    assert found.tzinfo is UTC


@pytest.mark.parametrize("text", [WITHOUT_ZONE, "2026-11-21", BEYOND, "", "tomorrow", None, 7])
def test_what_names_no_instant_is_none(text: object) -> None:
    assert rfc3339.read(text) is None


def test_an_instant_is_written_in_utc_to_the_second() -> None:
    there = timezone(timedelta(hours=2))

    assert rfc3339.write(datetime(2026, 11, 21, 12, 18, 0, 5, there)) == "2026-11-21T10:18:00Z"


@pytest.mark.parametrize("text", [WITHOUT_ZONE, BEYOND])
def test_every_reader_refuses_what_has_no_zone_or_is_off_the_calendar(text: str) -> None:
    from controllers.kube.credentials import _expiry
    from engine.images.notation import _instant as expiry_of_signature
    from engine.manifests.trust import _instant as validity
    from kubectl_kpolicy.output.time_format import instant
    from kubectl_kpolicy.session.cluster import instant_of

    assert instant(text) is None
    for read, error in (
        (_expiry, AccessError),
        (expiry_of_signature, EvaluationError),
        (validity, ValueError),
        (instant_of, EngineError),
    ):
        with pytest.raises(error):
            read(text)
