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
from ybs.session.mentions import NOTHING, NamedInWords, is_long, may_name, named_in_said
from ybs.session.reply import NotSent

if TYPE_CHECKING:
    from ybs.agent.user_hooks.hooks import UserHooks
    from ybs.session.attachments import Attacher

#: So many of the newest messages are remembered with their times.
MOST_HEARD = 500


class Heard(Struct, frozen=True):
    """When the person said something, by the clock that never goes back; `is_own`: they typed all of it, `is_meanwhile`: while a turn ran."""

    message: UserMessage
    at_seconds: float
    is_own: bool
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
        #: Whether words that others may have written went back into the prompt. They can stand in whatever comes from there, in any form.
        self.has_given_back = False
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
        typed = typed if linked is not None else self._surely(typed)  # no prompt of ybs
        message = UserMessage.of(words, *images, typed=typed)
        return await self.compose_naming(message, named, is_own=typed is None)

    async def compose_naming(
        self, message: UserMessage, named: NamedInWords, *, is_own: bool = False
    ) -> UserMessage:
        """Make a message of words in which nothing is looked for; `named` is what goes with them, `is_own` as in `Heard`."""
        message = await self._with_files(message, named, self._tell)
        message = replace(message, content=(*message.content, *self.waiting))
        self.waiting.clear()
        self.heard.append(Heard(message, monotonic(), is_own))
        return message

    async def compose_meanwhile(self, words: str, typed: str | None) -> UserMessage | None:
        """Make a message for a running turn; what is to be told about it waits for `tell_news`. None: it is not to be sent."""
        self._news.clear()
        try:
            named = self._named(words if typed is None else typed)
            message = UserMessage.of(words, typed=self._surely(typed))
            message = await self._with_files(message, named, self._news.append)
        except NotSent as error:
            notice = Noticed(level="warning", text=str(error), remedies=error.remedies)
            self._tell(notice)
            return None
        self.heard.append(Heard(message, monotonic(), message.typed is None, is_meanwhile=True))
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

    def note_given_back(self, words: str, *, is_own: bool | None = None) -> None:
        """Note that words go back into the prompt; `is_own`: the person typed them all (None: where they were heard so)."""
        words = words.removeprefix(NO_COMMAND)
        if is_own is None:
            is_own = any(each.is_own and each.message.words == words for each in self.heard)
        self.has_given_back |= may_name(words) and (is_long(words) or not is_own)

    def take_over(self, *, has_given_back: bool) -> None:
        """Go on with the prompts of another composer."""
        self.has_given_back |= has_given_back

    def name_no_files(self) -> None:
        """Look for files in no words from now on."""
        self._names_files = False

    def _named(self, words: str, linked: Collection[str] | None = None) -> NamedInWords:
        if not self._names_files:
            return NOTHING
        return named_in_said(words, () if self.has_given_back and linked is None else linked)

    def _surely(self, typed: str | None) -> str | None:
        """Return what the person typed, as far as it is sure."""
        return "" if self.has_given_back else typed

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
