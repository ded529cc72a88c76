"""A menu in the place of the prompt: arrows move, letters filter, Enter chooses, Esc closes."""

from collections.abc import Callable, Iterator

from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from ybs.commands.figures import number_in
from ybs.frontends.terminal.desk import Desk
from ybs.frontends.terminal.questions.confirm import Silence, kept_words
from ybs.frontends.terminal.signs import Paint, Signs
from ybs.frontends.terminal.words import cells, one_line, shorten, wrap_words
from ybs.session.reply import Menu, MenuItem

#: Items that are seen at once, where the screen has the room.
MAX_ROWS = 10
#: Lines of the screen that are not for items or the title: help, the blank lines, rule and status line.
OTHER_ROWS = 5
#: A longer title is cut.
MAX_TITLE_ROWS = 4
#: A detail is left out where it would have fewer columns than this.
MIN_DETAIL = 8
#: A label is never shortened to fewer columns than this for the sake of its detail.
MIN_LABEL = 36
QUESTION_HELP = ("arrows and Enter, or a number; Esc closes", "a number; Esc closes", "")
HELP = ("type to filter, Enter chooses, Esc closes", "Enter chooses, Esc closes", "")


class Picker:
    """One menu on the screen: what was typed, and where the mark stands."""

    def __init__(self, menu: Menu) -> None:
        self.menu = menu
        self.query = ""
        #: Whether keys have come for this menu: an Enter behind them is for it too.
        self.is_touched = False
        self.items = list(menu.items)
        #: Where the mark stands. Of the answers to a question none has it before an arrow came, nor behind words that are no answer.
        self.place: int | None = None
        if not self.is_question:
            self.place = next((n for n, item in enumerate(self.items) if item.is_current), 0)
        self._top = 0
        self._rows = MAX_ROWS

    @property
    def is_question(self) -> bool:
        """Whether it asks for one of a few answers: nothing is filtered, and a digit answers."""
        return not self.menu.is_numbered

    def answer(self, key: str) -> MenuItem | None:
        """Return the answer with this number or letter."""
        letters = [item.label[:1].casefold() for item in self.items]
        if (number := number_in(key)) and 1 <= number <= len(self.items):
            return self.items[number - 1]
        is_one = letters.count(key.casefold()) == 1
        return self.items[letters.index(key.casefold())] if is_one else None

    @property
    def chosen(self) -> MenuItem | None:
        """The item that the mark is on."""
        return self.items[self.place] if self.items and self.place is not None else None

    def move(self, by: int) -> None:
        """Move the mark; it stays at the ends, and begins at one of them."""
        last = len(self.items) - 1
        start = self.place if self.place is not None else (-1 if by > 0 else last + 1)
        self.place = max(0, min(last, start + by))

    def filter(self, query: str) -> None:
        """Keep the items that hold the words, then those that hold their letters in this order."""
        self.query = query
        wanted = query.casefold().split()
        near = [(_nearness(item, wanted), item) for item in self.menu.items]
        self.items = [item for rank in (0, 1) for nearness, item in near if nearness == rank]
        if (named := self._named(query)) is not None:
            self.items = [named, *(item for item in self.items if item is not named)]
        self.place = self._top = 0

    def names(self, text: str) -> bool:
        """Return whether a text is the number of an item, or the beginning of its label or of one of its words."""
        wanted = text.strip().casefold()
        if not wanted or "\n" in wanted:
            return False
        labels = (item.label.casefold() for item in self.menu.items)
        return self._named(text) is not None or any(
            label.startswith(wanted) or f" {wanted}" in label for label in labels
        )

    def _named(self, query: str) -> MenuItem | None:
        """Return the item with this number, where the menu has numbers."""
        number = number_in(query.strip())
        is_one = self.menu.is_numbered and 1 <= number <= len(self.menu.items)
        return self.menu.items[number - 1] if is_one else None

    def press(self, key: Keys | str, text: str) -> None:
        """Take a key that moves the mark or changes the filter."""
        self.is_touched = True
        if key in _STEPS:
            self.move(_STEPS[key])
        elif self.is_question:
            return
        elif key in (Keys.PageUp, Keys.PageDown):
            self.move(self._rows if key is Keys.PageDown else -self._rows)
        elif key in (Keys.Backspace, Keys.ControlH):
            self.filter(self.query[:-1])
        elif key is Keys.ControlU:
            self.filter("")
        elif key is Keys.BracketedPaste:
            self.filter(self.query + one_line(text))
        elif len(text) == 1 and text.isprintable():
            self.filter(self.query + text)

    def lines(self, width: int, height: int, paint: Paint, signs: Signs) -> list[str]:
        """Draw the menu in at most `height` lines, as far as that is possible."""
        lines = self._title(width, min(MAX_TITLE_ROWS, max(1, height // 3)), paint, signs)
        self._rows = max(1, min(MAX_ROWS, height - OTHER_ROWS - len(lines)))
        place = self.place or 0
        self._top = min(max(self._top, place - self._rows + 1), place)
        shown = self.items[self._top : self._top + self._rows]
        lines += self._rows_of(shown, width, paint, signs)
        if not shown:
            lines.append(
                paint.dim(
                    shorten("  no match; Backspace deletes the last letter", width, signs.more)
                )
            )
        lines.append(paint.dim(shorten(f"  {self._foot(len(shown), width)}", width, signs.more)))
        return lines

    def _title(self, width: int, most: int, paint: Paint, signs: Signs) -> list[str]:
        title = wrap_words(one_line(self.menu.title).rstrip(":"), width)
        title = [*title[: most - 1], shorten(" ".join(title[most - 1 :]), width, signs.more)]
        *lines, last = [line.rstrip() for line in title if line] or [""]
        if self.query:
            typed = self.query[-max(1, width // 2) :]
            room = width - cells(typed) - 2
            end = f"{paint.bold(shorten(last, room, signs.more))}: {paint.accent(typed)}"
        else:
            end = paint.bold(last)
        return [*map(paint.bold, lines), end]

    def _rows_of(
        self, shown: list[MenuItem], width: int, paint: Paint, signs: Signs
    ) -> Iterator[str]:
        labels = [self._number_of(item) + one_line(item.label) for item in shown]
        details = max((cells(one_line(item.detail)) for item in shown), default=0)
        for_labels = max(MIN_LABEL, width // 2, width - 6 - details)
        widest = min(max(map(cells, labels), default=0), width - 4, for_labels)
        for item, label in zip(shown, labels, strict=True):
            is_chosen = item is self.chosen
            marks = f"{signs.prompt if is_chosen else ' '} {signs.done if item.is_current else ' '}"
            room = width - 6 - widest
            detail = one_line(item.detail) if room >= MIN_DETAIL else ""
            label = shorten(label, widest if detail else width - 4, signs.more)
            gap = " " * (widest - cells(label) + 2) if detail else ""
            text = f"{marks} {label}"
            end = paint.dim(gap + shorten(detail, room, signs.more)) if detail else ""
            yield (paint.bold(paint.accent(text)) if is_chosen else text) + end

    def _number_of(self, item: MenuItem) -> str:
        """Return the label before an item: the number that chooses it."""
        number = next(n for n, each in enumerate(self.menu.items, 1) if each is item)
        if self.is_question:
            return f"[{number}] "
        return f"{number:>{len(str(len(self.menu.items)))}} "

    def _foot(self, shown: int, width: int) -> str:
        count = len(self.items)
        where = f"{self._top + 1}-{self._top + shown} of {count}. " if count > shown > 0 else ""
        helps = QUESTION_HELP if self.is_question else HELP
        return next(where + text for text in helps if cells(where + text) <= width - 2 or not text)


def _nearness(item: MenuItem, wanted: list[str]) -> int:
    """Return 0 for an item that holds all words, 1 where its label has their letters in order, else 2."""
    label, detail = item.label.casefold(), item.detail.casefold()
    if all(word in label or word in detail for word in wanted):
        return 0
    letters = iter(label)
    return 1 if all(letter in letters for letter in "".join(wanted)) else 2


_STEPS: dict[Keys | str, int] = {
    Keys.Up: -1,
    Keys.ControlP: -1,
    Keys.BackTab: -1,
    Keys.Down: 1,
    Keys.ControlN: 1,
    Keys.Tab: 1,
    Keys.Home: -1_000_000,
    Keys.End: 1_000_000,
}


class Picking:
    """Shows one menu at a time; a question comes first. `clock` counts seconds."""

    def __init__(self, front: Desk, clock: Callable[[], float]) -> None:
        self._front, self._clock = front, clock
        self._picker: Picker | None = None
        self._silence = Silence(clock)
        self._was_typing = False
        self._held: list[KeyPress] = []

    @property
    def is_coming(self) -> bool:
        """Whether a command is at work that opens a menu, and an arrow that comes now is for that."""
        return self._front.work.is_opening_menu and not self._front.window.draft.text

    @property
    def has_held(self) -> bool:
        """Whether keys wait for it: what comes behind them waits too."""
        return bool(self._held)

    def hold_key(self, event: KeyPressEvent) -> None:
        """Keep a key for the menu that comes; Esc is for the command that opens it."""
        press = event.key_sequence[0]
        if press.key in (Keys.Escape, Keys.ControlC, Keys.SIGINT):
            self._held.clear()
            self._front.stop()
        else:
            self._held.append(press)

    def end_line(self) -> None:
        """Forget keys for a menu that did not come."""
        if not self._front.work.is_busy:
            self._held.clear()

    @property
    def is_open(self) -> bool:
        """Whether a menu stands on the screen."""
        return self._picker is not None and not self._front.asking.is_open

    @property
    def is_holding(self) -> bool:
        """Whether Enter waits whether another key follows it at once."""
        return self._silence.is_holding

    def offer(self, menu: Menu) -> None:
        """Show a menu, or take the item that a line names which was sent before it came."""
        picker, work = Picker(menu), self._front.work
        line = None if picker.is_question else work.take_ahead()
        if line is not None and picker.names(line.text):
            picker.filter(line.text.strip())
            if picker.chosen is not None:
                work.choose(picker.chosen.line)
                return
        if line is not None:
            work.give_ahead(line)
        self.show(menu)

    def show(self, menu: Menu) -> None:
        """Show a menu in place of the prompt; what was typed ahead and names an item is taken as meant for it.

        Who was typing another line there is not choosing yet.
        """
        self._picker = picker = Picker(menu)
        self._silence = Silence(self._clock)
        draft = self._front.window.draft
        if not picker.is_question and picker.names(draft.text):
            picker.filter(draft.text.strip())
            draft.set("")
        self._was_typing = bool(draft.text) or picker.is_question
        if draft.text:
            picker.place = None
        self._press_held(picker)
        self._front.window.app.invalidate()

    def _press_held(self, picker: Picker) -> None:
        """Press the keys that came before the menu did; those behind its Enter are for the prompt again.

        None was meant for a question.
        """
        held, self._held = self._held, []
        if self._front.asking.is_open:
            return
        while held and self._picker is picker and not picker.is_question:
            press = held.pop(0)
            if press.key in (Keys.Enter, Keys.ControlJ):
                self._choose(picker)
            else:
                picker.press(press.key, press.data)
        if held:
            keys = self._front.window.app.key_processor
            keys.feed_multiple(held)
            keys.process_keys()

    def note_drawn(self) -> None:
        """Note what stands on the screen now: the menu, or a question in its place."""
        if self.is_open:
            self._silence.show()
        else:
            self._silence.hide()
            if (
                self._picker is not None
            ):  # what was typed before a question came is not a choice any more
                self._picker.is_touched = False

    def note_hidden(self) -> None:
        """Note that another program had the screen."""
        self._silence.hide()

    def lines(self, width: int, height: int) -> list[str]:
        """Draw the menu."""
        if self._picker is None:
            return []
        canvas, draft = self._front.canvas, self._front.window.draft
        kept = kept_words(draft, width, canvas)
        lines = self._picker.lines(width, height - len(kept), canvas.paint, canvas.signs)
        return [*lines, *kept]

    def take_key(self, event: KeyPressEvent) -> None:
        """Take a key while a menu is shown: close it, with the line of the item on Enter, or let it have the key."""
        press, picker = event.key_sequence[0], self._picker
        if picker is None:
            return
        is_last = not event.key_processor.input_queue
        self._silence.let_go()
        if press.key in (Keys.Escape, Keys.ControlC, Keys.SIGINT):
            self._picker = None
        elif self._was_typing and self._silence.is_too_early():
            self._write(picker, press.data)
        elif press.key is Keys.BracketedPaste and picker.is_question:
            picker.place = None
            self._front.window.draft.paste(press.data)
        elif press.key not in (Keys.Enter, Keys.ControlJ):
            self._press(picker, press, is_last=is_last)
        elif picker.place is None:
            self._say_keys(picker)
        elif is_last and (picker.is_touched or not self._silence.is_too_early()):
            self._silence.hold(lambda: self._choose(picker))

    def _press(self, picker: Picker, press: KeyPress, *, is_last: bool) -> None:
        """Give the menu a key; a digit or letter that comes alone answers a question, another says what is expected.

        Behind words that stand in the prompt it is one more of them, until an arrow marks an item.
        """
        is_text = press.data.isprintable() and press.key not in _STEPS
        is_behind_words = picker.place is None and self._front.window.draft.text != ""
        if is_text and (is_behind_words or (picker.is_question and not is_last)):
            self._write(picker, press.data)
        elif not (is_text and picker.is_question):
            picker.press(press.key, press.data)
        elif item := picker.answer(press.data):
            self._silence.hold(lambda: self._choose(picker, item))
        else:
            picker.place = None
            self._say_keys(picker)

    def _write(self, picker: Picker, text: str) -> None:
        """Let what is no answer go on in the prompt: an Enter behind it is not one either."""
        if text.isprintable():
            picker.place = None
            self._front.window.draft.insert_text(text, fire_event=False)

    def _say_keys(self, picker: Picker) -> None:
        has_numbers = picker.is_question and not self._front.window.draft.text
        number = f"a number up to {len(picker.items)}, or " if has_numbers else ""
        self._front.hint(f"press {number}the arrows and Enter")

    def _choose(self, picker: Picker, item: MenuItem | None = None) -> None:
        """Send the line of the item, or of the one that is marked, after a key that came alone."""
        item = item or picker.chosen
        if picker is self._picker and item is not None:
            self._picker = None
            self._front.work.choose(item.line)
            self._front.window.app.invalidate()
