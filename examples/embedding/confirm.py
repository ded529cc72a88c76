"""Answer for the person: `confirm` is asked before every call that the mode does not allow by itself."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from ybs import Session
from ybs.core.ports import Answer
from ybs.testing import ScriptedModel, call


async def confirm(question):
    print(question.preview.title)
    if question.call.name == "write_file":
        return Answer(is_allowed=True)
    return Answer(is_allowed=False, reason="files are kept here")


async def main():
    write = call("write_file", path="notes.txt", content="milk\n")
    model = ScriptedModel([write, call("delete_file", path="notes.txt"), "I may not delete it."])
    with TemporaryDirectory() as folder:
        async with Session.open(folder, model=model, confirm=confirm, incognito=True) as session:
            outcome = await session.send("Write down what to buy, then tidy up.")
        print(outcome.text, "Refused:", outcome.refusals)
        print("notes.txt says:", (Path(folder) / "notes.txt").read_text())


asyncio.run(main())
