"""The draft: the line that is being typed, with folded pastes, what was sent before, and what was put aside."""

import re
from collections.abc import Awaitable, Callable

from prompt_toolkit.buffer import Buffer

from ybs.frontends.terminal.prompt.history import LineHistory
from ybs.frontends.terminal.prompt.paste import Pastes, clean, has_folded
from ybs.session.injection import NO_COMMAND, as_words

#: Bytes of another encoding than the terminal's.
_BROKEN = re.compile("[\ud800-\udfff]")
#: A text of more characters is folded whole, whoever wrote it.
MOST_EDITED = 100_000
#: Behind words that nobody has touched since they were put here, one of these begins a command in their place. Behind it names are data.
_ORDERS = ("/", "!")


class PromptDraft(Buffer):
    """What is typed; `say` shows a hint."""

    def __init__(self, history: LineHistory, say: Callable[[str], None]) -> None:
        super().__init__(multiline=True, history=history)
        self.pastes = Pastes()
        self.lines = history
        self._say = say
        self._aside = self._given = ""
        self._place: tuple[int, int] | None = None

    @property
    def words(self) -> str:
        """What is typed, with all that was pasted."""
        folded = self.text.strip()
        if folded.startswith("!") and has_folded(folded[1:2]):
            folded = f"! {folded[1:]}"  # as `shell_line`: whatever the paste begins with, it runs in the sandbox
        words = self.pastes.expand(_BROKEN.sub("\ufffd", folded)).strip()
        # Who pastes cannot see how it begins.
        is_hidden = has_folded(folded[:1]) and words.startswith(("/", "!"))
        return NO_COMMAND + words if is_hidden else words

    def take(self) -> str:
        """Return the typed text, remember it and clear the draft; "" if nothing is typed."""
        if words := self.words:
            self.pastes.note_sent(words, _BROKEN.sub("\ufffd", self.text.strip()))
            self.append_to_history()
            self.reset()
            self._given = ""
        return words

    def append_to_history(self) -> None:
        """Remember the draft: here with what was pasted, on the disk without."""
        text = self.text.strip()
        self.lines.remember(text, self.pastes.label(text))

    async def keep(self, kept: Callable[[str], Awaitable[str | None]]) -> None:
        """Have the history keep what is typed and what was put aside, for who leaves with it, as `kept` says of each."""
        for text in (self._aside.strip(), self.text.strip()):
            if written := self.pastes.label(text):
                self.lines.remember(text, written)
                self.lines.write_down(written, await kept(written))

    def paste(self, text: str) -> None:
        """Take what was pasted."""
        text, removed = clean(text)
        if removed:
            is_one = removed == 1
            self._say(f"{removed:,} control character{'' if is_one else 's'} left out of the paste")
        # No menu opens at what was pasted, such as a path.
        self.insert_text(self.pastes.fold_long(text, self.text), fire_event=False)

    def give(self, text: str) -> None:
        """Put words before the draft, where the cursor then is behind all; only what was pasted is folded."""
        text = self.pastes.fold_known(text)
        self.set(
            text if len(text) <= MOST_EDITED else self.pastes.fold(text, self.text), keeps=True
        )
        self._given = self.text

    def offer(self, text: str) -> None:
        """Put words that were taken back into the prompt, unless something else is typed there already."""
        if not self.text:
            self.give(text)

    def insert_text(
        self, data: str, overwrite: bool = False, move_cursor: bool = True, fire_event: bool = True
    ) -> None:
        """Insert what is typed; a command takes the place of words that were put here and not touched since."""
        is_untouched = self.text and self.text == self._given and self.document.is_cursor_at_the_end
        if is_untouched and data in _ORDERS:
            self.clear()
        super().insert_text(data, overwrite, move_cursor, fire_event)

    def set(self, text: str, *, keeps: bool = False) -> None:
        """Put words into the prompt; `keeps` what is there behind them, which is never a part of a command then."""
        self.save_to_undo_stack()
        behind = self.text if keeps else ""
        self.text = as_words(f"{text}\n{behind}") if text and behind else text or behind
        self.cursor_position = len(self.text)

    def clear(self) -> None:
        """Empty the draft; undo and Up bring it back."""
        if self.text.strip():
            self.lines.remember(self.text, "")
            self.reset(self.document)  # Up finds it there
        self.set("")

    def put_aside(self) -> None:
        """Put the draft aside, or bring back the one that was."""
        if self.text:
            was, self._aside = self._aside, self.text
            self.set(was)
            self._say("put aside; Ctrl-S at an empty prompt brings it back")
        elif self._aside:
            self.set(self._aside)
            self._aside = ""
            self._say("")  # it is here again

    def replace(self, text: str) -> None:
        """Put the edited text in the place of the draft; what is in it of long pastes is folded again."""
        if text != self.words:
            text = self.pastes.refold(clean(text)[0], self.text)
            self.set(text if len(text) <= MOST_EDITED else self.pastes.fold(text, self.text))

    def note_place(self) -> None:
        """Note where a search begins."""
        self._place = self.working_index, self.cursor_position

    def go_back(self) -> None:
        """Go back to where the search began."""
        if self._place is not None:
            self.working_index, self.cursor_position = self._place
            self._place = None

    # The menu of completions

    def has_chosen(self) -> bool:
        """Return whether a completion is selected."""
        return bool(self.complete_state and self.complete_state.current_completion)

    def select(self) -> None:
        """Select the first completion or the next one; without a menu, ask for one."""
        if self.complete_state:
            self.complete_next()
        else:
            self.start_completion()

    def accept(self) -> None:
        """Keep the selected completion and close the menu; a folder opens its own."""
        state = self.complete_state
        chosen = state.current_completion if state else None
        self.complete_state = None
        if chosen is not None and chosen.text.endswith("/"):
            self.start_completion()

    def take_only(self) -> bool:
        """Keep the only file that fits where its name is not written out yet; return whether that was done."""
        state = self.complete_state
        if state is None or len(state.completions) != 1 or self.text.startswith("/"):
            return False
        only = state.completions[0]
        if self.document.text_before_cursor.endswith(only.text.rstrip()):
            return False
        self.go_to_completion(0)
        self.accept()
        return True

    def leave_menu(self) -> None:
        """Close the menu and go up."""
        self.cancel_completion()
        self.auto_up()
