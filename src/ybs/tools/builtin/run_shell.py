"""run_shell: a shell command in the project, with a time limit."""

import asyncio
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cache
from pathlib import Path
from signal import SIGTERM
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from ybs.core.errors import Refused, ToolError
from ybs.core.lazy import lazy
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.launcher import bash
from ybs.security.paths.path_text import quoted
from ybs.security.policy.case import Subject
from ybs.security.policy.policy import GOES_ON
from ybs.security.policy.rules import BLANKS
from ybs.security.sandbox.launch import Launch, Need
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.calls.read_only import ReadOnlyRun
from ybs.tools.shell.programs import NOT_FOUND
from ybs.tools.workspace import Workspace

if TYPE_CHECKING:
    from ybs.security.sandbox.attempts import Attempts
    from ybs.tools.shell.jobs import Job
    from ybs.tools.shell.leaving import Leaving
    from ybs.tools.shell.orphans import CommandMark
    from ybs.tools.shell.output import CommandOutput, OutputWindow
    from ybs.tools.shell.process import Ended

DEFAULT_SECONDS = 60
MOST_SECONDS = 600
FIRST_SECONDS = 1.0  # a background command that ends within them needs no job
_NOTE_ROOM = 400
CANCELLED = "cancelled after {:.1f} s, before it finished; its output so far is above. It may have done part of its work"
HANDED_OVER = "[the person sent it to the background as {name}, where it goes on]"
#: How titles begin, and what they say next of a command outside.
RUN = "Run a shell command"
OUTSIDE = " outside the sandbox"
#: Makes a shell wait for what the command left in the background, and end as the last of that did.
_WAITING = "\nwait $!; set -- $?; wait; exit $1"
LEFT_RUNNING = "[processes it left in the background were ended with it]"
ENDED_TOO = "[what it put in the background has ended with it; with `background` a command goes on]"
#: An `&` of its own, past what is quoted and the signs that have one in them.
_BACKGROUND = lazy(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|&&|[<>|]&|&>|(&)(?!\s*$)""")
#: Said of a command that is known to need the network and ran without: in a pipe it may end well and say nothing.
NO_NETWORK = "[it ran without the network; with network: true the person is asked for it]"
NO_NETWORK_HINT = "it ran without the network; there is none in the sandbox"
_ONLY_SH = "The shell is POSIX sh, not bash: no [[, arrays, &>, {1..3} or pipefail."
_LONGEST_COMMAND = 30_000  # the system takes 128 KiB; nobody can judge that much


class RunShellArguments(Struct, frozen=True, kw_only=True):
    """What run_shell takes."""

    command: str
    working_dir: str = ""
    timeout: Annotated[int, Meta(description="seconds, at most 600")] = DEFAULT_SECONDS
    background: bool = False
    network: bool = False
    outside: bool = False


class OutsideArguments(RunShellArguments, frozen=True, kw_only=True):
    """Those of a call that runs outside the sandbox. No model can write them: the toolbox makes them once that was allowed.

    `is_asked`: not by a rule. `why_loading` says why it may load what lies in the project, as the question had it.
    """

    is_asked: bool
    why_loading: Callable[[], str]


class RunShell(BuiltInTool):
    """Runs commands. `default_seconds` is the configured limit for calls that name none."""

    name: str = "run_shell"
    effect: Effect = "execute"
    arguments: ClassVar[type[Struct]] = RunShellArguments
    rare: ClassVar[frozenset[str]] = frozenset({"working_dir", "background", "network", "outside"})

    def __init__(self, workspace: Workspace, default_seconds: int | None = None) -> None:
        super().__init__(workspace)
        self.default_seconds = min(default_seconds or DEFAULT_SECONDS, MOST_SECONDS)

    @property
    def description(self) -> str:
        """What the model is told: also that there is no bash, which it takes for granted."""
        return super().description if bash() else f"{super().description} {_ONLY_SH}"

    @property
    def short_description(self) -> str:
        """What a small model is told."""
        return super().short_description if bash() else f"{super().short_description} {_ONLY_SH}"

    def subject(self, arguments: RunShellArguments) -> Subject:
        """Give the command, what it would destroy and, where it is not the project's, the folder."""
        from ybs.tools.shell.losses import loss  # with the first command

        folder = self._folder(arguments)
        roots = self.workspace.roots
        starter, in_background = self.workspace.shells.starter, _is_job(arguments)
        is_closed = starter.closes_network

        @cache
        def why_loading() -> str:
            return self._leaving(arguments).why_loading()

        def find_changed(_: int) -> tuple[str, ...]:
            return self._leaving(arguments).changed() if why_loading() else ()

        return Subject(
            command=arguments.command.strip(BLANKS),
            destroys=loss(arguments.command, folder, self.workspace),
            folder="" if folder == roots.folder else roots.show(folder),
            place=str(folder),
            network=arguments.network and is_closed,
            offers_network=is_closed and not arguments.network,
            in_background=in_background,
            offers_outside=starter.may_be_left and not in_background,
            outside=arguments.outside,
            find_changed=cache(find_changed),
            why_asked=cache(lambda: self._leaving(arguments).why_asked()),
            why_loading=why_loading,
        )

    def _leaving(self, arguments: RunShellArguments) -> "Leaving":
        from ybs.tools.shell.leaving import Leaving  # where something may run outside

        return Leaving(arguments.command, self._folder(arguments), self.workspace)

    def outside(
        self, arguments: RunShellArguments, subject: Subject, *, is_asked: bool
    ) -> OutsideArguments:
        """Return the same call for outside the sandbox: the person, or their settings, let it run there."""
        given = asdict(arguments)
        return OutsideArguments(**given, is_asked=is_asked, why_loading=subject.why_loading)

    def with_network(self, arguments: RunShellArguments) -> RunShellArguments:
        """Return the same call with the network open: the person gave it."""
        return replace(arguments, network=True)

    def preview(self, arguments: RunShellArguments) -> Preview:
        """Show the whole command and where it will run."""
        if not arguments.command.strip():
            raise ToolError("The command is empty.")
        if "\0" in arguments.command:
            raise ToolError("The command holds a NUL character, which no command can have.")
        if len(arguments.command) > _LONGEST_COMMAND:
            raise ToolError("The command is too long; put it into a script file and run that.")
        starter = self.workspace.shells.starter
        starter.check()
        is_outside = arguments.outside and starter.may_be_left
        if is_outside and _is_job(arguments):
            raise ToolError("Outside the sandbox nothing runs in the background; wait for its end.")
        folder = self._folder(arguments)
        if not folder.is_dir():
            raise ToolError(f"working_dir {self.workspace.roots.show(folder)} is not a folder")
        where = self.workspace.roots.show(folder)
        how = " in the background" if _is_job(arguments) else ""
        how += OUTSIDE if is_outside else " with the network open" if arguments.network else ""
        return Preview(
            title=f"{RUN}{how}" + ("" if where == "." else f" in {quoted(where)}"),
            body=arguments.command,
            paths=(str(folder),),
        )

    async def run(
        self, arguments: RunShellArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Run the command, to its end or in the background. One that fails is an error, with its output as the text."""
        return await self._run(arguments, print_live)

    async def run_read_only(
        self, arguments: RunShellArguments, print_live: Callable[[str], None]
    ) -> ReadOnlyRun:
        """Run the command with the project read-only; say what it lacked. What is to go on in the background is not begun."""
        if _is_job(arguments):
            return ReadOnlyRun(output=ToolOutput(output=""), need=Need(GOES_ON))
        from ybs.security.policy.command_case import only_reads
        from ybs.security.sandbox.attempts import (
            Attempts,  # the first request of a session needs none
        )

        starter = self.workspace.shells.starter
        attempts = Attempts(starter.opened, is_needed=not only_reads(arguments.command))
        output = await self._run(arguments, print_live, attempts)
        ran: dict[str, Any] = output.display
        if ran["exit_code"] is None:  # it goes on in the background
            return ReadOnlyRun(output=output)
        if attempts.is_watching:
            await asyncio.to_thread(attempts.end)
        said = f"{ran.get('stderr', '')}\n{ran['stdout']}"
        return ReadOnlyRun(output=output, need=starter.need(attempts, ran["exit_code"], said))

    async def _run(
        self,
        arguments: RunShellArguments,
        print_live: Callable[[str], None],
        attempts: "Attempts | None" = None,
    ) -> ToolOutput:
        """Run the command; with `attempts` read-only, and they are noted."""
        from ybs.tools.shell.output import CommandOutput, OutputWindow

        live = OutputWindow(print_live)
        try:
            if _is_job(arguments):
                return await self._begin(arguments, live)
            overflow = self.workspace.shells.overflow(self._room)
            output = CommandOutput(self.workspace.max_output_chars, overflow=overflow)
            async with self._held(arguments):
                return await self._finish(arguments, live, output, attempts)
        except OSError as error:
            raise ToolError(
                f"The command could not be started: {error.strerror or error}"
            ) from error

    async def _finish(
        self,
        arguments: RunShellArguments,
        live: "OutputWindow",
        output: "CommandOutput",
        attempts: "Attempts | None",
    ) -> ToolOutput:
        from ybs.tools.shell.process import (  # asyncio's process parts load here
            Ended,
            Shell,
            ShellCommand,
            run_command,
        )

        seconds, folder = self._seconds(arguments), self._folder(arguments)
        read_only = attempts is not None
        shells, started = self.workspace.shells, monotonic()
        launch, mark = await self._prepared(arguments, folder, read_only=read_only)

        def told(ended: Ended) -> ToolOutput:
            return self._output(ended, output, seconds, monotonic() - started)

        command = ShellCommand(
            launch=launch,
            folder=folder,
            mark=mark,
            output=output,
            watch=shells.watch,
            live=live,
            in_front=None if isinstance(arguments, OutsideArguments) else shells.in_front,
            attempts=attempts,
        )
        try:
            ended = await run_command(command, seconds)
        except asyncio.CancelledError:
            if output.size:  # what it wrote is not lost with it
                live.leave(told(Ended(exit_code=-SIGTERM, was_cancelled=True)))
            raise
        if isinstance(ended, Shell):
            live.close()
            job = shells.jobs.adopt(arguments.command, ended, output, attempts)
            return self._handed_over(job)
        return await self._remarked(told(ended), arguments, read_only=read_only)

    def _held(self, arguments: RunShellArguments) -> AbstractAsyncContextManager[None]:
        by_rule = isinstance(arguments, OutsideArguments) and not arguments.is_asked
        return self._leaving(arguments).held() if by_rule else nullcontext()

    async def _prepared(
        self, arguments: RunShellArguments, folder: Path, *, read_only: bool
    ) -> "tuple[Launch, CommandMark]":
        """Say how the command is started: outside as in the person's own shell only where the question named what it may load.

        Raises ToolError where it may load something by now, and the question said that it does not.
        """
        shells, command = self.workspace.shells, arguments.command
        if not isinstance(arguments, OutsideArguments):
            network = arguments.network
            return shells.prepare(command, folder, network=network, read_only=read_only)
        is_asked = arguments.is_asked
        loads_project = is_asked and bool(await asyncio.to_thread(arguments.why_loading))
        if is_asked and not loads_project:
            leaving = self._leaving(arguments)
            if why := await asyncio.to_thread(leaving.why_loading):
                raise ToolError(f"Nothing was run: since the question the command may load what lies in the project ({why}). Call it again, and the person is asked with that")  # fmt: skip
        return shells.prepare_outside(command, is_asked=is_asked, loads_project=loads_project)

    async def _begin(self, arguments: RunShellArguments, live: "OutputWindow") -> ToolOutput:
        jobs = self.workspace.shells.jobs
        waiting = "" if arguments.background else _WAITING
        job = await jobs.start(
            arguments.command + waiting,
            self._folder(arguments),
            most_chars=self.workspace.max_output_chars,
            live=live,
            network=arguments.network,
        )
        try:
            await job.wait(FIRST_SECONDS)
        except BaseException:  # nobody has heard of the job yet
            await job.stop()
            raise
        finally:
            live.close()  # what comes later belongs to no call
        told = job.told(self.workspace.max_output_chars)
        if job.ended is None:
            hint = "" if arguments.network else await self._port_hint()
            return _with_hint(told, hint) if hint else told
        jobs.forget(job)
        told = replace(told, is_error=job.ended.exit_code != 0)
        return await self._helped(told, arguments, read_only=False)

    async def _port_hint(self) -> str:
        """Return how a server in the sandbox is reached from the machine; nothing where it is as it stands."""
        ports = await asyncio.to_thread(self.workspace.shells.starter.listening)
        if ports is None:
            return ""
        if len(ports) == 1:
            return f"port {ports[0]} is reached from outside only after /ports {ports[0]}"
        return "a port of it is reached from outside only after /ports"

    def _handed_over(self, job: "Job") -> ToolOutput:
        told = job.told(self.workspace.max_output_chars)
        return replace(told, output=f"{told.output}\n{HANDED_OVER.format(name=job.name)}")

    @property
    def _room(self) -> int:
        return max(self.workspace.max_output_chars - _NOTE_ROOM, 2)

    def _output(
        self, ended: "Ended", output: "CommandOutput", seconds: int, duration: float
    ) -> ToolOutput:
        display: dict[str, Any] = {
            "exit_code": ended.exit_code,
            "stdout": output.stdout.text(),
            "stderr": output.stderr.text(),
            "timed_out": ended.timed_out,
            "duration": round(duration, 3),
        }
        how = ended.how
        notes = [f"[{how}, {duration:.1f} s]"]
        if ended.timed_out:
            how = f"timed out after {seconds} s"
            so_far = "its output so far is above" if output.size else "it wrote nothing"
            notes = [f"[stopped after the time limit of {seconds} s; {so_far}]"]
        if ended.was_cancelled:
            how, display["cancelled"] = "cancelled", True
            notes = [f"[{CANCELLED.format(duration)}]"]
        if ended.left_running:
            notes.append(LEFT_RUNNING)
        kept = output.overflow.note() if output.overflow else ""
        room = max(self._room - len(kept), 2)
        stderr_room = max(room // 2, room - output.stdout.size)
        stdout, stdout_cut = output.stdout.shown(room - min(stderr_room, output.stderr.size))
        stderr, stderr_cut = output.stderr.shown(stderr_room)
        if stdout_cut or stderr_cut:
            notes[:0] = [kept] if kept else []
            display["lines"] = output.stdout.lines + output.stderr.lines
            if output.overflow and output.overflow.path:
                display["output_file"] = str(output.overflow.path)
        elif output.overflow:
            output.overflow.discard()
        parts = (stdout.strip("\n"), _headed(stderr.strip("\n"), has_more=bool(stdout)), *notes)
        return ToolOutput(
            output="\n".join(part for part in parts if part),
            summary=how,
            display=display,
            is_error=ended.timed_out or ended.exit_code != 0,
        )

    async def _remarked(
        self, told: ToolOutput, arguments: RunShellArguments, *, read_only: bool
    ) -> ToolOutput:
        """Say where it ran, if outside, and of the sandbox where the command failed: to the model, and to the person in a few words."""
        ran: dict[str, Any] = told.display
        if _leaves_behind(arguments.command) and LEFT_RUNNING not in told.output:
            told = replace(told, output=f"{told.output}\n{ENDED_TOO}")
        if isinstance(arguments, OutsideArguments):
            text = f"{told.output}\n[it ran outside the sandbox]"
            shown = {**ran, "outside": True}
            return replace(told, output=text, summary=f"{told.summary},{OUTSIDE}", display=shown)
        if not ran["exit_code"]:
            return self._without_network(told, arguments)
        network = arguments.network
        starter, said = self.workspace.shells.starter, ran["stderr"] or ran["stdout"]
        if denial := starter.denial(said, network=network, read_only=read_only):
            told = replace(told, summary=f"{told.summary}; {denial}")
        remark = starter.remark(said, network=network, read_only=read_only)
        told = replace(told, output=f"{told.output}\n{remark}") if remark else told
        told = told if denial or remark else self._without_network(told, arguments)
        return await self._helped(told, arguments, read_only=read_only)

    def _without_network(self, told: ToolOutput, arguments: RunShellArguments) -> ToolOutput:
        """Say that there was no network, where the command is known to need it."""
        if arguments.network or not self.workspace.shells.starter.closes_network:
            return told
        from ybs.security.commands.wrappers import read
        from ybs.security.commands.writers import needs_network

        if not needs_network(read(arguments.command)):
            return told
        display: dict[str, Any] = {**told.display, "hint": NO_NETWORK_HINT}
        return replace(told, output=f"{told.output}\n{NO_NETWORK}", display=display)

    async def _helped(
        self, told: ToolOutput, arguments: RunShellArguments, *, read_only: bool
    ) -> ToolOutput:
        """Add what can be run instead where a program was not found."""
        ran: dict[str, Any] = told.display
        if ran["exit_code"] != NOT_FOUND:
            return told
        from ybs.tools.shell.substitutes import substitute_for

        folder, shells = self._folder(arguments), self.workspace.shells
        said = ran.get("stderr") or ran["stdout"]
        line = await substitute_for(arguments.command, said, folder, shells, read_only=read_only)
        return replace(told, output=f"{told.output}\n{line}") if line else told

    def _folder(self, arguments: RunShellArguments) -> Path:
        roots = self.workspace.roots
        folder = roots.resolve(arguments.working_dir or ".")
        if roots.may_read(str(folder)):  # by a tool that reads, which is not this one
            raise Refused(
                f"working_dir {roots.show(folder)} is outside the folders that ybs may work in"
            )
        return folder

    def _seconds(self, arguments: RunShellArguments) -> int:
        # The schema's default stands for the configured limit.
        asked = arguments.timeout
        return (
            self.default_seconds
            if asked == DEFAULT_SECONDS or asked < 1
            else min(asked, MOST_SECONDS)
        )


def _is_job(arguments: RunShellArguments) -> bool:
    """Return whether the command is to go on in the background: it says so, or ends in an `&`."""
    text = arguments.command.rstrip()
    return arguments.background or (text.endswith("&") and not text.endswith(("&&", "\\&")))


def _leaves_behind(command: str) -> bool:
    """Return whether a command puts something in the background and does not wait for it: in a sandbox that ends unseen."""
    is_any = "&" in command and any(found[1] for found in _BACKGROUND().finditer(command))
    return is_any and not re.search(r"\bwait\b", command)


def _with_hint(told: ToolOutput, hint: str) -> ToolOutput:
    """Add a hint that the person sees in a line of its own, and that the model can pass on."""
    return replace(
        told,
        output=f"{told.output}\n[For the user: {hint}]",
        summary=f"{told.summary}; {hint}",
        display={**(told.display or {}), "hint": hint},
    )


def _headed(stderr: str, *, has_more: bool) -> str:
    return f"[stderr]\n{stderr}" if stderr and has_more else stderr
