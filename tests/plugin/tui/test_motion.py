"""Motion: a changed row flashes for a moment and an ended one is dim, unless somebody wants none of it."""

from __future__ import annotations

from datetime import timedelta

from tests.plugin.scene import NOW, ahead, grant

from .stage import console, drawn, lines_of, on_stage, settled


async def after(app, **length: float) -> None:
    app.source.at = NOW + timedelta(**length)
    app._tick()
    await settled(app)


def line(app, name: str) -> str:
    return next(one for one in lines_of(app) if name in one)


def changed(reason: str = "another"):
    return grant(
        "debug-shell",
        "active",
        "carol",
        expiresAt=ahead(hours=1),
        target="debug-shell",
        reason=reason,
    )


def test_a_changed_row_has_a_sign_for_three_seconds() -> None:
    async def look(app, _pilot) -> None:
        assert "»" not in line(app, "debug-sh")
        app.source.world.put("grants", changed())
        await drawn(app)
        assert "»" in line(app, "debug-sh")
        assert "»" not in line(app, "ledger")
        await after(app, seconds=2)
        assert "»" in line(app, "debug-sh")
        await after(app, seconds=4)
        assert "»" not in line(app, "debug-sh")

    on_stage(look, console(screen="grants"))


def test_an_object_that_reads_as_before_does_not_flash() -> None:
    async def look(app, _pilot) -> None:
        obj = next(one.object for one in app.table.lines if one.text("name") == "debug-shell")
        app.source.world.put("grants", {**obj})
        await drawn(app)
        assert "»" not in line(app, "debug-sh")

    on_stage(look, console(screen="grants"))


def test_nothing_flashes_or_fades_where_motion_is_off() -> None:
    async def look(app, _pilot) -> None:
        app.source.world.put("grants", changed())
        await drawn(app)
        assert "»" not in line(app, "debug-sh")
        assert not app.table.flashes.is_on

    on_stage(look, console(screen="grants", motion=False))


def test_what_ends_while_somebody_looks_goes_dim_when_its_flash_is_over() -> None:
    async def look(app, _pilot) -> None:
        app.table.move_to(4)
        ended = grant("web-nonroot", "revoked", "alice")
        app.source.world.put("grants", ended)
        await drawn(app)
        row = next(one for one in app.table.lines if one.text("name") == "web-nonroot")
        assert app.table.flashes.has_ended(row)
        assert not any(
            app.table.flashes.has_ended(one) for one in app.table.lines if one is not row
        )
        await after(app, seconds=4)
        assert not app.table.flashes.is_changed(row, app.source.now())

    on_stage(look, console(screen="grants"))
