"""Shared parts of a session's commands: how they start, where long outputs go, and the end of leftover processes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.core.errors import ToolError
from ybs.security.launcher import environ_away, shell_command
from ybs.security.sandbox.launch import Access, Launch, Starter, outside
from ybs.tools.shell.overflow import Outputs, OverflowFile

if TYPE_CHECKING:
    from ybs.security.paths.roots import Roots
    from ybs.tools.shell.jobs import Jobs
    from ybs.tools.shell.orphans import CommandMark
    from ybs.tools.shell.process import Shell
    from ybs.tools.shell.watch import Watch


#: For git and gh outside the sandbox that load nothing of the project: `:` is an editor that changes nothing.
_EDITORS = ("GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GH_EDITOR", "EDITOR", "VISUAL")
_NO_EDITOR = dict.fromkeys(_EDITORS, ":") | {"GIT_PAGER": "cat", "PAGER": "cat"}


class Shells:
    """Made once for a session. `starter` may be a sandbox; `keeps_outputs` is off where nothing may be written.

    `changed` is called when a job begins or ends; `family` are those of all agents of the session.
    """

    def __init__(
        self,
        roots: "Roots",
        *,
        starter: Starter | None = None,
        outputs: Outputs | None = None,
        keeps_outputs: bool = True,
        changed: Callable[[], None] = lambda: None,
        family: "set[Shells] | None" = None,
    ) -> None:
        self._roots, self.changed = roots, changed
        self.starter: Starter = starter or Starter()
        self.keeps_outputs = keeps_outputs
        self.outputs = outputs or Outputs(roots)
        self.in_front: set[Shell] = set()
        self._jobs: Jobs | None = None
        self._watch: Watch | None = None
        #: Those of all agents of the session.
        self._all = set[Shells]() if family is None else family
        self._all.add(self)

    def apart(self) -> "Shells":
        """Return one for another agent of the session: its commands are started alike, and end with it."""
        return Shells(
            self._roots,
            starter=self.starter,
            outputs=self.outputs,
            keeps_outputs=self.keeps_outputs,
            changed=self.changed,
            family=self._all,
        )

    @property
    def watch(self) -> "Watch":
        """The process that ends commands when ybs was killed; started with the first command."""
        if self._watch is None:
            from ybs.tools.shell.orphans import token
            from ybs.tools.shell.watch import Watch  # not needed until something runs

            self._watch = Watch(token())
        return self._watch

    @property
    def jobs(self) -> "Jobs":
        """The commands in the background."""
        if self._jobs is None:
            from ybs.tools.shell.jobs import Jobs  # most sessions have none

            self._jobs = Jobs(self)
        return self._jobs

    @property
    def running_jobs(self) -> tuple[str, ...]:
        """The names of the commands that run in the background, whichever agent of the session began them."""
        jobs = (shells._jobs for shells in self._all)
        return tuple(job.name for each in jobs if each is not None for job in each.running)

    def send_to_background(self) -> int:
        """Hand over the commands that are waited for; return how many. Raises ToolError where too many run."""
        for shell in tuple(self.in_front):
            self.jobs.check()
            shell.left.set()
        return len(self.in_front)

    def prepare(
        self, command: str, folder: Path, *, network: bool = False, read_only: bool = False
    ) -> "tuple[Launch, CommandMark]":
        """Say how a command is started, and by which mark its processes are known. Raises OSError or ToolError."""
        access = Access(network=network, read_only=read_only, is_command=True)
        environ = self._roots.host.environ
        launch = self.starter.start(shell_command(command), folder, environ, access)
        if read_only and ("py_compile" in command or "compileall" in command):
            # Who checks files so does not want the caches, and they cannot be beside the files.
            caches = {"PYTHONPYCACHEPREFIX": launch.environ["TMPDIR"]}
            launch = replace(launch, environ={**launch.environ, **caches})
        return self.marked(launch)

    def prepare_outside(
        self, command: str, *, is_asked: bool, loads_project: bool
    ) -> "tuple[Launch, CommandMark]":
        """Say the same of a command that runs outside of any sandbox, as the person's own shell would where it `loads_project`.

        Any other, of which the question names no file of the project, finds no program there and no other repository. It starts
        no editor and no pager: there is no terminal for them, and they load files of the folder that they start in. One that nobody
        `is_asked` about reaches no remote on this machine either, and cannot change ybs itself.
        """
        environ = self._roots.host.environ
        if loads_project:
            return self.marked(outside(command, environ))
        from ybs.security.paths.git_settings import PROTOCOLS
        from ybs.security.paths.repository import find_repository
        from ybs.security.sandbox.choice import holding_code

        try:
            repository = find_repository(self._roots.folder)
        except (ValueError, RuntimeError) as error:
            raise ToolError(f"The repository is another one by now: {error}") from error
        away = {**environ_away(environ), **repository.variables, **_NO_EDITOR}
        if is_asked:
            return self.marked(outside(command, away))
        launch = outside(command, {**away, "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS)})
        around = holding_code([str(root) for root in self._roots.folders])
        return self.marked(replace(launch, argv=(*around, *launch.argv)))

    def marked(self, launch: "Launch") -> "tuple[Launch, CommandMark]":
        """Return a launch whose processes carry a mark, and the mark. Raises OSError."""
        from ybs.tools.shell.orphans import CommandMark

        if launch.scratch:
            self.watch.clear(launch.scratch)
        mark = CommandMark.new()
        return replace(launch, environ=mark.put_on(dict(launch.environ))), mark

    def overflow(self, after_bytes: int) -> OverflowFile:
        """Return the place for an output that may become long."""
        return OverflowFile(self.outputs if self.keeps_outputs else None, after_bytes)

    async def aclose(self) -> None:
        """End every job, and what goes with them."""
        try:
            if self._jobs is not None:
                await self._jobs.aclose()
        finally:
            self._all.discard(self)
            self.close_watch()

    def close_watch(self) -> None:
        """End the watch: no command runs any more."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
            self.outputs.sweep()
