"""run_shell: a shell command in the project, with a time limit."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.policy import Subject
from ybs.tools.built_in import BuiltInTool
from ybs.tools.workspace import Workspace

if TYPE_CHECKING:
    from ybs.tools.process import Ended

DEFAULT_SECONDS = 60
MOST_SECONDS = 600
_NOTE_ROOM = 400
_LONGEST_COMMAND = 30_000  # the system takes 128 KiB; nobody can judge that much
_ESCAPE = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")
_LINE_END = re.compile(r"\r+\n")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n])|\r$")


class Arguments(Struct, frozen=True, kw_only=True):
    """What run_shell takes."""

    command: str
    working_dir: str = ""
    timeout: Annotated[int, Meta(description="seconds, at most 600")] = DEFAULT_SECONDS


class RunShell(BuiltInTool):
    """Runs commands. `default_seconds` is the configured limit for calls that name none."""

    name: ClassVar[str] = "run_shell"
    effect: ClassVar[Effect] = "execute"
    arguments: ClassVar[type[Struct]] = Arguments
    rare: ClassVar[frozenset[str]] = frozenset({"working_dir"})

    def __init__(self, workspace: Workspace, default_seconds: int | None = None) -> None:
        super().__init__(workspace)
        self.default_seconds = min(default_seconds or DEFAULT_SECONDS, MOST_SECONDS)

    def subject(self, arguments: Arguments) -> Subject:
        """Give the command and, where it is not the project's, the folder."""
        folder = self._folder(arguments)
        elsewhere = folder != self.workspace.roots.folder
        detail = f"in {self.workspace.roots.show(folder)}" if elsewhere else ""
        return Subject(command=arguments.command.strip(), detail=detail)

    def preview(self, arguments: Arguments) -> Preview:
        """Show the whole command and where it will run."""
        if not arguments.command.strip():
            raise ToolError("The command is empty.")
        if "\0" in arguments.command:
            raise ToolError("The command holds a NUL character, which no command can have.")
        if len(arguments.command) > _LONGEST_COMMAND:
            raise ToolError("The command is too long; put it into a script file and run that.")
        folder = self._folder(arguments)
        if not folder.is_dir():
            raise ToolError(f"working_dir {self.workspace.roots.show(folder)} is no folder")
        where = self.workspace.roots.show(folder)
        return Preview(
            title="Run a shell command" + ("" if where == "." else f" in {where}"),
            body=arguments.command,
            paths=(str(folder),),
        )

    async def run(self, arguments: Arguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Run the command to its end. A command that fails is an error, with its output as the text."""
        from ybs.tools.process import environment, run_command  # asyncio's process parts load here

        seconds = self._seconds(arguments)
        started = monotonic()
        try:
            ended = await run_command(
                arguments.command,
                folder=self._folder(arguments),
                environ=environment(os.environ),
                timeout_seconds=seconds,
                most_chars=self.workspace.max_output_chars,
                print_live=print_live,
            )
        except OSError as error:
            raise ToolError(
                f"The command could not be started: {error.strerror or error}"
            ) from error
        return self._output(ended, seconds, monotonic() - started)

    def _output(self, ended: "Ended", seconds: int, duration: float) -> ToolOutput:
        notes = [f"[exit code {ended.exit_code}, {duration:.1f} s]"]
        how = f"exit code {ended.exit_code}"
        if ended.timed_out:
            notes = [f"[stopped after the time limit of {seconds} s; its output so far is above]"]
            how = f"timed out after {seconds} s"
        if ended.left_running:
            notes.append("[processes it left in the background were ended with it]")
        display: dict[str, Any] = {
            "exit_code": ended.exit_code,
            "stdout": ended.stdout.text(),
            "stderr": ended.stderr.text(),
            "timed_out": ended.timed_out,
            "duration": round(duration, 3),
        }
        room = max(self.workspace.max_output_chars - _NOTE_ROOM, 2)
        stderr_room = max(room // 2, room - ended.stdout.size)
        stdout = _as_seen(ended.stdout.text(room - min(stderr_room, ended.stderr.size)))
        stderr = _as_seen(ended.stderr.text(stderr_room))
        if stderr and stdout:
            stderr = f"[stderr]\n{stderr}"
        return ToolOutput(
            output="\n".join(part for part in (stdout, stderr, *notes) if part),
            summary=how,
            display=display,
            is_error=ended.timed_out or ended.exit_code != 0,
        )

    def _folder(self, arguments: Arguments) -> Path:
        return self.workspace.roots.resolve(arguments.working_dir or ".")

    def _seconds(self, arguments: Arguments) -> int:
        # The schema's default stands for the configured limit.
        asked = arguments.timeout
        return (
            self.default_seconds
            if asked == DEFAULT_SECONDS or asked < 1
            else min(asked, MOST_SECONDS)
        )


def _as_seen(text: str) -> str:
    """Return the text as a terminal would leave it: without colours, and without what was overwritten."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = _OVERWRITTEN.sub("", _LINE_END.sub("\n", text))
    return text.strip("\n")
