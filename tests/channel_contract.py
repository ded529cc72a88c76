"""What every chat platform of the tests can do, so that one suite holds for all channels (tests/frontends/gateway/test_channels.py).

A platform is a server on loopback that speaks the real protocol: channels reach it with their real libraries. `TelegramPlatform` is here;
the others have a file each.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from msgspec import Struct

from chat_platform import TOKEN, ChatPlatform
from ybs.core.errors import YbsError
from ybs.frontends.gateway.channel import Channel, Incoming, MakeChannel
from ybs.frontends.gateway.supervisor import Supervisor, Timing
from ybs.frontends.gateway.telegram import make_channel


class Sent(Struct, kw_only=True):
    """A message of the bot as it stands in a chat: `buttons` are labels and tokens, `edits` the texts that it had before."""

    id: str
    chat: str
    text: str
    thread: str = ""
    buttons: tuple[tuple[str, str], ...] = ()
    file: str = ""
    data: bytes = b""
    edits: tuple[str, ...] = ()


class FakePlatform(ABC):
    """A platform, from `start` to `stop`. `home` is the private chat of `person`, `room` a group that both are in."""

    kind: ClassVar[str]
    make: ClassVar[MakeChannel]
    home: ClassVar[str] = "1"
    person: ClassVar[str] = "1"
    room: ClassVar[str]
    #: What a thread is called in `room`.
    thread: ClassVar[str] = "7"
    url: str = ""

    @abstractmethod
    async def start(self) -> None:
        """Begin to listen, with nothing said yet; after `stop` again at the same address, and with what was said before."""

    @abstractmethod
    async def stop(self) -> None:
        """Break all connections and listen no more."""

    @abstractmethod
    def settings(self, *, wrong: bool = False) -> dict[str, Any]:
        """Return the channel's entry in the settings; with a `wrong` token where asked."""

    @abstractmethod
    async def say(
        self,
        text: str,
        *,
        chat: str = "",
        person: str = "",
        thread: str = "",
        mention: bool = False,
        files: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Have a person write, in `home` where no chat is named. `mention` names the bot."""

    @abstractmethod
    async def press(self, label: str) -> None:
        """Have the person press the newest button of a label."""

    @property
    @abstractmethod
    def sent(self) -> list[Sent]:
        """What the bot said, in order."""

    @property
    @abstractmethod
    def unread(self) -> int:
        """How many events were not acknowledged; 0 where the platform knows nothing of that."""

    @property
    @abstractmethod
    def pings(self) -> list[str]:
        """Whom the bot's messages notify by naming them."""

    @abstractmethod
    def fault(self, what: str, *, seconds: float = 1.0) -> None:
        """Have the next message of the bot meet something.

        `wait`: a pause of so many seconds is wanted; `drop_before`, `drop_after`: the connection breaks before or after it is
        taken; `gone`: the chat does not exist; `refused`: the text is not accepted; `fail`: the platform is out of order;
        `odd`: the answer makes no sense.
        """

    @abstractmethod
    async def disconnect(self) -> None:
        """Break the connection by which events come, where there is one."""

    @abstractmethod
    def double(self) -> None:
        """Have each event from now on come twice."""

    async def until(self, holds: Callable[[], object], seconds: float = 8.0) -> None:
        """Wait until something holds. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110 - what holds may be anywhere
                await asyncio.sleep(0.01)


class Taken:
    """Takes events as the gateway does, and notes them; it refuses so many as `fails` says."""

    def __init__(self) -> None:
        self.events = list[Incoming]()
        self.fails = 0

    async def __call__(self, incoming: Incoming) -> None:
        """Take an event."""
        if self.fails:
            self.fails -= 1
            raise YbsError("the disk is full")
        self.events.append(incoming)

    @property
    def distinct(self) -> list[Incoming]:
        """The events without those that came again."""
        return list({each.id: each for each in self.events}.values())


@asynccontextmanager
async def running(channel: Channel, taken: Taken) -> AsyncGenerator[list[str]]:
    """Run a channel as the gateway does; the block begins when it is connected. Hands out the states that it was in."""
    connected, states = asyncio.Event(), list[str]()

    def say(state: str, sentence: str) -> None:
        states.append(f"{state} {sentence}".strip())
        if state == "connected":
            connected.set()

    supervisor = Supervisor("x", channel, taken, say, Timing(first_wait=0.05))
    task = asyncio.create_task(supervisor.run())
    try:
        async with asyncio.timeout(8):
            await connected.wait()
        yield states
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await channel.close()


class TelegramPlatform(FakePlatform):
    """Telegram, by its fake in chat_platform.py."""

    kind, make, room = "telegram", staticmethod(make_channel), "-5"

    def __init__(self) -> None:
        self._platform = ChatPlatform()
        self._unread: dict[int, Any] = {}

    async def start(self) -> None:
        """See FakePlatform."""
        await self._platform.__aenter__()
        self.url = self._platform.url

    async def stop(self) -> None:
        """See FakePlatform."""
        await self._platform.__aexit__()

    def settings(self, *, wrong: bool = False) -> dict[str, Any]:
        """See FakePlatform."""
        return {"token": ":".join(("9", "B" * 35)) if wrong else TOKEN, "base_url": self.url}

    async def say(
        self,
        text: str,
        *,
        chat: str = "",
        person: str = "",
        thread: str = "",
        mention: bool = False,
        files: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """See FakePlatform."""
        number = int(chat or self.home)
        where: dict[str, Any] = {"chat": number, "person": int(person or self.person)}
        where |= {"kind": "private" if number > 0 else "supergroup", "thread": int(thread or 0)}
        words = f"@yips_bot {text}" if mention else text
        for name, data in files:
            self._platform.attach(data, name=name, caption=words, **where)
        if not files:
            self._platform.say(words, **where)

    async def press(self, label: str) -> None:
        """See FakePlatform."""
        self._platform.press(label, person=int(self.person))

    @property
    def sent(self) -> list[Sent]:
        """See FakePlatform."""
        return [
            Sent(
                id=str(each.message),
                chat=str(each.chat),
                text=each.text,
                thread=str(each.thread or ""),
                buttons=tuple((b["text"], b["callback_data"]) for row in each.buttons for b in row),
                file=each.file,
                data=each.data,
                edits=tuple(each.texts[:-1]),
            )
            for each in self._platform.sent
        ]

    @property
    def unread(self) -> int:
        """See FakePlatform."""
        return self._platform.unread

    @property
    def pings(self) -> list[str]:
        """See FakePlatform."""
        texts = [
            re.sub("<(code|pre)>.*?</(code|pre)>", "", each.text, flags=re.S) for each in self.sent
        ]
        return [name for text in texts for name in re.findall(r"(?<!\w)@\w+", text)]

    def fault(self, what: str, *, seconds: float = 1.0) -> None:
        """See FakePlatform."""
        knobs: dict[str, dict[str, Any]] = {
            "wait": {"fault": "wait", "retry_after": int(seconds)},
            "gone": {"fault": "error", "code": 403, "description": "Forbidden: bot was kicked"},
            "refused": {"fault": "error", "description": "Bad Request: can't parse entities"},
        }
        self._platform.knob(method="sendMessage", **knobs.get(what, {"fault": what}))

    async def disconnect(self) -> None:
        """See FakePlatform."""
        self._platform.knob("drop_before", "getUpdates")

    def double(self) -> None:
        """See FakePlatform."""
        self._platform.set(doubles=True)
