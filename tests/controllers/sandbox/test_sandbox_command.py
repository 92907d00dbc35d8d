from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kubectl_kpolicy import entry
from kubectl_kpolicy.cli import sandbox
from kubectl_kpolicy.session.replica import sandbox_environment

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "sandbox"
    monkeypatch.setenv("KPOLICY_SANDBOX_DIR", str(place))
    yield place
    entry.main(["sandbox", "down"])


def test_a_sandbox_is_started_asked_moved_in_time_and_thrown_away(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.main(["sandbox", "status"]) == 1
    assert entry.main(["sandbox", "up"]) == 0
    first = sandbox.process_of(folder)
    assert first is not None
    assert f"export KUBECONFIG={folder}/kubeconfig" in capsys.readouterr().out
    assert entry.main(["sandbox", "up"]) == 0
    assert sandbox.process_of(folder) == first
    assert entry.main(["sandbox", "clock", "4h"]) == 0
    assert "(4h0m0s ahead)" in capsys.readouterr().out
    assert entry.main(["sandbox", "status"]) == 0
    assert "4h0m0s ahead" in capsys.readouterr().out
    assert entry.main(["sandbox", "kubeconfig", "--user", "jane", "--group", "dev"]) == 0
    place = Path(capsys.readouterr().out.strip())
    assert json.loads(place.read_text())["contexts"][0]["context"]["user"] == "jane"
    assert place.stat().st_mode & 0o077 == 0
    assert entry.main(["sandbox", "clock", "-h"]) == 0
    assert entry.main(["sandbox", "reset"]) == 0
    assert not place.exists()
    assert sandbox.process_of(folder) not in {None, first}
    capsys.readouterr()
    assert entry.main(["sandbox", "clock"]) == 0
    assert "(real time)" in capsys.readouterr().out
    assert entry.main(["sandbox", "down"]) == 0
    assert sandbox.process_of(folder) is None
    assert entry.main(["sandbox", "clock", "1h"]) != 0
    assert "sandbox up" in capsys.readouterr().err


def test_a_folder_that_is_no_sandboxs_is_never_emptied(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir()
    (folder / "precious").write_text("x")
    assert entry.main(["sandbox", "reset"]) != 0
    assert (folder / "precious").exists()
    assert "no sandbox's folder" in capsys.readouterr().err


def test_the_keys_are_readable_by_their_owner_only_and_a_second_server_is_refused(
    folder: Path,
) -> None:
    assert entry.main(["sandbox", "up", "-q"]) == 0
    for name in ("ca.key", "server.key", "webhook-client.key", "kubeconfig"):
        assert (folder / name).stat().st_mode & 0o077 == 0, name
    second = subprocess.run(
        [sys.executable, "-m", "kpolicy_sandbox", "--dir", str(folder)],
        env=sandbox_environment(), capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (second.returncode, "runs already" in second.stderr) == (1, True)
