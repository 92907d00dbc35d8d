"""`python -m tests.screenshots`: draws the pictures of the README from what the program prints.

The pictures are committed; a test compares them with a fresh drawing, so that they cannot grow stale.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).parents[1] / "screenshots"
WIDTH = 118
LINES = 34
_COLOURS = {"FAIL": "bold red", "ok  ": "green", "skip": "yellow"}


def drawings() -> dict[str, str]:
    """Return the SVG of every picture by file name."""
    done = subprocess.run(
        [sys.executable, "-m", "kubectl_kpolicy.demo", "--offline"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {"demo.svg": _drawn(done.stdout.splitlines()[:LINES])}


def _drawn(lines: list[str]) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in lines:
        text = Text(line)
        for word, style in _COLOURS.items():
            text.highlight_regex(rf"(?<=^       ){word}", style)
        text.highlight_regex(r"^\d+\. .*", "bold")
        text.highlight_regex(r"\$ kubectl.*", "cyan")
        console.print(text, soft_wrap=False)
    return console.export_svg(title="python -m kubectl_kpolicy.demo --offline", unique_id="demo")


def main() -> int:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, svg in drawings().items():
        (FOLDER / name).write_text(svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
