"""`!!command`: a command in the person's own shell, seen by them alone, and what they hand on of it to the model."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.environment import ToolEnvironment
from ybs.core.errors import YbsError
from ybs.core.messages import UserMessage
from ybs.session.injection import injection, spoken
from ybs.session.reply import Reply, needs_terminal
from ybs.session.running_task import RunningTask, Stopped

USAGE = (
    "Usage: !!COMMAND   run COMMAND in your own shell, outside the sandbox; only you see its output"
)
NO_TERMINAL = needs_terminal(
    "!!", "It runs a command in your own shell; !COMMAND runs it in the sandbox. Nothing was run."
)
NOTHING = "There is nothing to share: no command was run with !! yet."


class OwnRun(Struct, frozen=True, kw_only=True):
    """A command of the person's own shell, how it ended (negative: by that signal), and what it wrote, cleaned of controls."""

    command: str = ""
    exit_code: int
    output: str

    @property
    def ending(self) -> str:
        """Return how it ended."""
        return f"exit code {self.exit_code}" if self.exit_code >= 0 else f"signal {-self.exit_code}"


#: Runs a command in the person's shell in a folder, on a terminal that a frontend has. Raises OSError.
RunOwn: TypeAlias = Callable[[str, Path], Awaitable[OwnRun]]


class OwnCommands:
    """The person's own commands in a session, and the last one of them, in memory alone.

    Only lines that were typed come here: no text of a model, a tool or a file is ever such a line.
    """

    def __init__(self, environment: Callable[[], ToolEnvironment], running: RunningTask) -> None:
        self._environment, self._running = environment, running
        self._runner: RunOwn | None = None
        self._last: OwnRun | None = None

    def run_by(self, runner: RunOwn | None) -> None:
        """Have a frontend that has a terminal run them; as long as there is none, none is run."""
        self._runner = runner

    @property
    def last(self) -> OwnRun | None:
        """The last command and how it ended."""
        return self._last

    def note(self, ran: OwnRun) -> None:
        """Note the last command and how it ended; a frontend elsewhere that ran one hands it over."""
        self._last = ran

    async def run(self, command: str) -> Reply:
        """Run a command; the model is told nothing. Raises YbsError while a turn is running."""
        if not command or self._runner is None:
            return Reply.error(NO_TERMINAL if command else USAGE)
        environment, runner = self._environment(), self._runner

        async def run() -> OwnRun:
            return await runner(command, environment.folder)

        try:
            ran = await self._running.working(run(), "A command is still running.")
        except Stopped:
            return Reply.error("interrupted")
        except OSError as error:
            why = error.strerror or str(error)
            return Reply.error(f"The command could not be started: {why}")
        self.note(replace(ran, command=command))
        text = f"{ran.ending}; the model does not see this"
        return Reply(text=text, is_error=ran.exit_code != 0)

    def shared(self, words: str = "") -> UserMessage:
        """Return the last command and its output as the person's message, without secrets. Raises YbsError."""
        if (ran := self._last) is None:
            raise YbsError(NOTHING)
        environment = self._environment()
        result = {"exit_code": ran.exit_code, "timed_out": False, "stdout": ran.output}
        text = injection(ran.command, spoken(result, environment.workspace.max_output_chars))
        text = environment.mask(text, f"the output of !!{ran.command}")
        return UserMessage.of(f"{text}\n\n{words}".rstrip(), origin="shell")
