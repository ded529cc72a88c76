"""Hand a toolbox to a session: it is opened and closed with it, and may change its tools."""

import asyncio

from msgspec import Raw

from ybs import Session
from ybs.core.messages import ToolResult
from ybs.core.ports import Toolbox, ToolSpec
from ybs.testing import ScriptedModel, call


class Door(Toolbox):
    tool = ToolSpec(name="unlock", description="", parameters=Raw(b'{"type": "object"}'))

    async def aclose(self):  # `open` is its counterpart, before the first turn
        print("closed")

    def specs(self):
        return [self.tool]

    def is_read_only(self, call):
        return False  # so its calls wait for each other

    async def run(self, call, emit):
        self.tool = ToolSpec(name="enter", description="", parameters=self.tool.parameters)
        return ToolResult(call_id=call.id, name=call.name, output=f"{call.name}: done.")


async def main():
    model = ScriptedModel([call("unlock"), call("enter"), "I am inside."])
    options = {"model": model, "mode": "bypass", "incognito": True}
    async with Session.open(toolboxes=[Door()], **options) as session:
        print((await session.send("Go in.")).text)
    print("offered:", *(each.tools[-1].name for each in model.requests))


asyncio.run(main())
