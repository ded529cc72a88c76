"""Serve two people in one program: each has a host, and so settings, memories and sessions of their own."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from ybs import Host, Session
from ybs.testing import ScriptedModel, call


async def work(home, project, fact):
    host = Host.of({"HOME": str(home), "PATH": "/usr/bin:/bin"})
    model = ScriptedModel([call("memorize", text=fact), "Noted.", "I remember."])
    for words in ("Note this.", "What do you know?"):
        async with Session.open(project, host=host, model=model, allow=("memorize",)) as session:
            await session.send(words)
    told = model.requests[-1].system
    kept = sum(1 for file in home.rglob("*.jsonl"))
    knows = [name for name in ("tea", "coffee") if name in told]
    return f"{home.name}: {kept} sessions, knows of {', '.join(knows)}"


async def main():
    with TemporaryDirectory() as top:
        names = {"ann": "Likes tea.", "bob": "Likes coffee."}
        homes = [Path(top, name) for name in (*names, "project")]
        for folder in homes:
            folder.mkdir()
        *homes, project = homes
        both = (work(home, project, names[home.name]) for home in homes)
        print(*await asyncio.gather(*both), sep="\n")


asyncio.run(main())
