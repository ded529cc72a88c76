"""What a door gets back for a line of input: the reply of a command, or the outcome of a turn."""

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from ybs.core.errors import YbsError
from ybs.core.events import Event, TurnFinished
from ybs.session.figures import in_columns

if TYPE_CHECKING:
    from ybs.session.session import Session


class MenuItem(Struct, frozen=True, kw_only=True):
    """One thing to choose: `line` is what choosing it sends, as if it were typed."""

    line: str
    label: str
    detail: str = ""
    is_current: bool = False


class Menu(Struct, frozen=True, kw_only=True):
    """A choice that a door offers in its own way; `Reply.text` lists the same for a door that cannot.

    `is_numbered`: the command's name and a number take an item.
    """

    title: str
    items: tuple[MenuItem, ...]
    is_numbered: bool = True

    def rows(self) -> list[str]:
        """Write the items down, numbered, the one in use marked."""
        width = len(str(len(self.items)))
        return in_columns(
            [
                (f"{'*' if item.is_current else ' '} {number:>{width}}", item.label, item.detail)
                for number, item in enumerate(self.items, 1)
            ]
        )


class Reply(Struct, frozen=True, kw_only=True):
    """What a command answers: plain lines for the person.

    `menu` is offered instead of the text where a door can; `diff` is a unified diff to be shown below the text;
    `draft` goes into the prompt, `clipboard` is copied. `events` were told before and are drawn again before the text.
    """

    text: str
    is_error: bool = False
    wants_quit: bool = False
    menu: Menu | None = None
    diff: str = ""
    draft: str = ""
    clipboard: str = ""
    events: tuple[Event, ...] = ()


class Outcome(Struct, frozen=True, kw_only=True):
    """How a turn went: the model's last words, how it ended, and how many calls were not allowed.

    `unsent` are words with a secret in them that the person did not let go; the conversation is without them.
    """

    finished: TurnFinished
    text: str
    refusals: int = 0
    unsent: str = ""

    def check(self) -> "Outcome":
        """Return this outcome if the turn came to its end. Raises YbsError, saying why, if it did not."""
        if self.finished.reason != "done":
            why = self.finished.message or f"The turn was {self.finished.reason}."
            raise YbsError(why, remedies=self.finished.remedies)
        return self


class Commands(Protocol):
    """The slash commands of a session, handed in by whoever opens it."""

    def is_command(self, line: str) -> bool:
        """Return whether the line is a command."""
        ...

    async def run(self, session: "Session", line: str) -> Reply:
        """Run a command line."""
        ...

    def resumed(self, session: "Session") -> Reply | None:
        """Return what a frontend says and draws first of a session that goes on."""
        ...
