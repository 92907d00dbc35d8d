"""The files of a sandbox are for its owner: the database holds the key that signs everybody's tokens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kpolicy_sandbox.server import Sandbox
from kubectl_kpolicy import entry

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def rights(folder: Path) -> dict[str, int]:
    """Return the rights of a folder and of the database in it, with what is written beside it."""
    places = [folder, *folder.glob("sandbox.db*")]
    return {place.name: place.stat().st_mode & 0o777 for place in places}


def started(folder: Path) -> tuple[dict[str, int], list[str]]:
    async def run() -> tuple[dict[str, int], list[str]]:
        async with Sandbox.start(folder) as sandbox:
            return rights(folder), sandbox.were_open

    return asyncio.run(run())


def test_the_database_of_a_sandbox_and_what_is_written_beside_it_are_its_owners_alone(
    tmp_path: Path,
) -> None:
    found, opened = started(tmp_path / "sandbox")
    assert found.pop("sandbox") == 0o700
    assert "sandbox.db" in found
    assert set(found.values()) == {0o600}
    assert opened == []


def test_wider_rights_of_a_sandbox_are_taken_back_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "sandbox"
    started(folder)
    (folder / "sandbox.db-wal").touch()
    folder.chmod(0o755)
    for place in folder.glob("sandbox.db*"):
        place.chmod(0o644)
    found, opened = started(folder)
    assert {"sandbox", "sandbox.db", "sandbox.db-wal"} <= set(opened)
    assert not any(mode & 0o077 for mode in found.values())
    assert started(folder)[1] == []


def test_a_folder_that_is_everybody_s_stays_so(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    for _ in range(2):
        found, opened = started(folder)
        assert (found["shared"], found["sandbox.db"], opened) == (0o777, 0o600, [])


def test_the_command_warns_of_a_sandbox_that_others_could_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sandbox"
    monkeypatch.setenv("KPOLICY_SANDBOX_DIR", str(folder))
    started(folder)
    (folder / "sandbox.db").chmod(0o640)
    try:
        assert entry.main(["sandbox", "up"]) == 0
        told = capsys.readouterr()
        assert "warning: others could open sandbox.db until now" in told.err
        assert "others could open" not in told.out
    finally:
        entry.main(["sandbox", "down"])
