"""The `!command`: run what the person typed, for the model to read or for the person alone."""

from itertools import count

from msgspec import Raw, json

from ybs.agent.environment import ToolEnvironment
from ybs.core.errors import ToolError
from ybs.core.events import Emit, ToolPrinted
from ybs.core.messages import ToolCall
from ybs.session.injection import ending_of, injection, spoken
from ybs.session.recorder import TurnRecorder
from ybs.session.reply import Reply

USAGE = "Usage: !COMMAND   run COMMAND in the project's folder; the model sees its output"
USAGE_ALONE = "Usage: !!COMMAND   run COMMAND in the project's folder; only you see its output"
_ids = count(1)


class TypedCommands:
    """Runs the commands that the person typed. Nobody is asked; blocked ones are refused."""

    def __init__(self, environment: ToolEnvironment, recorder: TurnRecorder, emit: Emit) -> None:
        self._environment, self._recorder, self._emit = environment, recorder, emit

    async def injected(self, command: str) -> str:
        """Run the command and return the words to send to the model (design section 6)."""
        result, has_run = await self._tried(command)
        return injection(command, result, has_run=has_run)

    async def shown_only(self, command: str) -> Reply:
        """Run the command for the person alone: what it prints is told piece by piece, how it ended here."""
        if not command:
            return Reply(text=USAGE_ALONE, is_error=True)
        result, has_run = await self._tried(command)
        if not has_run:
            return Reply(text=result, is_error=True)
        ending, is_good = ending_of(result)
        ending = ending or result.partition("\n")[0]  # it goes on in the background
        return Reply(text=f"{ending}; the model does not see this", is_error=not is_good)

    async def _tried(self, command: str) -> tuple[str, bool]:
        """Return what came of the command, and whether it has run at all."""
        try:
            return await self._run(command), True
        except ToolError as error:
            return str(error), False

    async def _run(self, command: str) -> str:
        from ybs.tools.builtin.run_shell import Arguments, RunShell
        from ybs.tools.calls.hooks import after_change

        environment, call_id = self._environment, f"typed_{next(_ids)}"
        if environment.permissions.is_dry_run:
            raise ToolError("not executed (dry run)")
        if entry := environment.policy.blocked(command):
            raise ToolError(f"it is blocked ({entry!r} in safety.blocked_commands)")
        settings = environment.config.tools.builtin.get("run_shell")
        shell = RunShell(environment.workspace, settings.timeout_seconds if settings else None)
        arguments = Arguments(command=command)
        shell.preview(arguments)
        await self._recorder.before_typed()
        try:
            ran = await shell.run(
                arguments, lambda text: self._emit(ToolPrinted(id=call_id, text=text))
            )
        finally:
            call = ToolCall(id=call_id, name=shell.name, arguments=Raw(json.encode(arguments)))
            await after_change((self._recorder,), call, "execute", ())
        return spoken(ran.display, environment.workspace.max_output_chars)
