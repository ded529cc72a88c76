"""Hand a model of your own to a session: a name, a window, and a stream that ends in `AssistantSaid`."""

import asyncio
from tempfile import TemporaryDirectory

from ybs import Session
from ybs.core.events import AssistantSaid, TextStreamed
from ybs.core.messages import AssistantMessage, Text


class Echo:
    name = "echo"
    window = 32_768  # tokens

    async def stream(self, request):
        text = f"You said: {request.messages[-1].text}"
        yield TextStreamed(text=text)
        yield AssistantSaid.of(AssistantMessage(content=(Text(text=text),), model=self.name))


async def main():
    with TemporaryDirectory() as folder:
        async with Session.open(folder, model=Echo(), incognito=True) as session:
            print((await session.send("Hello.")).text)
            status = session.status()
            print(status.provider, status.model, status.window)


asyncio.run(main())
