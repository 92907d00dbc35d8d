"""Lanes: from when to when grants and clean-ups go, what happened on them, and how countdowns look on the way."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kubectl_kpolicy.cluster.cleanup import LISTING as CLEANUP
from kubectl_kpolicy.cluster.grants import GRANTS
from kubectl_kpolicy.cluster.lanes import Tick, Window, lanes, window
from kubectl_kpolicy.output.cells import cell_role, drained, share_left
from kubectl_kpolicy.output.rows import Column, Shape
from tests.plugin.scene import NOW, ago, ahead, grant, meta, objects, world

HOUR = timedelta(hours=1)
LEFT = Column("left", "LEFT", Shape.LEFT, since="since")


def lanes_of(listing, there=None):
    there = there or world()
    rows = listing.rows(there, NOW)
    return dict(
        zip((row.text("name") for row in rows), lanes(rows, listing.noun, there, NOW), strict=True)
    )


def cleanup_policy(schedule: str, **annotations: str):
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "ClusterCleanupPolicy",
        "metadata": meta("sweep", created=ago(hours=3), annotations=annotations),
        "spec": {"schedule": schedule, "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}},
    }


def test_a_grant_goes_from_its_request_to_its_end_with_its_approval_on_the_way() -> None:
    lane = lanes_of(GRANTS)["web-nonroot"]

    assert (lane.begins, lane.ends) == (
        NOW - timedelta(hours=3, minutes=48),
        NOW + timedelta(minutes=12, seconds=41),
    )
    assert lane.ticks == (
        Tick(NOW - timedelta(hours=3, minutes=48), "request"),
        Tick(NOW - timedelta(minutes=52), "approve"),
    )


def test_a_vote_that_was_refused_is_no_approval() -> None:
    assert [tick.what for tick in lanes_of(GRANTS)["debug-shell"].ticks] == ["request"]


def test_the_last_use_is_a_tick() -> None:
    there = world(
        {
            "grants": [
                grant("web", "active", "alice", expiresAt=ahead(hours=1), lastUsedAt=ago(minutes=5))
            ]
        }
    )

    assert lanes_of(GRANTS, there)["web"].ticks[-1] == Tick(NOW - timedelta(minutes=5), "use")


def test_a_grant_that_ended_early_ends_when_it_did() -> None:
    there = world(
        {
            "grants": [
                grant("web", "revoked", "alice", expiresAt=ahead(hours=1), endedAt=ago(minutes=3))
            ]
        }
    )

    assert lanes_of(GRANTS, there)["web"].ends == NOW - timedelta(minutes=3)


def test_what_waits_is_held_until_it_may_begin() -> None:
    found = lanes_of(GRANTS)

    assert found["ledger-weekend"].held == NOW + timedelta(hours=9)
    assert found["debug-shell"].held == NOW + timedelta(minutes=54)


def test_a_grant_without_instants_says_so_and_has_no_end() -> None:
    lane = lanes_of(GRANTS)["night-shift"]

    assert lane.ends is None
    assert lane.said == "revoked, no instants known"


def test_the_runs_of_the_next_day_are_ticks_and_no_later_ones() -> None:
    there = world({"clustercleanuppolicies": [cleanup_policy("0 */6 * * *")]})

    ticks = lanes_of(CLEANUP, there)["(all that match)"].ticks

    assert [tick.at - NOW for tick in ticks] == [
        timedelta(),
        6 * HOUR,
        12 * HOUR,
        18 * HOUR,
        24 * HOUR,
    ]


def test_a_schedule_of_every_minute_goes_on_behind_its_hundredth_run() -> None:
    there = world({"clustercleanuppolicies": [cleanup_policy("* * * * *")]})

    lane = lanes_of(CLEANUP, there)["(all that match)"]

    assert lane.goes_on
    assert len(lane.ticks) <= 101


def test_a_paused_policy_has_no_runs() -> None:
    there = world(
        {
            "clustercleanuppolicies": [
                cleanup_policy("0 * * * *", **{"kpolicy.io/cleanup-pause": "alice: not this week"})
            ]
        }
    )

    lane = lanes_of(CLEANUP, there)["(all that match)"]

    assert (lane.said, lane.ticks) == ("paused", ())


def test_a_label_that_cannot_be_read_stands_in_the_place_of_a_lane() -> None:
    assert lanes_of(CLEANUP)["broken"].said == "unreadable label"


def test_an_object_with_a_label_goes_from_its_creation_to_its_end() -> None:
    lane = lanes_of(CLEANUP)["pi"]

    assert (lane.begins, lane.ends) == (NOW - timedelta(minutes=9), NOW + timedelta(minutes=6))
    assert lane.ticks == (Tick(NOW + timedelta(minutes=6), "end"),)


def test_clean_ups_show_the_next_24_hours() -> None:
    assert window((), "cleanup", NOW).ends == NOW + 24 * HOUR


def test_grants_show_what_is_behind_and_before_those_that_go_on_but_not_more_than_a_day() -> None:
    only_short = [one for one in objects()["grants"] if one["metadata"]["name"] == "web-nonroot"]
    there = world({"grants": only_short})

    assert window(list(lanes_of(GRANTS, there).values()), "grants", NOW) == Window(
        NOW - 4 * HOUR, NOW + HOUR
    )
    assert window(list(lanes_of(GRANTS).values()), "grants", NOW).ends == NOW + 24 * HOUR


def test_a_window_stands_still_until_a_cell_has_passed() -> None:
    cell = timedelta(minutes=15)
    first = Window(NOW, NOW + 24 * HOUR).stepped(96)

    assert Window(NOW + cell / 2, NOW + 24 * HOUR + cell / 2).stepped(96) == first
    assert Window(NOW + cell, NOW + 24 * HOUR + cell).stepped(96) != first


@pytest.mark.parametrize(
    ("begun", "left", "role"),
    [
        (10, 100, "success"),
        (100, 60, "accent"),
        (300, 30, "warning"),
        (1, 4, "error"),
        (100, 4, "error"),
        (10, -1, "muted"),
    ],
)
def test_the_colour_of_a_countdown_follows_the_share_that_is_left(
    begun: int, left: int, role: str
) -> None:
    ends, since = NOW + timedelta(minutes=left), NOW - timedelta(minutes=begun)

    assert cell_role(LEFT, ends, NOW, since) == role


def test_a_bar_drains_and_is_empty_only_at_the_end() -> None:
    assert [drained(share, 4) for share in (1.0, 0.5, 0.01, 0.0)] == [
        "━━━━",
        "━━──",
        "━───",
        "────",
    ]


def test_without_a_beginning_no_share_is_known() -> None:
    assert share_left(NOW + HOUR, None, NOW) is None
    assert share_left(None, NOW, NOW) is None
