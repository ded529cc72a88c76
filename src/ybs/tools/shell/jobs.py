"""Commands in the background: each has a name, runs until it ends or is stopped, and ends with the session."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from ybs.core.cutting import first_words, shortened
from ybs.core.errors import ToolError
from ybs.core.ports import ToolOutput
from ybs.tools.shell.output import CommandOutput, OutputWindow
from ybs.tools.shell.process import Ended, Shell, ShellCommand

if TYPE_CHECKING:
    from ybs.security.sandbox.attempts import Attempts
    from ybs.security.sandbox.launch import Launch, Need, Starter
    from ybs.tools.shell.orphans import CommandMark
    from ybs.tools.shell.overflow import OverflowFile
    from ybs.tools.shell.watch import Watch

MOST_RUNNING = 16
MOST_ENDED = 16  # older ones are forgotten
QUIET_SECONDS = 1.0  # output that pauses for so long is worth being read
_LOOK_SECONDS = 0.1
_LONGEST_COMMAND = 80
_NOTE_ROOM = 800  # paths can be long
_HELD_BACK = "[nothing was changed: {needs}. Without `background` the person is asked]"
LEFT_RUNNING = "[processes it left in the background were ended with it]"


class Starting(Protocol):
    """What starts the commands of a session (`shells.Shells`)."""

    starter: "Starter"
    changed: Callable[[], None]

    @property
    def watch(self) -> "Watch":
        """The process that ends commands when ybs was killed."""
        ...

    def prepare(
        self, command: str, folder: Path, *, network: bool = False, read_only: bool = False
    ) -> "tuple[Launch, CommandMark]":
        """Say how a command is started, and by which mark its processes are known."""
        ...

    def overflow(self, after_bytes: int) -> "OverflowFile":
        """Return the place for an output that may become long."""
        ...


class Job:
    """One command in the background. `need` says what one that runs read-only lacked, given its exit code and output."""

    def __init__(
        self,
        name: str,
        text: str,
        shell: Shell,
        output: CommandOutput,
        need: "Callable[[int, str], Need | None] | None" = None,
    ) -> None:
        self.name, self.text = name, text
        self._need = need
        self._shell, self.output = shell, output
        self._started = shell.started
        self._seconds = 0.0
        self.ended: Ended | None = None
        self._was_stopped = False
        self._task = asyncio.create_task(self._run())

    def when_ended(self, tell: Callable[[], None]) -> None:
        """Have `tell` called when it has ended."""
        self._task.add_done_callback(lambda _: tell())

    async def _run(self) -> None:
        try:
            await self._shell.ended.wait()
        finally:
            self._seconds = monotonic() - self._started
            try:
                await self._shell.end()
            finally:
                self.ended = self._shell.outcome

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return monotonic() - self._started if self.ended is None else self._seconds

    @property
    def state(self) -> str:
        """Return whether it runs, for how long, or how it ended."""
        # Written as a clock: a turn that waits must not look like one that repeats itself.
        clock = f"{int(self.seconds) // 60}:{int(self.seconds) % 60:02}"
        if self.ended is None:
            return f"running for {clock}"
        how = "stopped" if self._was_stopped else f"ended with {self.ended.how}"
        return f"{how} after {clock}"

    @property
    def line(self) -> str:
        """Describe it in one line."""
        return f"{self.name}  {self.state}  {first_words(self.text, _LONGEST_COMMAND)}"

    def told(self, most_chars: int) -> ToolOutput:
        """Tell the model what came since the last time, and how the job is doing."""
        state, ended = self.state, self.ended
        notes = [f"[{self.name} {state}]"]
        if ended is not None and ended.left_running:
            notes.append(LEFT_RUNNING)
        kept = self.output.take(is_last=ended is not None)
        text, is_cut = kept.shown(_room(most_chars))
        text, file = text.strip("\n"), {}
        if ended is not None and self._need is not None:
            need = self._need(ended.exit_code, text)
            notes += [_HELD_BACK.format(needs=need.reason)] if need else []
        if is_cut and (overflow := self.output.overflow) and (note := overflow.note()):
            notes.insert(0, note)
            file = {"output_file": str(overflow.path)} if overflow.path else file
        return ToolOutput(
            output="\n".join((text or "[no new output]", *notes)),
            summary=f"{self.name} {state}",
            display={
                "id": self.name,
                "running": ended is None,
                "exit_code": None if ended is None else ended.exit_code,
                "stdout": text,
                "duration": round(self.seconds, 3),
                **file,
            },
        )

    async def wait(self, seconds: float) -> None:
        """Wait until it has ended, has written something and paused, or the time is over."""
        until = monotonic() + seconds
        size, changed = self.output.size, monotonic()
        while self.ended is None and (left := until - monotonic()) > 0:
            await asyncio.wait((self._task,), timeout=min(_LOOK_SECONDS, left))
            if self.output.size != size:
                size, changed = self.output.size, monotonic()
            elif size and monotonic() - changed >= QUIET_SECONDS:
                return

    async def stop(self) -> None:
        """End it with everything it started."""
        if self.ended is None:
            self._was_stopped = not self._shell.ended.is_set()
            await self._shell.end()
        await asyncio.wait((self._task,))


class Jobs:
    """The background commands of one session."""

    def __init__(self, shells: Starting) -> None:
        self._shells = shells
        self._all: dict[str, Job] = {}
        self._count = 0

    @property
    def all(self) -> tuple[Job, ...]:
        """Every job that is remembered, oldest first."""
        return tuple(self._all.values())

    @property
    def running(self) -> tuple[Job, ...]:
        """Those that have not ended."""
        return tuple(job for job in self.all if job.ended is None)

    def find(self, name: str) -> Job:
        """Return the job; the number alone will do. Raises ToolError."""
        wanted = name.strip()
        job = self._all.get(wanted) or self._all.get(f"job-{wanted}")
        if job is None:
            names = ", ".join(self._all) or "none"
            raise ToolError(f"There is no job {shortened(wanted, 40)!r}. The jobs are: {names}")
        return job

    def check(self) -> None:
        """Raise ToolError if no more may run."""
        if len(self.running) >= MOST_RUNNING:
            raise ToolError(f"{MOST_RUNNING} jobs are running. Stop one first:\n{self.listing()}")

    def listing(self) -> str:
        """Describe all of them, a line for each."""
        return "\n".join(job.line for job in self.all) or "There are no background jobs."

    async def start(
        self,
        text: str,
        folder: Path,
        *,
        most_chars: int,
        live: OutputWindow,
        network: bool = False,
    ) -> Job:
        """Start a command. Raises OSError, and ToolError where too many run."""
        self.check()
        self._shells.starter.expect_job()
        launch, mark = self._shells.prepare(text, folder, network=network)
        overflow = self._shells.overflow(_room(most_chars))
        output = CommandOutput(most_chars, streams=1, overflow=overflow)
        shell = await Shell.start(
            ShellCommand(
                launch=launch,
                folder=folder,
                mark=mark,
                output=output,
                watch=self._shells.watch,
                live=live,
                streams=1,
            )
        )
        return self.adopt(text, shell, output)

    def adopt(
        self, text: str, shell: Shell, output: CommandOutput, attempts: "Attempts | None" = None
    ) -> Job:
        """Make a job of a running command; `attempts` are noted of one that runs read-only."""
        output.join()
        self._count += 1
        need = None if attempts is None else partial(self._shells.starter.need, attempts)
        job = Job(f"job-{self._count}", text, shell, output, need)
        self._all[job.name] = job
        self._shells.changed()
        job.when_ended(self._shells.changed)
        ended = [job.name for job in self.all if job.ended is not None]
        for name in ended[: max(len(ended) - MOST_ENDED, 0)]:
            del self._all[name]
        return job

    def forget(self, job: Job) -> None:
        """Take an ended job off the list: everything about it was told."""
        self._all.pop(job.name, None)

    async def aclose(self) -> None:
        """End all of them, side by side: each may take its moment to end politely."""
        jobs, self._all = self.all, {}
        await asyncio.gather(*(job.stop() for job in jobs))


def _room(most_chars: int) -> int:
    """How much of the output is told at once; a longer one goes to a file too."""
    return max(most_chars - _NOTE_ROOM, 2)
