"""Makes messages of what the person says: the words, and the files that are named in them."""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ybs.agent.environment import ToolEnvironment
from ybs.core.errors import YbsError
from ybs.core.events import Emit, Event, Noticed
from ybs.core.messages import Image, Text, UserMessage
from ybs.guards.steering import Steering
from ybs.session.injection import NO_COMMAND
from ybs.session.mentions import (
    NOTHING,
    NamedInWords,
    given_back,
    named_in,
    named_in_said,
    paths_in,
    with_unsure,
)
from ybs.session.reply import NotSent

if TYPE_CHECKING:
    from ybs.agent.user_hooks.hooks import UserHooks
    from ybs.session.attachments import Attacher

#: So many of the newest messages are remembered with their times.
MOST_HEARD = 500


class Heard(Struct, frozen=True):
    """When the person said something, by the clock that never goes back, and what they named; `is_meanwhile`: while a turn ran."""

    message: UserMessage
    at_seconds: float
    named: NamedInWords
    is_meanwhile: bool = False


class Composer:
    """Makes the messages of one session. `attacher` makes what attaches files, `tell` takes what came of it.

    `hooks` see each message before it is said, and may add to it or block it.
    """

    def __init__(
        self, attacher: "Callable[[Emit], Attacher]", tell: Emit, hooks: "UserHooks | None" = None
    ) -> None:
        self._attacher, self._tell, self.hooks = attacher, tell, hooks
        #: The words for the running turn.
        self.steering = Steering(self.compose_meanwhile, self.tell_news)
        #: What the person said, the oldest first.
        self.heard: deque[Heard] = deque(maxlen=MOST_HEARD)
        #: Paths that stood in words which were taken back, and that the person had not named: what a command printed, or a paste.
        self.given_back = set[str]()
        #: Those that the person was asked about, or would have been, since it was not sure that they meant them.
        self.unsure = set[str]()
        self._news: list[Event] = []
        self._names_files = True
        #: Goes with the next words: what commands printed that the person typed.
        self.waiting: list[Text] = []

    async def first(self, prompt: Callable[[], Awaitable[UserMessage]]) -> UserMessage:
        """Return the words that a turn begins with, and what hooks add to them. Raises YbsError where one blocks them."""
        message = await prompt()
        return message if self.hooks is None else await self.hooks.submitted(message)

    async def compose(
        self,
        words: str,
        typed: str | None = None,
        images: Sequence[Image] = (),
        linked: Collection[str] | None = None,
    ) -> UserMessage:
        """Make a message. `typed` is the part of the words in which files are looked for, if not in all, `linked` the paths of links in it."""
        named = self._named(words if typed is None else typed, linked)
        return await self.compose_naming(UserMessage.of(words, *images, typed=typed), named)

    async def compose_naming(self, message: UserMessage, named: NamedInWords) -> UserMessage:
        """Make a message of words in which nothing is looked for; `named` is what goes with them."""
        message = await self._with_files(message, named, self._tell)
        message = replace(message, content=(*message.content, *self.waiting))
        self.waiting.clear()
        self.heard.append(Heard(message, monotonic(), named))
        return message

    async def compose_meanwhile(self, words: str, typed: str | None) -> UserMessage | None:
        """Make a message for a running turn; what is to be told about it waits for `tell_news`. None: it is not to be sent."""
        self._news.clear()
        try:
            named = self._named(words if typed is None else typed)
            message = await self._with_files(
                UserMessage.of(words, typed=typed), named, self._news.append
            )
        except NotSent as error:
            notice = Noticed(level="warning", text=str(error), remedies=error.remedies)
            self._tell(notice)
            return None
        self.heard.append(Heard(message, monotonic(), named, is_meanwhile=True))
        try:
            return message if self.hooks is None else await self.hooks.submitted(message)
        except YbsError as error:
            self._tell(Noticed(level="warning", text=str(error)))
            return None

    def tell_news(self) -> None:
        """Emit what came of the files that went with words for a running turn."""
        for event in self._news:
            self._tell(event)
        self._news.clear()

    def note_given_back(
        self, words: str, typed: str | None = None, linked: Collection[str] | None = None
    ) -> None:
        """Note that words go back into the prompt: sent again, they name no more than the person did, and what was asked about is so again.

        Those of a message that was not sent name what their `typed` part names; `linked` as in `compose`.
        """
        words = words.removeprefix(NO_COMMAND)
        said = (each.named for each in reversed(self.heard) if each.message.words == words)
        named = next(said, NOTHING) if typed is None else named_in_said(typed, linked)
        self.unsure |= {path for path in paths_in(named) if not named.is_sure(path)}
        # All of them: the person may delete those before one that was not looked at.
        self.given_back |= paths_in(named_in(words, most=None)) - paths_in(named)

    def name_no_files(self) -> None:
        """Look for files in no words from now on."""
        self._names_files = False

    def _named(self, words: str, linked: Collection[str] | None = None) -> NamedInWords:
        named = named_in_said(words, linked) if self._names_files else NOTHING
        if self.unsure and named.anywhere is None:
            named = with_unsure(named, self.unsure)
        return given_back(named, self.given_back) if self.given_back else named

    async def _with_files(
        self, message: UserMessage, named: NamedInWords, tell: Emit
    ) -> UserMessage:
        if named == NOTHING:
            return message
        parts = await self._attacher(tell).parts(named)
        return replace(message, content=(*message.content, *parts))


def attacher_in(environment: ToolEnvironment, tell: Emit) -> "Attacher":
    """Return an attacher for the files of a session's folders."""
    from ybs.session.attachments import Attacher, ServerResources  # few words name a file

    resources = ServerResources(environment.mcp) if environment.has_mcp() else None
    return Attacher(
        environment.workspace,
        environment.policy,
        environment.secrets.firewall,
        tell,
        environment.gate.confirm,
        resources=resources,
    )
