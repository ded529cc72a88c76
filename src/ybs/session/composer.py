"""Makes messages of what the person says: the words, and the files that are named in them."""

from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.environment import ToolEnvironment
from ybs.core.events import Emit, Event, Noticed
from ybs.core.messages import Image, Text, UserMessage
from ybs.session.mentions import names_files
from ybs.session.reply import NotSent

if TYPE_CHECKING:
    from ybs.session.attachments import Attacher

#: So many of the newest messages are remembered with their times.
MOST_HEARD = 500


class Heard(Struct, frozen=True):
    """When the person said something, by the clock that never goes back; `is_meanwhile`: while a turn ran."""

    message: UserMessage
    at_seconds: float
    is_meanwhile: bool = False


class Composer:
    """Makes the messages of one session. `attacher` makes what attaches files, `tell` takes what came of it."""

    def __init__(self, attacher: "Callable[[Emit], Attacher]", tell: Emit) -> None:
        self._attacher, self._tell = attacher, tell
        #: What the person said, the oldest first.
        self.heard: deque[Heard] = deque(maxlen=MOST_HEARD)
        self._news: list[Event] = []
        #: Goes with the next words: what commands printed that the person typed.
        self.waiting: list[Text] = []

    async def compose(
        self, words: str, typed: str | None = None, images: Sequence[Image] = ()
    ) -> UserMessage:
        """Make a message. `typed` is the part of the words in which files are looked for, if not in all."""
        message = await self._with_files(UserMessage.of(words, *images), typed, self._tell)
        message = replace(message, content=(*message.content, *self.waiting))
        self.waiting.clear()
        self.heard.append(Heard(message, monotonic()))
        return message

    async def compose_meanwhile(self, words: str, typed: str | None) -> UserMessage | None:
        """Make a message for a running turn; what is to be told about it waits for `tell_news`. None: it is not to be sent."""
        self._news.clear()
        try:
            message = await self._with_files(UserMessage.of(words), typed, self._news.append)
        except NotSent as error:
            notice = Noticed(level="warning", text=str(error), remedies=error.remedies)
            self._tell(notice)
            return None
        self.heard.append(Heard(message, monotonic(), is_meanwhile=True))
        return message

    def tell_news(self) -> None:
        """Emit what came of the files that went with words for a running turn."""
        for event in self._news:
            self._tell(event)
        self._news.clear()

    async def _with_files(self, message: UserMessage, typed: str | None, tell: Emit) -> UserMessage:
        named_in = message.text if typed is None else typed
        if "@" not in named_in and "/" not in named_in:
            return message
        if not names_files(named_in):
            return message
        parts = await self._attacher(tell).parts(named_in)
        return replace(message, content=(*message.content, *parts))


def attacher_in(environment: ToolEnvironment, tell: Emit) -> "Attacher":
    """Return what attaches the files of a session's folders."""
    from ybs.session.attachments import Attacher  # few words name a file

    resources = None
    if environment.has_mcp():
        from ybs.session.resources import ServerResources

        resources = ServerResources(environment.mcp)
    return Attacher(
        environment.workspace,
        environment.policy,
        environment.secrets.firewall,
        tell,
        environment.gate.confirm,
        resources=resources,
    )
