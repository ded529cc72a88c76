"""The result of a line of input: the reply of a command, or the outcome of a turn."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.envelope import Envelope
from ybs.core.errors import YbsError
from ybs.core.events import Event, TurnFinished
from ybs.core.messages import Usage, UserMessage
from ybs.security.unicode import printable


class MenuItem(Struct, frozen=True):
    """One thing to choose: `line` is what choosing it sends, as if it were typed."""

    line: str
    label: str
    detail: str = ""
    is_current: bool = False


class Menu(Struct, frozen=True):
    """A choice that a frontend offers in its own way, or lists.

    `is_numbered`: the command's name and a number take an item.
    """

    title: str
    items: tuple[MenuItem, ...]
    is_numbered: bool = True


#: What the cells of a column are. `words` may be cut, and stand elsewhere where there is no room; a `note` may be left out there.
#: `share` is a part of 1. `count` is a number as it is, `tokens` one in few characters, `estimate` one that is not exact.
CellKind: TypeAlias = Literal[
    "text", "words", "note", "count", "estimate", "tokens", "usd", "seconds", "share"
]
#: None: nothing is known, or there is nothing to say.
Cell: TypeAlias = str | int | float | None


class Column(Struct, frozen=True, omit_defaults=True):
    """A column of a table. Heads are shown where any column has one."""

    kind: CellKind = "text"
    head: str = ""


class Row(Struct, frozen=True, omit_defaults=True):
    """A row of a table: a cell for each column, or a lone one for what the rows below are about.

    `level`: the row is a part of the last one above it with a lower level.
    """

    cells: tuple[Cell, ...]
    level: int = 0


class Table(Struct, frozen=True):
    """Rows of data, which each frontend lays out."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, rows: "Iterable[Sequence[str]]") -> "Table":
        """Make a table of plain texts."""
        made = tuple(Row(tuple(row)) for row in rows)
        return cls(tuple(Column() for _ in made[0].cells) if made else (), made)


class CommandPrompt(Struct, frozen=True):
    """What a command sends to the model. `make` gives the message, as part of the turn; `words` is what is known of it before."""

    words: str
    make: Callable[[], Awaitable[UserMessage]]


class TerminalActions(Struct, frozen=True, kw_only=True):
    """What a command has a terminal do: run a subcommand of ybs, put a `draft` into the prompt, copy a text, or quit."""

    program: Literal["", "doctor", "setup"] = ""
    draft: str = ""
    clipboard: str = ""
    wants_quit: bool = False


def needs_terminal(line: str, instead: str = "") -> str:
    """Return what every frontend without a terminal says of a line that needs one, and what the person can do `instead`."""
    return " ".join(filter(None, (f"{line.split(maxsplit=1)[0]} needs a terminal.", instead)))


class Reply(Struct, frozen=True, kw_only=True):
    """What a command answers, as data: lines of text, tables below them, and notes below those.

    `menu` is offered instead of all that where a frontend can, and else listed above the notes;
    `is_listed`: it is to be listed in any case. `diff` is a unified diff. `events` were told before and are drawn again before
    the text; those of sub-agents are in envelopes. `terminal` is for a frontend with a terminal; any other one shows
    `without_terminal`.
    `shared` is sent to the model as the person's message, as is what `prompt` makes; with `takes_up` a turn goes on that its process
    did not end. Then the turn's outcome takes the place of the reply.
    """

    text: str = ""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    is_error: bool = False
    menu: Menu | None = None
    is_listed: bool = False
    diff: str = ""
    terminal: TerminalActions = TerminalActions()
    events: tuple[Event | Envelope, ...] = ()
    shared: UserMessage | None = None
    prompt: CommandPrompt | None = None
    takes_up: bool = False

    @classmethod
    def error(cls, text: str) -> "Reply":
        """Return the reply of a command that could not do what was asked, and why."""
        return cls(text=text, is_error=True)

    @property
    def is_for_all(self) -> bool:
        """Whether every frontend of a session may show it: it says something, and asks nothing of the one that it goes to."""
        return bool(self.text or self.tables) and self.terminal == TerminalActions()

    def without_terminal(self, line: str) -> "Reply":
        """Return the reply to a line for a frontend that has no terminal: what needs one is refused in words."""
        actions = self.terminal
        program = f"Run `ybs {actions.program}` in your shell." if actions.program else ""
        if program or actions.clipboard or actions.wants_quit:
            return Reply.error(needs_terminal(line, program))
        if not actions.draft:
            return self
        draft = f"For your next prompt: {printable(actions.draft)}"
        return replace(self, notes=(*self.notes, draft), terminal=TerminalActions())


class Outcome(Struct, frozen=True, kw_only=True):
    """How a turn went: the model's last words, how it ended, and how many calls were not allowed.

    `unsent` are words with a secret in them that the person did not let go; the conversation is without them.
    `json` is the answer where it had to fit a schema and does: JSON, without anything around it.
    `plan` is what was proposed in the mode `plan`, for the person to decide on. `others` is what sub-agents used beside the turn itself.
    """

    finished: TurnFinished
    text: str
    others: Usage = Usage()
    refusals: int = 0
    unsent: str = ""
    plan: str = ""
    json: bytes = b""

    def check(self) -> "Outcome":
        """Return this outcome if the turn came to its end. Raises YbsError, saying why, if it did not."""
        if self.finished.reason != "done":
            why = self.finished.message or f"The turn was {self.finished.reason}."
            raise YbsError(why, remedies=self.finished.remedies)
        return self


class NotSent(YbsError):
    """The person's words were not sent, because something that they name could not be attached."""


class NotAllowed(NotSent):
    """The person's words were not sent, because a command that belongs to them was refused and nobody was there to be asked."""


class Commands(Protocol):
    """The slash commands of a session, handed in by whoever opens it. `session` is the `ybs.Session` that they act on."""

    @property
    def pointed_to(self) -> Sequence[str]:
        """Those that a model may well point to."""
        ...

    def listed(self, session: Any) -> Sequence[Any]:
        """Return all of them, as `ybs.commands.command.SlashCommand` has them, so that a frontend can offer them."""
        ...

    def runs_beside(self, session: Any, line: str) -> bool:
        """Return whether the line is a command that need not wait for the end of a running turn."""
        ...

    async def run(self, session: Any, line: str) -> Reply:
        """Run a command line."""
        ...

    def resumed(self, session: Any) -> Reply | None:
        """Return what a frontend says and draws first of a session that goes on."""
        ...
