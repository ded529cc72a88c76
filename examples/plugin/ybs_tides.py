"""What a package can bring to ybs: a tool, a toolbox, a guard, a turn hook and a slash command."""

import msgspec
from msgspec import Raw

from ybs.agent.hooks import TurnHook
from ybs.commands.command import SlashCommand
from ybs.core.errors import ToolError
from ybs.core.events import Noticed
from ybs.core.messages import ToolResult, UserMessage
from ybs.core.ports import Guard, ToolOutput, ToolSpec
from ybs.session.reply import Reply, Table

HIGH_WATER = {"Bremen": "12:40", "Cuxhaven": "09:15"}
NO_ARGUMENTS = Raw(b'{"type":"object","properties":{}}')


class Tide:
    """A tool. Its schema comes from data: the harbours that there are."""

    name, effect = "tide", "read"
    description = "Returns the time of high water in a harbour."

    def __init__(self):
        harbour = {"type": "string", "enum": sorted(HIGH_WATER)}
        schema = {"type": "object", "properties": {"harbour": harbour}, "required": ["harbour"]}
        self.parameters = Raw(msgspec.json.encode(schema))

    async def run(self, arguments, print_live):
        return ToolOutput(output=f"High water at {HIGH_WATER[arguments['harbour']]}.")


class Boat:
    """A toolbox: whoever has boarded can sail, and only then."""

    def __init__(self):
        self.offered = "board"

    async def open(self, emit):
        self.offered = "board"

    async def aclose(self):
        pass

    def specs(self):
        return [
            ToolSpec(
                name=self.offered,
                description="Use the boat.",
                parameters=NO_ARGUMENTS,
                effect="read",
            )
        ]

    def is_read_only(self, call):
        return False

    async def run(self, call, emit):
        if call.name != self.offered:
            return ToolResult(call_id=call.id, name=call.name, output="Not now.", is_error=True)
        self.offered = "sail"
        return ToolResult(call_id=call.id, name=call.name, output=f"You {call.name}.")


class TellUtc(Guard):
    """A guard: before the first request of a turn it tells the model how to read the times."""

    async def before_step(self, turn):
        if turn.steps == 0:
            turn.say(UserMessage.of("All times are in UTC.", origin="guard"))


class TurnNotes(TurnHook):
    """A turn hook: it tells the person that the harbour master has seen the turn."""

    name = "the harbour master"

    async def before_turn(self, emit):
        self.emit = emit

    async def after_turn(self):
        self.emit(Noticed(level="warning", text="The harbour master has seen this turn."))


async def show_tides(session, argument):
    """Show when there is high water, in all harbours or in one."""
    if argument and argument not in HIGH_WATER:
        raise ToolError(f"There is no harbour {argument!r}.")
    return Reply(
        tables=(
            Table.of(
                (each, HIGH_WATER[each]) for each in sorted(HIGH_WATER) if argument in ("", each)
            ),
        )
    )


TIDE_COMMAND = SlashCommand(("tide",), "[HARBOUR]", "show when there is high water", show_tides)
