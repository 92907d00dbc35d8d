"""What was found: each kind of finding once, with the input that shows it in a file."""

from __future__ import annotations

import re
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Findings:
    """Findings of one run; the inputs are written into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counts: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, target: str, text: str, data: bytes) -> None:
        """Note a finding; of one that differs from an earlier one in figures only, just the count."""
        kind = (target, re.sub(r"[0-9.]+ (s|MiB)", r"N \1", text).partition(": ")[0])
        self._counts[kind] += 1
        if self._counts[kind] > 1:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{target}-{sha256(data).hexdigest()[:12]}"
        path.write_bytes(data)
        print(f"FOUND {target}: {text}\n  {path}", flush=True)
