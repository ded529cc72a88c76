"""Hand slash commands to a session: those of ybs, and one of your own. None of them asks the model."""

import asyncio
from tempfile import TemporaryDirectory

from ybs import Session
from ybs.commands.open import SlashCommands
from ybs.session.reply import Reply
from ybs.testing import ScriptedModel


class MyCommands(SlashCommands):
    async def run(self, session, line):
        if line.split()[0] == "/shout":
            return Reply(text=line.removeprefix("/shout").strip().upper())
        return await super().run(session, line)


async def main():
    options = {"model": ScriptedModel(["Hello."]), "commands": MyCommands(), "incognito": True}
    with TemporaryDirectory() as folder:
        async with Session.open(folder, **options) as session:
            print((await session.handle("/mode plan")).text)
            print((await session.handle("/shout good morning")).text)
            print((await session.handle("These words are for the model.")).text)


asyncio.run(main())
