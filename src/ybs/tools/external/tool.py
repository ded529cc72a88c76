"""One external tool: a program that takes its arguments as JSON and answers in JSON."""

from collections.abc import Callable
from typing import Any

import msgspec

from ybs.config.review import Review
from ybs.core.errors import Refused, ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.own_programs import WHY_APART
from ybs.security.policy.policy import Subject
from ybs.tools.external.definition import Definition
from ybs.tools.external.program import Program, Ran, Run, run
from ybs.tools.workspace import Workspace

DEFAULT_SECONDS = 60
MOST_SECONDS = 600


class ExternalTool:
    """A program as a tool. Where it declares no needs, and the sandbox holds it to that, it only reads."""

    def __init__(
        self, definition: Definition, program: Program, workspace: Workspace, review: Review | None
    ) -> None:
        self.definition, self.program = definition, program
        self.name, self.description = definition.name, definition.description
        self.parameters = definition.parameters
        self.seconds = min(definition.timeout_seconds or DEFAULT_SECONDS, MOST_SECONDS)
        self.longest_seconds = self.seconds + 15.0
        self._workspace, self._review = workspace, review

    @property
    def effect(self) -> Effect:
        """What it may do, by what it declares and by what holds it to that."""
        is_held = not self.definition.needs.words and self._workspace.shells.starter.holds_reading()
        return "read" if is_held else "execute"

    def preview(self, arguments: Any) -> Preview:
        """Show the program, its arguments and its needs."""
        self._workspace.shells.starter.check()
        shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
        needs = self.definition.needs.words
        lines = [shown] * (shown != "{}") + [f"It needs {needs}."] * bool(needs)
        return Preview(title=f"Run the tool {self.program.shown}", body="\n".join(lines))

    def subject(self, arguments: Any) -> Subject:
        """Give its needs: "always" stands for every call as long as they are these."""
        del arguments
        needs = self.definition.needs.words
        asks = f"it needs {needs}" if needs else ""
        return Subject(is_alike=True, asks=asks, detail=f"with {needs}" if needs else "")

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        """Run the program. Raises ToolError where it fails, with what it said."""
        del print_live  # what it prints is its answer
        self._check_trust()
        given = msgspec.json.encode(arguments)
        words, data = self._passed(given)
        try:
            needs = self.definition.needs
            job = Run(
                program=self.program, words=words, given=data, needs=needs, seconds=self.seconds,
                in_project=self.definition.in_project,
                keys=self._review.keys if self._review else frozenset(),
            )  # fmt: skip
            ran = await run(job, self._workspace)
        except OSError as error:
            raise ToolError(
                f"{self.name} could not be started: {error.strerror or error}"
            ) from error
        return self._output(ran)

    def _passed(self, given: bytes) -> tuple[list[str], bytes]:
        if self.program.is_python:
            return [self.name], given
        return ([given.decode()], b"") if self.definition.input == "argv" else ([], given)

    def _check_trust(self) -> None:
        path = self.program.in_project
        if not path:
            return
        from ybs.trust.decision import is_unchanged

        if self._review is None or not is_unchanged(self._review, path):
            raise Refused(f"{path} is not the program that the person trusts, so it is not run.")

    def _output(self, ran: Ran) -> ToolOutput:
        if ran.timed_out:
            raise ToolError(_with(f"{self.name} was stopped after {self.seconds} s", ran))
        if ran.exit_code:
            raise ToolError(_with(f"{self.name} failed with {ran.how}", ran))
        answer = _answer_in(ran)
        if answer is None:
            return ToolOutput(output=ran.text or "It answered nothing.", summary=ran.how)
        if answer.get("success") is False:
            raise ToolError(_text_of(answer.get("error") or answer) or f"{self.name} failed.")
        said = {key: value for key, value in answer.items() if key != "success"}
        text = _text_of(said["result"] if said.keys() == {"result"} else said)
        return ToolOutput(output=text or "It answered nothing.", display=answer)


def _answer_in(ran: Ran) -> dict[str, Any] | None:
    """Return the JSON object that a program wrote; None for anything else, which is read as text."""
    try:
        return None if ran.answer is None else msgspec.json.decode(ran.answer, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _text_of(value: Any) -> str:
    return value.strip() if isinstance(value, str) else msgspec.json.encode(value).decode()


def _with(what: str, ran: Ran) -> str:
    """Add what a program said to what became of it."""
    said = [part for part in (ran.text, ran.errors and f"[stderr]\n{ran.errors}") if part]
    why = [f"({WHY_APART})"] if ran.is_apart else []
    return "\n".join([f"{what}.", *said, *why])
