"""The dialog before something is changed or destroyed: the effect, the names, the reason, and for the worst a word to type."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from engine.record import record
from kubectl_kpolicy.output.cells import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

_SHOWN = 10


@record
class Question:
    """What is asked: a title, the effect in one sentence, the things it is about, and what has to be filled in.

    `word` must be typed before it can be done (empty: nothing); `fields` are ids with their prompts.
    """

    title: str
    effect: str
    names: tuple[str, ...]
    word: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    command: str = ""


class Danger(ModalScreen[dict[str, str] | None]):
    """Returns what was filled in when it shall be done, None when not; Cancel has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Cancel", show=False)]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        """Make the dialog."""
        question = self.question
        with Vertical(classes="window danger") as window:
            window.border_title = question.title
            yield Static(_body(question.effect, question.names), markup=False)
            for name, prompt in question.fields:
                yield Input(placeholder=prompt, id=f"field-{name}", compact=True)
            if question.word:
                yield Static(f"type `{plain(question.word)}` to go on", markup=False)
                yield Input(id="word", compact=True)
            if question.command:
                yield Static(Text(f"$ {plain(question.command)}", "dim"), markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield Button(question.title, id="go", variant="error", disabled=True, compact=True)

    def on_mount(self) -> None:
        """Put the focus on Cancel."""
        self._judge()
        self.query_one("#cancel", Button).focus()

    def on_input_changed(self) -> None:
        """Allow going on only when everything is filled in."""
        self._judge()

    def on_input_submitted(self) -> None:
        """Go to the next field."""
        self.focus_next()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Return the answer."""
        self.dismiss(self._form() if event.button.id == "go" else None)

    def _form(self) -> dict[str, str]:
        return {name: self.query_one(f"#field-{name}", Input).value.strip() for name, _ in self.question.fields}  # fmt: skip

    def _judge(self) -> None:
        word = self.question.word
        typed = not word or self.query_one("#word", Input).value == word
        self.query_one("#go", Button).disabled = not (typed and all(self._form().values()))


def _body(effect: str, names: Sequence[str]) -> Text:
    text = Text(f"{effect}\n\n")
    for name in names[:_SHOWN]:
        text.append(f"  {plain(name)}\n", "bold")
    if len(names) > _SHOWN:
        text.append(f"  … and {len(names) - _SHOWN} more\n")
    return text
