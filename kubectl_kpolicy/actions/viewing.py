"""Actions that choose what is looked at: time in a recording, contexts, namespaces, columns, filters, two grants side by side.

Apart from `catalog` because they belong to the console alone: nothing in the cluster changes by them, and most have no command.
"""

from __future__ import annotations

from typing import Any

from .registry import TUI, Action, Danger

_HERE = f"{TUI} {{screen}}"


def _looks(name: str, title: str, text: str, key: str, command: str = _HERE, **more: Any) -> Action:
    return Action(name, title, text, (key,), Danger.LOOKS, command, **more)


VIEWING = (
    _looks("filter-build", "Build filter", "Put a filter together from columns, comparisons and values that are there.", "=",
           "kubectl kpolicy <list>[ --where {filter}]", handler="choices.build_filter"),
    _looks("notice", "Go to notice", "Go where the newest notice leads: a decision, an end, a request, a new critical failure.", ";", handler="navigation.go_to_notice"),
    _looks("columns", "Columns", "Choose which columns this screen shows; kept for the next time.", "C", handler="choices.columns"),
    _looks("context", "Context", "Choose another context of the kubeconfig, as :ctx does.", "ctrl+g", f"{_HERE} --context {{context}}", handler="choices.contexts"),
    _looks("namespaces", "Namespaces", "Choose a namespace among those that have rows, as :ns does.", "ctrl+n", f"{_HERE} -n {{namespace}}", handler="choices.namespaces"),
    _looks("time-back", "Change before", "In a recording: go back to the change before.", ",", f"{_HERE} --replay FILE --at TIME", handler="input_line.step", given=(-1,)),
    _looks("time-forward", "Next change", "In a recording: go on to the next change.", ".", f"{_HERE} --replay FILE --at TIME", handler="input_line.step", given=(1,)),
    _looks("time-earlier", "Earlier", "In a recording: go five minutes back.", "{", f"{_HERE} --replay FILE --at TIME", handler="input_line.move", given=(-1,)),
    _looks("time-later", "Later", "In a recording: go five minutes on.", "}", f"{_HERE} --replay FILE --at TIME", handler="input_line.move", given=(1,)),
)  # fmt: skip
"""Of every screen."""

COMPARING = (
    Action("timeline", "Timeline", "Show grants or clean-ups as lanes in time, with approvals, uses and runs as ticks, or hide them.", ("t",), Danger.LOOKS,
           _HERE, (), ("grants", "cleanup"), footer=5, handler="lists.timeline"),
    Action("grant-compare", "Compare", "Show two grants side by side: mark one, put the cursor on the other.", ("D",), Danger.LOOKS,
           "kubectl kpolicy grant describe {name} -n {namespace}", (), ("grants", "inbox"), needs_row=True, handler="choices.compare"),
)  # fmt: skip
