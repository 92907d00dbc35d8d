"""`kubectl kpolicy tui`: starts the console on a cluster or on a recording. Textual is loaded here and nowhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from kubectl_kpolicy.output.misuse import Misuse

from .flags import Arguments, Flags, guarded, request_of

if TYPE_CHECKING:
    from kubectl_kpolicy.tui.start import ConsoleRequest


def add_arguments(flags: Flags) -> None:
    """Add the command's flags."""
    from kubectl_kpolicy.session.config import THEMES

    flags.example("kubectl kpolicy tui violations --where 'sev>=high' --read-only")
    flags.add("screen", "screen or its alias, such as pulse, v, grants", nargs="?", default="", metavar="SCREEN")  # fmt: skip
    flags.text("--where", "FILTER", "filter for that screen")
    flags.switch("--read-only", "start read-only; `:write` ends that")
    flags.switch("--write", "start writable, in production, too")
    flags.text("--theme", "NAME", ", ".join(THEMES), choices=THEMES)
    flags.switch("--ascii", "plain ASCII instead of symbols")
    flags.text("--record", "FILE", "record the session, for --replay")
    flags.text("--replay", "FILE", "show a recording instead of a cluster")
    flags.text("--at", "TIME", "show the recording as of this instant (its end by default)")
    flags.text("--serve", "ADDRESS", "show the console in a browser, on this address", nargs="?", const="127.0.0.1:8000")  # fmt: skip
    flags.switch("--allow-remote", "let --serve listen where others can reach it")
    flags.of_cluster()
    flags.contexts()


@guarded
def run(args: Arguments) -> int:
    """Open the console and return when it is closed."""
    try:
        from kubectl_kpolicy.tui import serving, start
    except ModuleNotFoundError as error:
        if error.name not in ("textual", "rich"):
            raise
        raise EngineError("the console needs Textual", help="pip install 'kubectl-kpolicy[tui]'") from error  # fmt: skip
    if args.serve:
        return serving.serve(args.serve, sys.argv, is_remote_allowed=args.allow_remote)
    if not sys.stdout.isatty() and not serving.is_served():
        raise EngineError("the console needs a terminal", help="`kubectl kpolicy status` prints the same numbers; --serve shows it in a browser")  # fmt: skip
    return start.start(request_of(start.ConsoleRequest, args), settings_of)


def settings_of(asked: ConsoleRequest) -> dict[str, Any]:
    """Return what flags and configuration say about the console, by the fields of its settings; raises EngineError."""
    from kubectl_kpolicy.actions.plugins import own_keys
    from kubectl_kpolicy.session.config import load_config
    from kubectl_kpolicy.tui.start import contexts_of

    config = load_config()
    own = own_keys(config)
    names = contexts_of(asked)
    context = ",".join(names) or asked.connection.context
    if not asked.replay and not names:
        from kubectl_kpolicy.session.cluster import access_of

        context = access_of(asked.connection).context
    return {
        "context": context,
        "namespace": "" if asked.connection.all_namespaces else asked.connection.namespace,
        "read_only": (asked.read_only or any(map(config.is_read_only, names or [context])))
        and not asked.write,
        "is_production": any(map(config.is_production, names or [context])),
        "theme": asked.theme or config.tui("theme"),
        "ascii": asked.ascii or config.tui("ascii"),
        "notices": config.tui("notices"),
        "motion": config.tui("motion"),
        "screen": _screen(asked.screen or config.tui("screen")),
        "where": asked.where,
        "detail": config.tui("detail"),
        "color": config.context(context, "color"),
        "favourites": tuple(config.context(context, "favourites")),
        "keymap": config.keymap(),
        "own": own,
        "kubeconfig": asked.connection.kubeconfig,
        "acts_as": asked.connection.as_user,
        "aliases": config.aliases(),
        "views": config.views(),
    }


def _screen(word: str) -> str:
    from kubectl_kpolicy.actions.screens import LISTINGS, listing_named

    if word in ("pulse", "explain"):
        return word
    listing = listing_named(word)
    if listing is None:
        raise Misuse(
            f"there is no screen `{word}`", help=f"there are pulse, explain, {', '.join(LISTINGS)}"
        )
    return listing.noun
