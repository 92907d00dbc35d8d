"""The form of a grant: what is required, how far it reaches, why and how long, and a review before it is handed in.

Four short pages, or all at once where there are forty rows. What is typed is judged at every key by the same rules that the
cluster enforces; the cluster has the last word (`try_out`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from engine.grants import length_text
from engine.record import replace
from kubectl_kpolicy.grants import form as forms
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.output.structured import yaml_text
from kubectl_kpolicy.tui.widgets.frame import Entry

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from kubectl_kpolicy.grants.form import Draft, GrantForm

PAGES = ("Requirements", "Scope", "Why and how long", "Review")
TALL = 40
_REST = 0.3
"""Seconds without a key after which the server is asked, where every key may be the last one."""
_SCOPE = (("policy", "policy"), ("rule", "rule, * for all"), ("kind", "kind"), ("name", "name, * allowed"), ("namespace", "namespace"))  # fmt: skip
_WHY = (("reason", "why, in words an auditor understands"), ("ticket", "ticket"), ("start", "start, RFC 3339 (now)"), ("uses", "at most so many uses"))  # fmt: skip


class GrantWizard(ModalScreen["Draft | None"]):
    """Returns the draft when it shall be handed in, None when not."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel", show=False),
        Binding("ctrl+j", "turn(1)", "Next", show=False, priority=True),
        Binding("ctrl+k", "turn(-1)", "Back", show=False, priority=True),
        Binding("ctrl+e", "emergency", "Emergency", show=False, priority=True),
        Binding("down", "scroll(1)", "Down", show=False),
        Binding("up", "scroll(-1)", "Up", show=False),
        Binding("pagedown", "scroll(10)", "Page down", show=False),
        Binding("pageup", "scroll(-10)", "Page up", show=False),
    ]

    def __init__(self, draft: Draft, form: GrantForm, page: int = 0, where: str = "") -> None:
        super().__init__()
        self.draft = draft
        self._form = form
        self._page = page
        self._title = "Request a grant" + (f" in {plain(where)}" if where else "")
        self._tried: Draft | None = None

    def compose(self) -> ComposeResult:
        """Make all pages; those that are not open are hidden."""
        with Vertical(classes="window wizard") as window:
            window.border_title = self._title.replace("[", r"\[")
            yield Static(id="steps")
            with VerticalScroll(id="pages", can_focus=False):
                yield Static(id="page-0", markup=False)
                with Vertical(id="page-1"):
                    yield from self._fields(_SCOPE)
                    yield Static(id="reach", markup=False)
                with Vertical(id="page-2"):
                    yield from self._fields(_WHY[:1])
                    yield Static(id="meter", markup=False)
                    yield from self._fields(_WHY[1:2])
                    yield from self._fields((("length", "how long, such as 2h"),))
                    with Horizontal(classes="chips"):
                        for length in ("15m", "1h", "4h", "max"):
                            yield Button(length, id=f"chip-{length}", compact=True)
                    yield from self._fields(_WHY[2:])
                yield Static(id="page-3", markup=False)
            yield Static(id="refusals", markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button("Next", id="next", compact=True)
                yield Button("Request", id="go", variant="primary", compact=True)

    def _fields(self, fields: tuple[tuple[str, str], ...]) -> ComposeResult:
        for name, prompt in fields:
            with Horizontal(classes="field"):
                yield Static(f"{name:>9} ", classes="label")
                yield Entry(str(getattr(self.draft, name)), placeholder=prompt, id=f"field-{name}", compact=True)  # fmt: skip

    def on_mount(self) -> None:
        """Open the first page."""
        self.query_one(".wizard").set_class(self.is_tall, "-tall")
        self._show()

    @property
    def is_tall(self) -> bool:
        """Whether all pages fit at once."""
        return self.app.size.height >= TALL

    @property
    def _shows_review(self) -> bool:
        return self.is_tall or self._page == len(PAGES) - 1

    def action_turn(self, by: int) -> None:
        """Go to another page; from the last one on, hand in."""
        if by > 0 and self._shows_review:
            self._hand_in()
            return
        self._page = max(0, min(self._page + by, len(PAGES) - 1))
        self.query_one("#pages").scroll_home(animate=False)
        self._show()

    def action_scroll(self, lines: int) -> None:
        """Scroll the open page by lines."""
        self.query_one("#pages").scroll_relative(y=lines, animate=False)

    def action_emergency(self) -> None:
        """Turn the emergency path on or off."""
        self.draft = replace(self.draft, emergency=not self.draft.emergency)
        self._show(keep_focus=True)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take over what was typed."""
        name = str(event.input.id).removeprefix("field-")
        if getattr(self.draft, name) != event.value:
            self.draft = replace(self.draft, **{name: event.value})
            self._show(keep_focus=True)

    def entered(self, _field: Input) -> None:
        """Go to the next field."""
        self.focus_next()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Set a length of time, turn the page, hand in or cancel."""
        match event.button.id:
            case "cancel":
                self.dismiss(None)
            case "next":
                self.action_turn(1)
            case "go":
                self._hand_in()
            case str(name):
                self._set_length(name.removeprefix("chip-"))

    def _set_length(self, text: str) -> None:
        if text == "max":
            longest = self._form.requirements(self.draft).longest
            text = length_text(longest) if longest is not None else "24h"
        self.query_one("#field-length", Input).value = text

    def _hand_in(self) -> None:
        if self._form.refusals(self.draft):
            self.app.bell()
            return
        self.dismiss(self.draft)

    def _show(self, *, keep_focus: bool = False) -> None:
        """Draw the open page, and what follows from what was typed."""
        refusals = self._form.refusals(self.draft)
        for number in range(len(PAGES)):
            self.query_one(f"#page-{number}").display = self.is_tall or number == self._page
        self.query_one("#next").display = not self._shows_review
        go = self.query_one("#go", Button)
        go.display = self._shows_review
        go.disabled = bool(refusals)
        self._show_keys()
        self.query_one("#steps", Static).update(self._steps())
        self.query_one("#page-0", Static).update(self._requirements())
        self.query_one("#reach", Static).update(self._reach())
        self.query_one("#meter", Static).update(self._meter())
        self.query_one("#page-3", Static).update(self._review())
        shown = refusals if self._shows_review else []
        self.query_one("#refusals", Static).update(Text("\n".join(f"! {one}" for one in shown)))
        if not keep_focus:
            self._focus_first()
        if not refusals and self._shows_review and self._tried != self.draft:
            self._tried = self.draft
            self.run_worker(self._try_out(self.draft), exclusive=True, exit_on_error=False)

    def _show_keys(self) -> None:
        """Name the keys; the review is longer than most terminals, so those that scroll come first there."""
        scroll = "up/down scroll · " if self._page == len(PAGES) - 1 else ""
        window = self.query_one(".wizard")
        window.border_subtitle = f"{scroll}^j next · ^k back · ^e emergency · esc cancel"

    async def _try_out(self, draft: Draft) -> None:
        """Let the server judge what is typed once nothing more is, and show its verdict."""
        await asyncio.sleep(_REST if self.is_tall else 0)
        verdict = await self._form.try_out(draft)
        if draft == self.draft:
            self.query_one("#refusals", Static).update(Text(f"server: {plain(verdict)}"))

    def _focus_first(self) -> None:
        page = 2 if self.is_tall else self._page
        first = next(iter(self.query(f"#page-{page} Input")), None)
        button = "#go" if self._page == len(PAGES) - 1 else "#next"
        # At once, not after the next drawing: what is typed meanwhile belongs there.
        self.set_focus(first or self.query_one(button))

    def _steps(self) -> Text:
        text = Text()
        for number, page in enumerate(PAGES):
            text.append(f" {number + 1} {page} ", "reverse" if number == self._page and not self.is_tall else "dim")  # fmt: skip
        if self.draft.emergency:
            text.append(" EMERGENCY ", "bold reverse")
        return text

    def _requirements(self) -> Text:
        required = self._form.requirements(self.draft)
        policy = required.policy
        longest = length_text(required.longest) if required.longest else "as the cluster says"
        lines = [
            (
                "asked of",
                f"grantpolicy/{policy.name}" if policy else "no GrantPolicy was found for this",
            ),
            ("longest", longest),
            ("approvers", required.approvers),
            ("reason", f"at least {required.least_reason} characters"),
            ("ticket", (policy and policy.ticket) or "not required"),
            ("limits", required.limits or "none known"),
        ]
        return Text("\n".join(f"{label:>9}  {plain(value)}" for label, value in lines))

    def _reach(self) -> Text:
        reach = self._form.reach(self.draft)
        later = f"yes {self.draft.kind}/{self.draft.name}" if reach.fits_later else "no"
        text = Text(f"\nflips {len(reach.flips)}, leaves {reach.stays}, may match later: {plain(later)}\n", "bold")  # fmt: skip
        for row in reach.flips[:8]:
            line = f"{row.text('namespace')}/{row.text('resource')}  {row.text('rule')}"
            text.append(f"  {plain(line)}\n", "none")
        return text

    def _meter(self) -> Content:
        """Return how much of the least length the reason has, right below it and in line with it."""
        least = self._form.requirements(self.draft).least_reason
        count = len(self.draft.reason.strip())
        full = min(count * 10 // max(least, 1), 10)
        return Content.assemble(
            " " * 11,
            ("━" * full, "$success" if full == 10 else "$warning"),
            ("─" * (10 - full), "$foreground 40%"),
            f" {count} of at least {least} characters",
        )

    def _review(self) -> Text:
        text = Text(yaml_text(self._form.manifest(self.draft)))
        text.append(f"\n$ {plain(forms.command(self.draft))}\n", "dim")
        return text
