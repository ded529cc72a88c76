"""Hand a hook to a session: it runs around every turn, and around every call that may change something."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from ybs import Session
from ybs.agent.hooks import TurnHook
from ybs.testing import ScriptedModel, call


class Printing(TurnHook):
    async def before_turn(self, emit):
        print("the turn begins")

    async def before_change(self, call, effect, paths):
        print(f"{call.name} is about to {effect}", *(Path(path).name for path in paths))

    async def after_change(self, call, effect, paths):
        print(f"{call.name} is done")

    async def after_turn(self):
        print("the turn is over")


async def main():
    model = ScriptedModel([call("write_file", path="hello.txt", content="hello\n"), "Written."])
    with TemporaryDirectory() as folder:
        options = {"mode": "accept-edits", "incognito": True}
        async with Session.open(folder, model=model, hooks=[Printing()], **options) as session:
            print((await session.send("Write hello.txt.")).text)


asyncio.run(main())
