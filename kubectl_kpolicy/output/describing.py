"""One row in full, as `kubectl describe` writes: labels to the left, sections below; nothing in it can steer a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cells import plain

if TYPE_CHECKING:
    from datetime import datetime

    from kubectl_kpolicy.cluster.cache import ClusterCache
    from kubectl_kpolicy.cluster.rows import Listing, Row


def described(row: Row, listing: Listing, world: ClusterCache, now: datetime) -> str:
    """Return everything about a row."""
    from kubectl_kpolicy.cluster.details import sections

    lines = []
    for section in sections(row, listing, world, now):
        if section.title:
            lines.append(f"{section.title[:1].upper()}{section.title[1:]}:")
        width = max((len(label) for label, _ in section.pairs), default=0) + 2
        lines += [f"{label.capitalize() + ':':{width}} {plain(value)}" for label, value in section.pairs]  # fmt: skip
        lines += [f"  {plain(line)}" for line in section.lines]
    return "\n".join(lines) + "\n"
