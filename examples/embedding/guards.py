"""Hand a guard to a session: it looks at the turn before every request, adds words, or ends the turn."""

import asyncio
from tempfile import TemporaryDirectory

from ybs import Session
from ybs.core.errors import StopTurn
from ybs.core.messages import UserMessage
from ybs.core.ports import Guard
from ybs.testing import ScriptedModel, call


class ThreeSteps(Guard):
    async def before_step(self, turn):
        if turn.steps == 2:
            turn.say(UserMessage.of("This is your last step.", origin="guard"))
        if turn.steps == 3:
            raise StopTurn("limit", "Three steps have to do.")


async def main():
    model = ScriptedModel([call("list_files")] * 3)
    with TemporaryDirectory() as folder:
        async with Session.open(
            folder, model=model, guards=[ThreeSteps()], incognito=True
        ) as session:
            outcome = await session.send("Look around.")
    print("the model read:", model.requests[2].messages[-1].text)
    print("the turn ended:", outcome.finished.message)


asyncio.run(main())
