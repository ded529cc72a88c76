"""Completion in the prompt: `/command` at its beginning, `@path` in the words, paths on Tab behind `!`."""

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions, is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Window
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenuControl
from prompt_toolkit.utils import get_cwidth

from ybs.frontends.terminal.prompt.file_index import FileIndex
from ybs.frontends.terminal.session import TerminalSession
from ybs.security.paths.names import shown_name
from ybs.security.unicode import printable
from ybs.session.mentions import mention_of, open_mention

if TYPE_CHECKING:
    from ybs.commands.command import SlashCommand
    from ybs.tools.workspace import Workspace

MOST_ROWS = 8
#: Screens of fewer rows do not say how many more are offered.
LOW = 14
MOST_PATHS = 20
#: How long the menu waits for the first look at the disk; then it shows what was seen so far.
FIRST_SECONDS = 0.4
#: Narrower terminals get the names of commands without their arguments.
WIDE = 72
#: Columns that a row has besides the path.
_EDGE = 3
#: So many characters before the cursor are looked at.
_MOST_LINE = 500
#: A path at the beginning is not a command.
_COMMAND = re.compile(r"/[^\s/]*(?:\s|$)")
STYLE = {
    "completion-menu": "bg:default fg:default",
    "completion-menu.completion": "bg:default fg:default",
    "completion-menu.completion.current": "bg:default fg:default reverse",
    "completion-menu.meta.completion": "bg:default fg:default dim",
    "completion-menu.meta.completion.current": "bg:default fg:default dim",
}


class YbsCompleter(Completer):
    """Offers commands and paths. It never waits for the disk but for the very first look."""

    def __init__(self, session: TerminalSession, expand: Callable[[str], str] = str) -> None:
        """`expand` puts what was pasted in its place."""
        self._session, self._expand = session, expand
        self._index: tuple[Workspace, FileIndex] | None = None

    @property
    def index(self) -> FileIndex:
        """The files of the session's folders; a new session has an index of its own."""
        workspace = self._session.environment.workspace
        if self._index is None or self._index[0] is not workspace:
            self._index = (workspace, FileIndex(workspace.roots, workspace.reads.recent))
        return self._index[1]

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the completions for the text before the cursor."""
        is_shell = _is_shell(document)
        line = document.current_line_before_cursor[-_MOST_LINE:]
        if complete_event.completion_requested if is_shell else open_mention(line):
            self.index.refresh()
            if not self.index.find("", 1):
                await self.index.settle(FIRST_SECONDS)
        for completion in self.get_completions(document, complete_event):
            yield completion

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield the completions for the text before the cursor, from the current index."""
        if _is_shell(document):
            is_wanted = complete_event.completion_requested
            return self._shell_paths(document.text_before_cursor) if is_wanted else ()
        line = document.current_line_before_cursor[-_MOST_LINE:]
        if _COMMAND.match(document.text_before_cursor) and document.cursor_position_row == 0:
            return self._commands(line)
        return self._mentions(line)

    def _mentions(self, line: str) -> Iterator[Completion]:
        if (found := open_mention(line)) is None:
            return
        query, length = found
        for path in self.index.find(query, MOST_PATHS):
            is_folder = path.endswith("/")
            if not (mention := mention_of(shown_name(path))):
                continue
            if is_folder:
                mention = mention.removesuffix('"')  # it goes on in there
            yield Completion(
                mention + ("" if is_folder else " "), -length, display=_path_row(path, _room())
            )

    def _shell_paths(self, text: str) -> Iterator[Completion]:
        from ybs.commands.filling import name_in_line  # few complete in a shell line

        word = re.split(r"[\s=|&;<>(!]", text)[-1]
        before = self._expand(text[: len(text) - len(word)])
        for path in self.index.find(word.strip("'\""), MOST_PATHS):
            if path.isprintable() and (name := name_in_line(path, before)):
                yield Completion(name, -len(word), display=_path_row(path, _room()))

    def _commands(self, line: str) -> Iterator[Completion]:
        session: Any = self._session
        listed = session.commands.listed(session) if session.commands else ()
        name, space, argument = line[1:].partition(" ")
        if not space:
            return _names(name.lower(), line, listed)
        command = _called(name.lower(), listed)
        choices = command.choices(session) if command and command.choices else ()
        return _arguments(argument, choices)


def _is_shell(document: Document) -> bool:
    return document.text_before_cursor.lstrip().startswith("!")  # as the draft is sent


def _names(typed: str, line: str, commands: "Iterable[SlashCommand]") -> Iterator[Completion]:
    ranked: list[tuple[int, str, SlashCommand]] = []
    for command in commands:
        ranks = [_rank(typed, name) + (place > 0) for place, name in enumerate(command.names)]
        best = min(ranks)
        if best < _NO_FIT:
            ranked.append((best, command.names[ranks.index(best)], command))
    for _, name, command in sorted(ranked, key=lambda one: one[0]):
        row: StyleAndTextTuples = [("", f"/{name}")]
        if command.arguments and get_app().output.get_size().columns >= WIDE:
            row.append(("dim", f" {command.arguments}"))
        text = f"/{name} " if command.arguments else f"/{name}"
        yield Completion(text, -len(line), display=row, display_meta=command.summary)


def _called(typed: str, commands: "Sequence[SlashCommand]") -> "SlashCommand | None":
    """Return the command of this name, or the only one with a name that begins so."""
    begun = [each for each in commands if any(name.startswith(typed) for name in each.names)]
    exact = [each for each in begun if typed in each.names]
    return exact[0] if exact else begun[0] if len(begun) == 1 else None


_NO_FIT = 10


def _rank(typed: str, name: str) -> int:
    """Return 0 for a name that begins so, more for one that holds it."""
    if name.startswith(typed):
        return 0
    return 2 if len(typed) > 1 and typed in name else _NO_FIT


def _arguments(typed: str, choices: Iterable[str]) -> Iterator[Completion]:
    wanted = typed.lower()
    fitting = [choice for choice in choices if wanted in choice.lower() and choice != typed]
    for choice in sorted(fitting, key=lambda choice: not choice.lower().startswith(wanted)):
        if choice.isprintable():
            yield Completion(choice, -len(typed))


def _path_row(path: str, room: int) -> StyleAndTextTuples:
    """Draw a path: the folders dim, what is too long for the row cut at its beginning."""
    shown = printable(shown_name(path)).expandtabs(1)
    cut = _cut(shown, room)
    base = cut.rfind("/", 0, len(cut.rstrip("/"))) + 1
    row: StyleAndTextTuples = [("dim", cut[:base]), ("", cut[base:])]
    return row[not base :]


def _cut(text: str, room: int) -> str:
    if get_cwidth(text) <= room:
        return text
    end = text[-room:]
    while get_cwidth(end) > room - 3:
        end = end[1:]
    return f"...{end}"


def _room() -> int:
    return max(8, get_app().output.get_size().columns - _EDGE)


def menu(more: str) -> ConditionalContainer:
    """Return the rows of the menu, there while there is something to choose; `more` says that some are not seen."""
    window = Window(
        CompletionsMenuControl(),
        height=Dimension(min=1, max=MOST_ROWS),
        dont_extend_height=True,
        style="class:completion-menu",
    )
    rest = ConditionalContainer(
        Window(FormattedTextControl(lambda: f" {more} {_hidden()} more"), height=1, style="dim"),
        Condition(lambda: _hidden() > 0),
    )
    return ConditionalContainer(HSplit([window, rest]), has_completions & ~is_done)


def _hidden() -> int:
    """Count what is offered and has no row; a low screen needs its rows for the rest."""
    app = get_app()
    state = app.current_buffer.complete_state
    is_low = app.output.get_size().rows < LOW
    return 0 if state is None or is_low else len(state.completions) - MOST_ROWS
