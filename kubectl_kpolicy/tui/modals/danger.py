"""The dialog before something is changed or destroyed: the effect, the names, what has to be said, for the worst a word to type.

What destroys has a heavy border and the focus on Cancel; a form for the rest begins in its first empty field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from engine.record import record
from kubectl_kpolicy.output.cells import plain
from kubectl_kpolicy.tui.widgets.frame import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.app import ComposeResult

    from kubectl_kpolicy.actions.registry import Field

_SHOWN = 10
_FEW = 3


@record
class Question:
    """What is asked: a title, the effect in one sentence, the things it is about, and what has to be filled in.

    `word` must be typed before it can be done (empty: nothing). `objection` says what is wrong with a form, empty when
    nothing is. `destroys` is for what cannot be taken back.
    """

    title: str
    effect: str
    names: tuple[str, ...] = ()
    word: str = ""
    fields: tuple[Field, ...] = ()
    command: str = ""
    destroys: bool = True
    objection: Callable[[Mapping[str, str]], str] | None = None


class Danger(ModalScreen[dict[str, str] | None]):
    """Returns what was filled in when it shall be done, None when not."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel", show=False),
        Binding("down", "app.focus_next", "Next", show=False),
        Binding("up", "app.focus_previous", "Previous", show=False),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        """Make the dialog."""
        question = self.question
        with Vertical(classes="window danger" if question.destroys else "window form") as window:
            window.border_title = question.title
            window.border_subtitle = "enter next · tab · esc cancel"
            yield Static(_body(question.effect, question.names, _FEW if question.fields else _SHOWN), markup=False)  # fmt: skip
            for field in question.fields:
                with Horizontal(classes="field"):
                    yield Static(f"{field.label:>9} ", classes="label", markup=False)
                    yield Entry(field.given, placeholder=field.prompt, password=field.hidden, id=f"field-{field.name}", compact=True)  # fmt: skip
            if question.word:
                yield Static(f"type `{plain(question.word)}` to go on", markup=False)
                with Horizontal(classes="field"):
                    yield Static(f"{'type':>9} ", classes="label")
                    yield Entry(id="word", compact=True)
            if question.command:
                yield Static(Text(f"\n$ {plain(question.command)}", "dim"), markup=False)
            yield Static(id="objection", markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(question.title, id="go", variant="error" if question.destroys else "primary", disabled=True, compact=True)  # fmt: skip

    def on_mount(self) -> None:
        """Put the focus on Cancel, or on the first thing to fill in."""
        self._judge()
        if self.question.destroys or not self.question.fields:
            self.set_focus(self.query_one("#cancel", Button))
        else:
            self._go_on(None)

    def on_input_changed(self) -> None:
        """Allow going on only when everything is filled in."""
        self._judge()

    def entered(self, field: Input) -> None:
        """Go to the next empty field, from the last one to the button."""
        self._judge()
        self._go_on(field)

    def _go_on(self, after: Input | None) -> None:
        fields = list(self.query(Input))
        start = fields.index(after) + 1 if after in fields else 0
        ordered = [*fields[start:], *fields[:start]]
        empty = next((one for one in ordered if not one.value), None)
        # At once, not after the next drawing: what is typed meanwhile belongs there.
        self.set_focus(empty or self._way_on(fields))

    def _way_on(self, fields: Sequence[Input]) -> Button | Input:
        """Return the button, or where it may not be pressed yet the first field to correct."""
        button = self.query_one("#go", Button)
        return fields[0] if button.disabled and fields else button

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Return the answer."""
        self.dismiss(self._form() if event.button.id == "go" else None)

    def _form(self) -> dict[str, str]:
        return {one.name: self.query_one(f"#field-{one.name}", Input).value.strip() for one in self.question.fields}  # fmt: skip

    def _judge(self) -> None:
        word, form = self.question.word, self._form()
        typed = not word or self.query_one("#word", Input).value == word
        wrong = self.question.objection(form) if self.question.objection and all(form.values()) else ""  # fmt: skip
        self.query_one("#objection", Static).update(Text(f"! {plain(wrong)}" if wrong else ""))
        self.query_one("#go", Button).disabled = not (typed and all(form.values())) or bool(wrong)


def _body(effect: str, names: Sequence[str], most: int) -> Text:
    text = Text(f"{effect}\n")
    for name in names[:most]:
        text.append(f"  {plain(name)}\n", "bold")
    if len(names) > most:
        text.append(f"  … and {len(names) - most} more\n")
    return text
