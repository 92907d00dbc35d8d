"""The Explain screen: policy, rule and condition as a tree, with what held, what did not, and the values that were seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text
from textual.containers import Vertical
from textual.widgets import Static, Tree

from kubectl_kpolicy.output.cells import mark_of, plain
from kubectl_kpolicy.output.explanation import Reason, cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult


_LONGEST = 200
_HELP = "e on a violation, block, policy or exception explains it; `:explain KIND/NAME` explains an object"


class ExplainView(Vertical):
    """A tree of reasons; empty until something is to be explained."""

    def __init__(self) -> None:
        super().__init__(id="explain", classes="view")
        self.border_title = "Explain"
        self._reasons: Tree[Reason] = Tree("nothing yet")
        self._reasons.show_root = False

    @property
    def reasons(self) -> Tree[Reason]:
        """The tree, which takes the focus."""
        return self._reasons

    def compose(self) -> ComposeResult:
        """Make the tree."""
        yield self._reasons
        yield Static(_HELP, classes="notice", markup=False)

    def show(self, title: str, reasons: Sequence[Reason], unknown: str = "") -> None:
        """Show why something is as it is; what failed is open, the rest is folded. `unknown` is what may speak of it unread."""
        self.border_title = f"Explain {plain(title)}".replace("[", r"\[")
        self._reasons.reset(Text(plain(title)))
        self._reasons.root.expand()
        for reason in reasons:
            _add(self._reasons.root, reason)
        self.query_one(".notice", Static).display = not reasons
        if not reasons:
            self.query_one(".notice", Static).update(unknown or "no policy speaks of this object")


def _width(node: object) -> int:
    """Return how many cells there are for a leaf below a node."""
    from textual.widgets.tree import TreeNode

    depth, place = 2, node
    while isinstance(place, TreeNode) and place.parent is not None:
        depth, place = depth + 1, place.parent
    tree = getattr(node, "tree", None)
    if not isinstance(tree, Tree):
        return 56
    return max(20, (tree.size.width or tree.app.size.width - 4) - 4 * depth)


def _add(node: object, reason: Reason) -> None:
    from textual.widgets.tree import TreeNode

    assert isinstance(node, TreeNode)
    is_outcome = reason.kind == "outcome"
    if reason.kind == "result" or (is_outcome and not reason.text):
        # the last step of a rule, and its own line, say the same
        return
    label = Text(no_wrap=True)
    mark = mark_of(reason.state)
    label.append(f"{mark.glyph} {reason.state} " if reason.state and not is_outcome else "", "bold")
    what = f"{reason.kind} " if reason.kind not in ("", "rule", "outcome") else ""
    label.append(plain(f"{what}{reason.text}"))
    if reason.value:
        label.append(f"  = {plain(cut(reason.value, _LONGEST))}", "dim")
    if not reason.parts:
        label.no_wrap = False
        for line in label.wrap(Console(width=200), _width(node)):
            node.add_leaf(line, reason)
        return
    below = node.add(label, reason, expand=reason.state in ("fail", "error", "warn", "no"))
    for part in reason.parts:
        _add(below, part)
