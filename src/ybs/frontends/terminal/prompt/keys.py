"""The keys: what each one does, and what they act on."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from prompt_toolkit.filters import (
    Always,
    Condition,
    Filter,
    emacs_mode,
    has_focus,
    has_selection,
    is_searching,
    vi_insert_mode,
    vi_navigation_mode,
)
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.search import start_reverse_incremental_search
from prompt_toolkit.keys import Keys
from prompt_toolkit.search import stop_search

from ybs.frontends.layout import in_columns
from ybs.frontends.terminal.desk import BottomWindow, Desk
from ybs.frontends.terminal.prompt.draft import PromptDraft
from ybs.frontends.terminal.prompt.extended_keys import pending_bytes
from ybs.frontends.terminal.prompt.paste import clean
from ybs.frontends.terminal.work import MENUS

Act: TypeAlias = Callable[[KeyPressEvent], None]
ALWAYS = Always()
#: The keys that are in force, as `?` and /help list them.
KEYS = (
    ("Enter", "send; while ybs works: before its next step"),
    ("Tab", "complete; while ybs works: send at the end"),
    ("Shift-Enter, Ctrl-J, \\ Enter", "new line (Alt-Enter too)"),
    ("Up, Down", "earlier prompts; Up takes back a waiting one"),
    ("Ctrl-R", "search earlier prompts"),
    ("Esc", "interrupt, also at a question"),
    ("Esc Esc", "clear the prompt, or go back if it is empty"),
    ("Shift-Tab", "next mode: ask, accept-edits, plan, auto"),
    ("Ctrl-C", "interrupt, or clear the prompt; twice: leave"),
    ("Ctrl-D", "leave ybs, if the prompt is empty"),
    ("Ctrl-G, Ctrl-X Ctrl-E", "edit the prompt in $VISUAL or $EDITOR"),
    ("Ctrl-V", "attach an image from the clipboard"),
    ("Ctrl-S", "put the prompt aside, or bring it back"),
    ("Ctrl-L", "redraw the screen"),
    ("Ctrl-O", "show the last output or thought in full"),
    ("Ctrl-B", "move the running command to the background"),
    ("Ctrl-T", "list the background jobs; how to stop one"),
    ("Ctrl-Z", "suspend ybs"),
)
EMACS_KEYS = (
    ("Ctrl-A, Ctrl-E", "go to the beginning, to the end of the line"),
    ("Ctrl-W, Ctrl-U, Ctrl-K", "cut a word, to the beginning, to the end"),
    ("Ctrl-Y, Ctrl-_", "paste what was cut; undo"),
)
VI_KEYS = (
    ("Esc", "leave insert mode; again: as above"),
    ("/, u", "in normal mode: search earlier prompts, undo"),
)


class PromptState:
    """What is true of the prompt when a key comes."""

    def __init__(self, desk: Desk, window: BottomWindow) -> None:
        draft = window.draft
        self.asking, self.explaining = (
            Condition(lambda: desk.asking.is_choosing),
            Condition(lambda: desk.asking.is_explaining),
        )
        self.picking = Condition(lambda: desk.picking.is_open)
        self.coming = Condition(lambda: desk.picking.is_coming)
        self.held = Condition(lambda: desk.picking.has_held)
        self.free = ~self.asking & ~self.explaining & ~self.picking
        self.typing = self.free & has_focus(draft)
        self.empty = Condition(lambda: not draft.text)
        self.busy = Condition(lambda: desk.work.is_busy)
        self.waiting = Condition(desk.is_waiting)
        self.menu = Condition(lambda: draft.complete_state is not None)
        self.chosen = Condition(draft.has_chosen)
        #: Where letters are typed, and where Esc has nothing to do for the editor itself.
        self.inserting, self.resting = emacs_mode | vi_insert_mode, emacs_mode | vi_navigation_mode


def bindings(desk: Desk, window: BottomWindow) -> KeyBindings:
    """Make the key bindings; what is not here is what prompt_toolkit's Emacs or vi keys do."""
    keys, draft, place = KeyBindings(), window.draft, PromptState(desk, window)

    def on(*names: str, do: Act, when: Filter = ALWAYS, is_eager: bool = False) -> None:
        keys.add(*names, filter=when, eager=is_eager)(do)

    _bind_lines(on, desk, draft, place)
    idle = place.typing & ~place.busy & place.resting
    here = Condition(lambda: not window.is_away)
    on("c-c", do=lambda _: desk.interrupt(), when=~is_searching)
    on("<sigint>", do=lambda _: desk.interrupt(), when=here)
    on("c-d", do=lambda _: desk.leave(), when=place.typing & place.empty)
    on("escape", do=lambda _: desk.escape(), when=idle)
    on("escape", do=lambda _: desk.stop(), when=place.explaining, is_eager=True)
    on("escape", do=lambda _: desk.stop(), when=place.typing & place.busy & place.resting)
    on("s-tab", do=lambda _: desk.next_mode())
    on("c-g", do=lambda _: window.edit(), when=place.typing & ~has_selection)
    on("c-x", "c-e", do=lambda _: window.edit(), when=place.typing & emacs_mode)
    on("c-v", do=lambda _: window.paste_image(), when=place.typing & place.inserting)
    on("c-l", do=lambda _: window.app.clear())
    on("c-o", do=lambda _: desk.unfold())
    on(
        "c-b",
        do=lambda _: desk.work.submit("/background"),
        when=place.typing & place.empty & place.busy,
    )
    on("c-t", do=lambda _: desk.work.submit("/jobs"), when=place.free)
    on("c-z", do=lambda _: window.suspend(), is_eager=True)
    on("?", do=lambda _: desk.show_keys(), when=place.typing & place.empty & place.inserting)
    _bind_menu(on, desk, draft, place)  # the last that fits is taken
    for name in ("up", "down", "pageup", "pagedown"):
        on(name, do=desk.picking.hold_key, when=place.typing & place.coming)
    on(Keys.Any, do=desk.picking.hold_key, when=place.typing & place.held, is_eager=True)
    on(Keys.Any, do=desk.asking.take_key, when=place.asking, is_eager=True)
    on(Keys.Any, do=desk.picking.take_key, when=place.picking, is_eager=True)
    return keys


class On(Protocol):
    """Binds keys to an act."""

    def __call__(self, *names: str, do: Act, when: Filter = ALWAYS, is_eager: bool = False) -> None:
        """Bind."""
        ...


def _bind_lines(on: On, desk: Desk, draft: PromptDraft, place: PromptState) -> None:
    reason = place.explaining
    on("enter", do=lambda event: _enter(event, desk, draft), when=place.typing)
    on("enter", do=lambda event: desk.asking.explain(event.current_buffer.text), when=reason)
    on("escape", "enter", do=lambda _: draft.insert_text("\n"), when=place.typing & emacs_mode)
    on("c-j", do=lambda _: draft.insert_text("\n"), when=place.typing)
    on("tab", do=lambda _: _queue(desk, draft), when=place.typing & ~place.empty & place.busy)
    on("up", do=lambda _: desk.recall(), when=place.typing & place.empty & place.waiting)
    on("c-s", do=lambda _: draft.put_aside(), when=place.typing)
    on("c-r", do=lambda event: _search(event, draft), when=place.typing & place.inserting)
    on("c-c", do=lambda _: _stop_search(draft), when=is_searching)
    on("c-g", do=lambda _: _stop_search(draft), when=is_searching)
    on(Keys.BracketedPaste, do=lambda event: draft.paste(event.data), when=place.typing)
    on(Keys.BracketedPaste, do=_paste_line, when=reason)


def _bind_menu(on: On, desk: Desk, draft: PromptDraft, place: PromptState) -> None:
    """Bind the keys of the completions."""
    shown = place.typing & place.menu
    on("tab", do=lambda _: draft.select(), when=place.typing & (place.menu | ~place.busy))
    on("s-tab", do=lambda _: draft.complete_previous(), when=shown & place.chosen)
    on("escape", do=lambda _: _close(desk, draft), when=shown)
    on("enter", do=lambda _: _accept(desk, draft), when=shown & place.chosen)
    on("up", do=lambda _: draft.leave_menu(), when=shown & ~place.chosen)


def _enter(event: KeyPressEvent, desk: Desk, draft: PromptDraft) -> None:
    """Send the draft; a new line after a backslash, and in the middle of pasted text."""
    has_more = event.key_processor.input_queue or pending_bytes(event.app.input)
    if has_more and _whole(draft.text.strip()) not in MENUS:
        draft.insert_text("\n")  # more came in the same burst: this is a paste, not a key
    elif draft.document.current_line_before_cursor.endswith("\\"):
        draft.delete_before_cursor()
        draft.insert_text("\n")
    elif not draft.take_only() and (text := draft.take()):
        desk.work.submit(_whole(text))


def _whole(line: str) -> str:
    """Return the command that is offered first for the beginning of its name; any other line as it is."""
    if not line.startswith("/"):
        return line
    from ybs.commands.registry import first_offer  # most lines are words

    return first_offer(line)


def _close(desk: Desk, draft: PromptDraft) -> None:
    """Close the menu; a second Esc empties the prompt."""
    draft.cancel_completion()
    desk.escape()


def _paste_line(event: KeyPressEvent) -> None:
    """Paste where one line is typed."""
    event.current_buffer.insert_text(" ".join(clean(event.data)[0].split("\n")).strip())


def _search(event: KeyPressEvent, draft: PromptDraft) -> None:
    """Search what was sent before."""
    draft.note_place()
    start_reverse_incremental_search.call(event)


def _stop_search(draft: PromptDraft) -> None:
    """Leave the search with the prompt as it was before."""
    stop_search()
    draft.go_back()


def _accept(desk: Desk, draft: PromptDraft) -> None:
    """Keep what is chosen in the menu; a command is sent with it."""
    draft.accept()
    if draft.text.startswith("/"):
        desk.work.submit(draft.take())


def _queue(desk: Desk, draft: PromptDraft) -> None:
    """Have the draft sent when the running turn has ended."""
    if text := draft.take():
        desk.work.queue(text)


def keys_text(*, is_vi: bool = False) -> str:
    """List the keys, below a title."""
    keys = (*KEYS, *(VI_KEYS if is_vi else EMACS_KEYS))
    return "\n".join(["Keys", *in_columns([("", *row) for row in keys])])
