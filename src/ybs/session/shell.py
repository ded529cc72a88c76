"""The `!command`: run what the person typed in the sandbox, for the model to read."""

from collections.abc import Callable
from itertools import count

from msgspec import Raw, json

from ybs.agent.environment import ToolEnvironment
from ybs.core.errors import ToolError
from ybs.core.events import Emit, ToolPrinted
from ybs.core.messages import Text, ToolCall, UserMessage
from ybs.session.injection import ending_of, injection, spoken
from ybs.session.recorder import TurnRecorder
from ybs.session.reply import Reply

USAGE = "Usage: !COMMAND   run COMMAND in the sandbox; the model sees its output"
_ids = count(1)


class TypedCommands:
    """Runs the commands that the person typed. Nobody is asked; blocked ones are refused. `ended` is told the id of one that has ended."""

    def __init__(
        self,
        environment: ToolEnvironment,
        recorder: TurnRecorder,
        emit: Emit,
        ended: Callable[[str], None],
    ) -> None:
        self._environment, self._recorder = environment, recorder
        self._emit, self._ended = emit, ended

    async def injected(self, command: str) -> UserMessage:
        """Run the command and return what to send to the model (design section 6)."""
        try:
            text = injection(command, await self._run(command))
        except ToolError as error:
            text = injection(command, str(error), has_run=False)
        return UserMessage.of(text, origin="shell")

    async def kept(self, command: str, waiting: list[Text]) -> Reply:
        """Run the command, and put what the model is to read of it with what waits for the person's next words."""
        text = (await self.injected(command)).text
        waiting.append(Text(text=text))
        ending, is_good = ending_of(text)
        return Reply(
            text=f"{ending}; the model reads it with your next words", is_error=not is_good
        )

    async def _run(self, command: str) -> str:
        from ybs.tools.builtin.run_shell import RunShell, RunShellArguments
        from ybs.tools.calls.hooks import after_change

        environment, call_id = self._environment, f"typed_{next(_ids)}"
        if environment.permissions.is_dry_run:
            raise ToolError("not executed (dry run)")
        if entry := environment.policy.blocked(command):
            raise ToolError(f"it is blocked ({entry!r} in safety.blocked_commands)")
        settings = environment.config.tools.builtin.get("run_shell")
        shell = RunShell(environment.workspace, settings.timeout_seconds if settings else None)
        arguments = RunShellArguments(command=command)
        shell.preview(arguments)
        await self._recorder.before_typed()
        try:
            ran = await shell.run(
                arguments, lambda text: self._emit(ToolPrinted(id=call_id, text=text))
            )
        finally:
            self._ended(call_id)
            call = ToolCall(id=call_id, name=shell.name, arguments=Raw(json.encode(arguments)))
            await after_change((self._recorder,), call, "execute", ())
        said = ran.display.get("stderr") or ran.display["stdout"]
        denial = environment.sandbox.denial(said) if ran.is_error else ""
        return spoken(ran.display, environment.workspace.max_output_chars, denial)
