"""shell_job: looks after the commands that run_shell left in the background."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.policy.case import Subject
from ybs.tools.builtin.base import BuiltInTool

MOST_SECONDS = 120


class ShellJobArguments(Struct, frozen=True, kw_only=True):
    """What shell_job takes."""

    id: str = ""
    action: Literal["read", "stop", "list"] = "read"
    wait: Annotated[int, Meta(description="seconds, at most 120")] = 5


class ShellJob(BuiltInTool):
    """Reads and stops jobs. Those are the session's own, so nobody is asked."""

    name: str = "shell_job"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = ShellJobArguments

    def subject(self, arguments: ShellJobArguments) -> Subject:
        """Name the job."""
        return Subject(detail=arguments.id)

    def preview(self, arguments: ShellJobArguments) -> Preview:
        """Say what is done with which job."""
        if arguments.action == "list":
            return Preview(title="List the background jobs")
        return Preview(title=f"{arguments.action.capitalize()} {arguments.id}")

    async def run(
        self, arguments: ShellJobArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Return the new output, and the state of the job."""
        del print_live
        jobs = self.workspace.shells.jobs
        if arguments.action == "list":
            count = len(jobs.all)
            return ToolOutput(
                output=jobs.listing(),
                summary=f"{count} job{'' if count == 1 else 's'}",
                display={"jobs": [job.line for job in jobs.all]},
            )
        if not arguments.id and len(jobs.all) != 1:
            raise ToolError(f"Name the job in `id`.\n{jobs.listing()}")
        job = jobs.find(arguments.id) if arguments.id else jobs.all[0]
        if arguments.action == "stop":
            await job.stop()
        else:
            await job.wait(max(0, min(arguments.wait, MOST_SECONDS)))
        return job.told(self.workspace.max_output_chars)
