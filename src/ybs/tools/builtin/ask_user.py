"""ask_user: a question of the model's to the person, with options to pick from, or free."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import ClassVar

import msgspec
from msgspec import Raw, Struct

from ybs.core.errors import ToolError
from ybs.core.messages import ToolCall
from ybs.core.ports import Confirm, Effect, Preview, Question, ToolOutput
from ybs.security.policy.case import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.calls.live import LiveOutput
from ybs.tools.workspace import Workspace

MOST_OPTIONS = 6
_LONGEST = 4_000  # characters of a question
NOBODY = "Nobody is there to answer. Decide by yourself what is most sensible, and say in your last answer what you assumed."
#: The same where the person reads what the model says, and can answer by their next message alone.
AS_TEXT = (
    "The person cannot pick an answer here, and has not read the question. If you need the answer, end your turn with the question, "
    "its options numbered: they answer by a message. Else decide by yourself, and say in your last answer what you assumed."
)
NO_ANSWER = "The person gave no answer. Decide by yourself, or end your turn and say what you need."


class AskUserArguments(Struct, frozen=True, kw_only=True):
    """What ask_user takes."""

    question: str
    options: tuple[str, ...] = ()


class AskUser(BuiltInTool):
    """Asks by the same way as a confirmation, and waits as long as the person needs."""

    name: str = "ask_user"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = AskUserArguments
    #: A week: the person may be away.
    longest_seconds: ClassVar[float] = 7 * 24 * 3600.0

    def __init__(self, workspace: Workspace, confirm: Callable[[], Confirm], agent: str) -> None:
        """`confirm` gives what asks the person now; `agent` is the name of the agent that asks."""
        super().__init__(workspace)
        self._confirm, self._agent = confirm, agent

    def subject(self, arguments: AskUserArguments) -> Subject:
        """Say that there is nothing to judge."""
        del arguments
        return Subject(is_plain=True)

    def preview(self, arguments: AskUserArguments) -> Preview:
        """Show the question."""
        if not arguments.question.strip():
            raise ToolError("The question is empty.")
        if len(arguments.question) > _LONGEST or len(arguments.options) > MOST_OPTIONS:
            raise ToolError(
                f"A question has at most {_LONGEST:,} characters and {MOST_OPTIONS} options."
            )
        return Preview(title="Ask you", body=arguments.question.strip())

    async def run(
        self, arguments: AskUserArguments, print_live: Callable[[str], None]
    ) -> ToolOutput:
        """Ask, and return the answer."""
        question = Question(
            call=ToolCall(id="", name=self.name, arguments=Raw(msgspec.json.encode(arguments))),
            effect=self.effect,
            preview=self.preview(arguments),
            choices=tuple(each.strip() for each in arguments.options if each.strip()),
            agent=self._agent,
        )
        is_live = isinstance(print_live, LiveOutput)
        with print_live.waiting(self.name, question.preview) if is_live else nullcontext():
            answer = await self._confirm()(question)
        if answer.is_unattended:
            output = AS_TEXT if answer.reason == AS_TEXT else NOBODY
            return ToolOutput(output=output, summary="nobody is there")
        if not answer.is_allowed or not answer.reason:
            return ToolOutput(output=NO_ANSWER, summary="no answer")
        return ToolOutput(output=f"The person answers: {answer.reason}", summary=answer.reason)
