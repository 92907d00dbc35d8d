"""Notices on the screen: told in a line, gone after a minute, and a key leads to where one can act."""

from __future__ import annotations

from datetime import timedelta

from tests.plugin.scene import NOW, ahead, grant, report, result

from .stage import LARGE, console, on_stage, press, settled, text_of

CRITICAL = result("host", "h", "fail", "critical", "no")


async def later(app, **length: float) -> None:
    app.source.at = NOW + timedelta(**length)
    app._tick()
    await settled(app)


def test_a_notice_stands_above_the_footer_and_a_key_leads_there() -> None:
    async def look(app, pilot) -> None:
        await later(app, seconds=1)
        app.source.world.put("reports", report("Pod", "evil", "payments", CRITICAL))
        await later(app, seconds=2)
        assert "; ‼ new critical failure: host on Pod/evil" in text_of(app)
        await press(pilot, ";")
        assert app.current == "violations"
        assert app.view.state.filter.text == "sev=critical"
        assert "new critical failure" not in text_of(app)

    on_stage(look, console(screen="grants"))


def test_a_notice_goes_after_a_minute_and_can_still_be_found() -> None:
    async def look(app, pilot) -> None:
        await later(app, seconds=1)
        for name in ("debug-shell", "web-nonroot"):
            app.source.world.put("grants", grant(name, "denied", "alice", target=name))
        await later(app, seconds=2)
        assert "2 notices" in text_of(app)
        await later(app, seconds=63)
        assert "2 notices" not in text_of(app)
        await press(pilot, ";")
        assert "Notices" in text_of(app)
        await press(pilot, "enter")
        assert app.view.state.filter.text == "name=debug-shell ns=payments"

    on_stage(look)


def test_notices_can_be_off() -> None:
    async def look(app, _pilot) -> None:
        await later(app, seconds=1)
        app.source.world.put("reports", report("Pod", "evil", "payments", CRITICAL))
        await later(app, seconds=2)
        assert "new critical" not in text_of(app)

    on_stage(look, console(screen="grants", notices=False))


def test_a_notice_is_harmless_and_in_ascii_where_that_is_wanted() -> None:
    async def look(app, _pilot) -> None:
        await later(app, seconds=1)
        there = grant("x", "active", "al", expiresAt=ahead(minutes=3), target="\x1b[2J")
        app.source.world.put("grants", there)
        await later(app, seconds=2)
        line = next(one for one in text_of(app).splitlines() if "ends in" in one)
        assert line.isascii()
        assert line.isprintable()

    on_stage(look, console(screen="grants", ascii=True), size=LARGE)
