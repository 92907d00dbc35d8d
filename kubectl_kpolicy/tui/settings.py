"""What the console is told when it starts: whom it serves, how it looks, what it may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.record import field, record
from kubectl_kpolicy.actions.plugins import OwnKeys

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sequence

    from kubectl_kpolicy.cluster.charts import Sample


@record
class Settings:
    """Everything that flags and the configuration decide.

    `keymap` are keys by action id, `own` is what keys of somebody's own do, `aliases` are words
    of the command line, `views` are saved filters by name (`noun: filter`), `favourites` are namespaces 1 to 9,
    `kubeconfig` is the file that was named and `acts_as` whom the console impersonates (both empty: neither), for programs that it starts,
    `columns` the columns chosen by screen or view, `color` that of the header,
    `detail` the part of the width that details take beside a list, in percent,
    `past` the numbers of earlier sittings,
    `notices` whether a line tells what has happened, `motion` whether changed rows flash and ended ones fade.
    """

    context: str = ""
    user: str = ""
    namespace: str = ""
    read_only: bool = False
    is_production: bool = False
    theme: str = "dark"
    ascii: bool = False
    screen: str = "violations"
    where: str = ""
    favourites: Sequence[str] = ()
    keymap: Mapping[str, Sequence[str]] = field(default_factory=dict)
    own: OwnKeys = field(default_factory=OwnKeys)
    kubeconfig: str = ""
    acts_as: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    views: MutableMapping[str, str] = field(default_factory=dict)
    columns: MutableMapping[str, tuple[str, ...]] = field(default_factory=dict)
    color: str = ""
    detail: int = 35
    seen: frozenset[str] | None = None
    past: Sequence[Sample] = ()
    notices: bool = True
    motion: bool = True
