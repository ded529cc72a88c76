"""Hand a tool of your own to a session: a name, a description, an effect, a JSON Schema and a function."""

import asyncio
from tempfile import TemporaryDirectory

from msgspec import Raw

from ybs import Session
from ybs.core.ports import ToolOutput
from ybs.testing import ScriptedModel, call


class Weather:
    name = "weather"
    description = "Return today's weather in a city."
    effect = "read"  # a tool that may do more is confirmed first
    parameters = Raw(
        b'{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'
    )

    async def run(self, arguments, print_live):
        return ToolOutput(output=f"Sun in {arguments['city']}.")


async def main():
    # In place of a model, a script: it calls the tool, then answers.
    model = ScriptedModel([call("weather", city="Bonn"), "Leave the umbrella at home."])
    with TemporaryDirectory() as folder:
        async with Session.open(folder, model=model, tools=[Weather()], incognito=True) as session:
            outcome = await session.send("Do I need an umbrella in Bonn?")
    print("the tool said:", model.requests[1].messages[-1].output)
    print("the model said:", outcome.text)


asyncio.run(main())
