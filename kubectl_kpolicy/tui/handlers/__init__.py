"""What actions do in the console: each handler takes the console and may return something to await."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kubectl_kpolicy.actions.registry import Action
    from kubectl_kpolicy.tui.stage import Stage


def handle(app: Stage, action: Action) -> Awaitable[Any] | None:
    """Do what an action declares: its handler, or the dialog before its work."""
    if action.handler:
        return function_of(action.handler)(*action.given, app)
    return function_of("changes.ask")(action, app)


async def perform_named(app: Stage, name: str) -> None:
    """Do the action with an id, where there is one; on a screen that it is not for, say so."""
    action = app.registry.get(name)
    if action is not None and action.screens and app.current not in action.screens:
        app.say(f"`{action.title}` is for {', '.join(action.screens)}", "yellow")
    elif action is not None:
        await app.perform(action)


async def call(handler: str, *given: Any) -> None:
    """Do what a handler does that may take a while, without loading its module before."""
    result = function_of(handler)(*given)
    if result is not None:
        await result


@cache
def function_of(handler: str) -> Callable[..., Awaitable[Any] | None]:
    """Return the function that `module.function` names; its module is loaded when it is first wanted."""
    module, _, name = handler.partition(".")
    found: Callable[..., Awaitable[Any] | None] = getattr(
        import_module(f".{module}", __name__), name
    )
    return found
