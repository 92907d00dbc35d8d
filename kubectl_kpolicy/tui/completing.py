"""What a line after `:` may go on with: words of commands, what there is for each to name, and lines that were given before.

Knows no widgets. A line is completed word by word (`completions`); what is suggested behind the cursor is the last line that began
so, or else the first completion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_kpolicy.actions.prompt import VERBS
from kubectl_kpolicy.actions.screens import LISTINGS, SCREENS, listing_named

from .themes import SHORT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .stage import Stage

_PLACES = 500
_RECENT = 100


def suggestion(app: Stage, line: str) -> str:
    """Return the whole line that is likely meant, empty where nothing was typed or nothing fits."""
    if not line.strip():
        return ""
    found = app.lines.last(line) or next(iter(completions(app, line)), "")
    return found if found != line else ""


def completions(app: Stage, line: str) -> list[str]:
    """Return the lines that one more word makes of this one, the most likely first."""
    head, space, word = line.rpartition(" ")
    words = _seconds(app, head.strip()) if space else _firsts(app)
    lowered = word.lower()
    found = [f"{head}{space}{one}" for one in words if one.lower().startswith(lowered)]
    own = (one for one in app.settings.own.lines if one.startswith(line) and one != line)
    return list(dict.fromkeys([*found, *own]))


def _firsts(app: Stage) -> list[str]:
    aliases = (alias for one in LISTINGS.values() for alias in one.aliases)
    own = (*app.settings.aliases, *app.settings.own.plugins)
    return [*SCREENS, *own, *VERBS, "help", "quit", *aliases]


def _seconds(app: Stage, verb: str) -> Sequence[str]:
    """Return what may stand behind a verb or a screen; nothing behind more than that."""
    match verb:
        case "ns":
            return ["all", *namespaces_seen(app)]
        case "ctx" | "contexts":
            return app.contexts()
        case "view":
            return list(app.settings.views)
        case "theme":
            return list(SHORT)
        case "at":
            return ["start", "end"]
        case "explain":
            return _objects(app)
    return namespaces_seen(app) if listing_named(verb) is not None else ()


def namespaces_seen(app: Stage) -> list[str]:
    """Return the favourites, and the namespaces that rows of the screens so far are in."""
    world, now = app.source.world, app.source.now()
    rows = (row for view in app.views.values() for row in view.state.rows(world, now))
    found = {row.text("namespace") for row in rows} - {""}
    return [*app.settings.favourites, *sorted(found - set(app.settings.favourites))]


def _objects(app: Stage) -> list[str]:
    """Return the objects that reports tell of, as `:explain` takes them."""
    from kubectl_kpolicy.cluster.violations import rows_by_object

    places = list(rows_by_object(app.source.world))[:_PLACES]
    return ["/".join(filter(None, place)) for place in places]


# What the line does with it: a suggestion behind the cursor, tab for the next completion, arrows for lines before and after.


def line_text(value: str) -> str | None:
    """Return what stands after `:` in the line, None where it is no command."""
    return value[1:] if value.startswith(":") else None


def said_of(choices: Sequence[str], index: int) -> str:
    """Return the last words of completions, the one that was taken in brackets, as a sentence for the frame."""
    words = [one.rpartition(" ")[2] for one in choices[:_RECENT]]
    return "  ".join(f"[{one}]" if at == index else one for at, one in enumerate(words))
