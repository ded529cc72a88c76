"""The prompt: what may be typed, which keys mean something, and where everything stands on the screen."""

import os
import re
import shlex
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.application.current import set_app
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.cursor_shapes import ModalCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, vi_navigation_mode
from prompt_toolkit.formatted_text import AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding.key_processor import KeyProcessor
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    ConditionalContainer,
    DynamicContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from ybs.core.errors import YbsError
from ybs.core.time_limits import time_limit
from ybs.frontends.terminal.clipboard import NoImage, save_image
from ybs.frontends.terminal.desk import Desk
from ybs.frontends.terminal.output import begin_line
from ybs.frontends.terminal.prompt.completion import STYLE, YbsCompleter, menu
from ybs.frontends.terminal.prompt.draft import PromptDraft
from ybs.frontends.terminal.prompt.extended_keys import (
    ExtendedKeys,
    read_extended,
    read_typed_ahead,
)
from ybs.frontends.terminal.prompt.history import LineHistory
from ybs.frontends.terminal.prompt.keys import bindings
from ybs.frontends.terminal.prompt.paste import FoldedPastes
from ybs.frontends.terminal.resize import SteadyApplication
from ybs.frontends.terminal.session import TerminalSession

if TYPE_CHECKING:
    from ybs.security.loop_process import LoopProcess


#: Seconds until a lone Esc counts as Esc (and not as the beginning of Alt-something).
ESCAPE_SECONDS = 0.05
#: Within this time the keys that make one together, such as vi's `gg`, have to come. Esc makes none: what Alt sends
#: comes in one piece, and that has been waited for when a lone Esc is known to be one.
TOGETHER_SECONDS = 1.0
MAX_INPUT_ROWS = 10


class Prompt:
    """The lines at the bottom of the screen: passing things, the input, the status."""

    def __init__(
        self,
        desk: Desk,
        put_in: Input,
        put_out: Output,
        *,
        has_colour: bool,
        rule: str,
        history: LineHistory | None = None,
    ) -> None:
        self.draft = PromptDraft(history or LineHistory(), desk.hint)
        self.reason = Buffer(multiline=False)
        #: Whether another program has the terminal.
        self.is_away = False
        self._desk, self._rule = desk, rule
        self._search = SearchToolbar(ignore_case=True, backward_search_prompt="search: ")
        self._draft_window = self._input_window(
            BufferControl(
                self.draft,
                input_processors=[FoldedPastes(self.draft.pastes)],
                search_buffer_control=self._search.control,
                preview_search=True,
            )
        )
        self._reason_window = self._input_window(BufferControl(self.reason))
        self._menu: AnyContainer = Window(height=0)
        self._extended = ExtendedKeys(put_out)
        read_extended(put_in)
        self.app = SteadyApplication(
            layout=Layout(self._rows(), focused_element=self._draft_window),
            key_bindings=bindings(desk, self),
            color_depth=None if has_colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            input=put_in,
            output=put_out,
        )
        self.app.ttimeoutlen = ESCAPE_SECONDS
        self.app.before_render += self._prepare
        self.app.key_processor.after_key_press += self._note_wait

    def use_vi(self) -> None:
        """Edit as vi does; the cursor's shape and a word in the rule tell the mode."""
        self.app.editing_mode = EditingMode.VI
        self.app.cursor = ModalCursorShapeConfig()

    async def run(self) -> int:
        """Take keys until the application ends; return the exit code."""
        with self.app.input.raw_mode(), self._extended:
            begin_line(self.app.output)
            read_typed_ahead(self.app.input)
            # Its own handler of errors prints what it is given, and asks for Enter.
            return await self.app.run_async(set_exception_handler=False)

    def complete(self, session: TerminalSession) -> None:
        """Complete from now on; what that needs is loaded after the first drawing."""
        self.app.style = Style.from_dict(STYLE)
        self._menu = menu(self._desk.canvas.signs.more)
        self.draft.completer = YbsCompleter(session, self.draft.pastes.expand)
        self.draft.complete_while_typing = Condition(lambda: True)
        if self.draft.text:  # who began before gets the menu now
            with set_app(self.app):
                self.draft.start_completion(complete_event=CompleteEvent(text_inserted=True))

    def edit(self) -> None:
        """Open the draft in the person's editor."""
        self.app.create_background_task(self._edit())

    def paste_image(self) -> None:
        """Attach the image that the clipboard holds, as a path in the draft."""
        self.app.create_background_task(self._paste_image())

    async def _paste_image(self) -> None:
        if await self._desk.work.kept("") is None:  # the image has to stand in a file
            self._desk.hint("no images from the clipboard while incognito: they would be saved")
            return
        try:
            path = await save_image()
        except NoImage as error:
            self._desk.hint(str(error))
            return
        before = self.draft.document.char_before_cursor
        self.draft.insert_text(f"{' ' * bool(before.strip())}{path} ", fire_event=False)

    def suspend(self) -> None:
        """Give the terminal back to the shell until it calls ybs to the foreground."""
        self.app.create_background_task(self._suspend())

    async def _suspend(self) -> None:
        async with self.away():
            os.kill(0, signal.SIGTSTP)  # whoever was started by ybs too

    @asynccontextmanager
    async def away(self, *, may_send: bool = True) -> AsyncGenerator[None]:
        """Leave the terminal to another program, with its modes as a shell has them.

        Unread input goes to the prompt; `may_send` tells whether Enter in it sends, or begins a line.
        """
        self.is_away = True
        try:
            with set_app(self.app):  # who asks may have begun before the application
                async with in_terminal():
                    with self._extended.away():
                        yield
                    self._desk.note_hidden()
                    begin_line(self.app.output)
        finally:
            self.is_away = False
            read_typed_ahead(self.app.input, may_send=may_send)

    def focus(self) -> None:
        """Let the keyboard write where the next words belong."""
        window = self._reason_window if self._desk.asking.is_explaining else self._draft_window
        self.app.layout.search_links.clear()  # a search that a question came upon is over
        self.app.layout.focus(window)

    def _rows(self) -> HSplit:
        desk = self._desk
        is_tall = Condition(lambda: self.app.output.get_size().rows >= 8)
        is_free = Condition(lambda: not (desk.asking.is_open or desk.picking.is_open))
        return HSplit(
            [
                Window(
                    _text(lambda: fragments(desk.above())), dont_extend_height=True, wrap_lines=True
                ),
                ConditionalContainer(self._draft_window, is_free),
                ConditionalContainer(
                    Window(_text(lambda: fragments(desk.menu())), dont_extend_height=True),
                    Condition(lambda: desk.picking.is_open),
                ),
                ConditionalContainer(
                    self._reason_window, Condition(lambda: desk.asking.is_explaining)
                ),
                ConditionalContainer(
                    HSplit([self._search, DynamicContainer(lambda: self._menu)]), is_free
                ),
                ConditionalContainer(
                    Window(_text(self._mode), height=1, char=self._rule, style="dim"), is_tall
                ),
                ConditionalContainer(
                    Window(_text(desk.below), height=1, style="dim", dont_extend_height=True),
                    is_tall,
                ),
            ]
        )

    def _input_window(self, control: BufferControl) -> Window:
        def prefix(line: int, wrapped: int) -> AnyFormattedText:
            is_first = line == 0 and wrapped == 0
            return fragments(self._desk.prompt()) if is_first else "  "

        return Window(
            control,
            height=Dimension(min=1, max=MAX_INPUT_ROWS),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=prefix,
        )

    def _mode(self) -> str:
        return f"{self._rule * 2} normal " if vi_navigation_mode() else ""

    def _note_wait(self, keys: KeyProcessor) -> None:
        is_escape = [press.key for press in keys.key_buffer] == [Keys.Escape]
        self.app.timeoutlen = 0.0 if is_escape else TOGETHER_SECONDS

    def _prepare(self, _app: object) -> None:
        if self.draft.lines.forget():
            self.draft.reset(self.draft.document)

    async def _edit(self) -> None:
        if (
            await self._desk.work.kept("") is None
        ):  # an editor needs a file, and leaves others behind
            self._desk.hint("no editor while incognito: it would save your prompt in a file")
            return
        before = self.draft.text
        try:
            command = editor_command()
            async with self.away(may_send=False):  # the edited text has not been shown yet
                text = await edit(self.draft.words, command)
        except NoEditor as error:
            self._desk.hint(str(error))
        else:
            given_back = self.draft.text.removesuffix(before).strip("\n")
            if given_back:  # while the editor had the terminal
                self.draft.set(before)
            self.draft.replace(text)
            if given_back:
                self.draft.set(given_back, keeps=True)


def _text(read: Callable[[], AnyFormattedText]) -> FormattedTextControl:
    return FormattedTextControl(read)


#: Tried in this order where $VISUAL and $EDITOR name none.
USUAL = ("nano", "vim", "vi")
MOST_BYTES = 20_000_000
#: An editor that does not end when it is told to is ended after this time.
GRACE_SECONDS = 1.0


class NoEditor(YbsError):
    """No editor was found, or it failed; the text is as it was."""


def editor_command(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the editor and its arguments. What lies in a project does not count. Raises NoEditor."""
    from ybs.security.launcher import persons_program  # the first Ctrl-G only

    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(environ.get(name, ""))
        except ValueError as error:
            raise NoEditor(f"${name} cannot be read: {error}") from error
        if words and (found := persons_program(words[0], environ=environ)):
            return [found, *words[1:]]
        if words:
            raise NoEditor(f"${name} does not name a program outside of this project: {words[0]}")
    for name in USUAL:
        if found := persons_program(name, environ=environ):
            return [found]
    raise NoEditor("no editor found; set the variable EDITOR")


async def edit(text: str, command: list[str]) -> str:
    """Have the text edited on this terminal and return it; the editor finds no program in a project. Raises NoEditor."""
    from tempfile import TemporaryDirectory

    from ybs.security.launcher import start_in_loop
    from ybs.security.sandbox.launch import Launch

    environ, place = _environ(), _temporary()
    with TemporaryDirectory(prefix="ybs-", dir=place, ignore_cleanup_errors=True) as folder:  # 0700
        file = _write(Path(folder), text)
        try:
            process = await start_in_loop(
                Launch((*command, str(file)), environ),
                folder=folder,
                stdin=None,
                stdout=None,
                stderr=None,
                has_own_group=False,
            )
        except (OSError, ValueError) as error:
            raise NoEditor(f"{command[0]} cannot be started: {error}") from error
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:  # ybs ends
                await _end(process)
        if code:
            raise NoEditor(f"{command[0]} ended with code {code}; nothing was changed")
        return _read(file)


def _temporary() -> str | None:
    """Return where the text is put, None for the usual place: editors obey files of the folders above."""
    from tempfile import gettempdir

    from ybs.config.host import worked_in
    from ybs.security.paths.steps import is_away

    return None if is_away(gettempdir(), worked_in) else "/tmp"  # noqa: S108


def _environ() -> Mapping[str, str]:
    """Return the variables of an editor: no secrets, and nothing that leads into a project."""
    from ybs.security.firewall.vault import without_secrets
    from ybs.security.launcher import environ_away

    return environ_away(without_secrets(os.environ))


async def _end(process: "LoopProcess") -> None:
    process.terminate()
    with suppress(TimeoutError):
        async with time_limit(GRACE_SECONDS):
            await process.wait()
            return
    process.kill()
    await process.wait()


def _write(folder: Path, text: str) -> Path:
    file = folder / "prompt.md"
    file.touch(mode=0o600)
    file.write_text(text, "utf-8", "replace")
    return file


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise NoEditor(f"the edited text cannot be read: {error}") from error
    if len(data) > MOST_BYTES:
        raise NoEditor(f"the edited text is larger than {MOST_BYTES:,} bytes")
    return data.decode("utf-8", "replace").removesuffix("\n")


_ATTRIBUTES = re.compile("\x1b\\[([0-9;]*)m")
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "gray")
_BRIGHT = tuple(f"bright{name}" for name in _NAMES[1:-1])
#: Attributes by their number (ECMA-48, SGR): the kind of attribute that it sets, and to what.
_SETS = {
    1: ("bold", "bold"),
    2: ("dim", "dim"),
    3: ("italic", "italic"),
    4: ("underline", "underline"),
    7: ("reverse", "reverse"),
    9: ("strike", "strike"),
    23: ("italic", ""),
    24: ("underline", ""),
    27: ("reverse", ""),
    29: ("strike", ""),
    39: ("front", ""),
    49: ("ground", ""),
    **{30 + place: ("front", f"ansi{name}") for place, name in enumerate(_NAMES)},
    **{40 + place: ("ground", f"bg:ansi{name}") for place, name in enumerate(_NAMES)},
    **{91 + place: ("front", f"ansi{name}") for place, name in enumerate(_BRIGHT)},
    **{101 + place: ("ground", f"bg:ansi{name}") for place, name in enumerate(_BRIGHT)},
    90: ("front", "ansibrightblack"),
    97: ("front", "ansiwhite"),
    100: ("ground", "bg:ansibrightblack"),
    107: ("ground", "bg:ansiwhite"),
}


def fragments(text: str) -> StyleAndTextTuples:
    """Turn text with attributes into runs of one style."""
    runs: StyleAndTextTuples = []
    style = ""
    for index, part in enumerate(_ATTRIBUTES.split(text)):
        if index % 2:
            style = _changed(style, part)
        elif part:
            runs.append((style, part))
    return runs


@cache
def _changed(style: str, numbers: str) -> str:
    state = {_kind_of(word): word for word in style.split()}
    for number in map(int, (numbers or "0").replace(";;", ";0;").strip(";").split(";")):
        if number == 0:
            state.clear()
        elif number == 22:
            state["bold"] = state["dim"] = ""
        elif number in _SETS:
            kind, word = _SETS[number]
            state[kind] = word
    return " ".join(filter(None, state.values()))


@cache
def _kind_of(word: str) -> str:
    return next(kind for kind, name in _SETS.values() if name == word)
