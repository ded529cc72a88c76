"""The interface to a chat platform: a `Channel` hands in `Incoming` events and sends `Outgoing` messages.

A channel knows its platform and nothing of sessions, people or rates. Those of third parties register in the entry points `ybs.channels`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from ybs.core.errors import YbsError


class ChatPlace(Struct, frozen=True):
    """Where something is said: a chat of an account of a channel, or a thread in it.

    `channel` is the name in the settings, `account` the id of the bot there: two bots in one chat have nothing in common. `person` is the
    other one in a private chat, as far as it is known: on some platforms somebody else may take their place in it.
    """

    channel: str
    account: str
    kind: Literal["private", "group"]
    chat: str
    thread: str = ""
    person: str = ""


def chat_of(place: ChatPlace) -> str:
    """Return the name of a chat with all of its threads: platforms count what is sent to it as a whole."""
    return "\n".join((place.channel, place.account, place.chat))


class IncomingFile(Struct, frozen=True, kw_only=True):
    """A file that came with a message: `ref` is what the channel fetches it by. `size` is in bytes, 0 where the platform does not say."""

    ref: str
    name: str
    media_type: str = ""
    size: int = 0


class Incoming(Struct, frozen=True, kw_only=True):
    """An event of a platform. `id` is the same whenever the platform sends it again, and never used for another: `telegram:BOT:UPDATE`.

    `person` is the platform's own id of who sent it (not a name, which can be chosen), `name` is shown only. `text` is without the mention
    of the bot. `is_addressed`: a private chat, a mention, or an answer to the bot. `button` is the `token` of the button that was
    pressed, and `message` the platform's id of the message that it stands under, or that was sent. `unsupported` names what the
    message was where it cannot be read, such as "a voice message". `at` is in seconds since 1970, by the platform's clock. Messages with
    the same `album` belong together. `is_own`: the person wrote the words here, as they are; what is forwarded, edited or comes from another
    bot is never a command or an answer. Each channel has to say it. `moved_to` is the new id of a chat that the platform has given another one.
    """

    id: str
    place: ChatPlace
    person: str
    name: str
    at: float
    text: str = ""
    files: tuple[IncomingFile, ...] = ()
    button: str = ""
    message: str = ""
    is_addressed: bool = True
    is_own: bool
    unsupported: str = ""
    album: str = ""
    moved_to: str = ""

    @property
    def own_words(self) -> str:
        """The words as far as they may be a command or an answer: those that the person wrote."""
        return self.text if self.is_own else ""


class Button(Struct, frozen=True):
    """A button under a message. `token` says nothing by itself and is at most 60 ASCII characters."""

    label: str
    token: str


class OutgoingFile(Struct, frozen=True, kw_only=True):
    """A file to send."""

    name: str
    data: bytes
    media_type: str = "application/octet-stream"


class Outgoing(Struct, frozen=True, kw_only=True):
    """One message, short enough for the platform. `text` is in its dialect, empty where `plain` alone is to be sent, which has no markup.

    `nonce` is the same for each try to send this message; a platform that can tells doubles by it.
    """

    text: str
    plain: str
    buttons: tuple[tuple[Button, ...], ...] = ()
    file: OutgoingFile | None = None
    nonce: str = ""


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a platform can do. A message has at most `length` of the `unit`; a file to send at most `file_bytes` (0: none can be sent).

    `wait` is the time between two messages to one chat, in seconds, which the platform asks of a bot.
    """

    length: int
    unit: Literal["characters", "utf16"] = "characters"
    dialect: Literal["plain", "telegram-html", "discord", "whatsapp", "slack", "matrix-html"] = (
        "plain"
    )
    can_edit: bool = False
    shows_typing: bool = False
    file_bytes: int = 0
    wait: float = 1.0


class ChannelError(YbsError):
    """A platform did not do what was asked; it is worth trying again in a while."""


class WaitError(ChannelError):
    """The platform wants nothing more for so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The platform asks for a pause of {seconds:.0f} s.")
        self.seconds = seconds


class UnreachableError(ChannelError):
    """There was no connection to the platform, so nothing was sent."""


class MaybeSentError(ChannelError):
    """The connection broke after a message was sent off: it may have arrived or not."""


class ChatGoneError(ChannelError):
    """The chat does not exist (any more), or has shut the bot out. Trying again does not help."""


class ChatMovedError(ChannelError):
    """The platform has given the chat another id (`chat`); nothing was sent."""

    def __init__(self, chat: str) -> None:
        super().__init__("The chat has another id now.")
        self.chat = chat


class MessageGoneError(ChannelError):
    """The message that was to be edited does not exist, or cannot be edited (any more)."""


class RefusedError(ChannelError):
    """The platform did not accept a message, perhaps for its markup: `plain` alone may do. The same again does not help."""


class RivalError(ChannelError):
    """Another process receives the events of this account: only one of the two would get each of them."""


class BadSettingsError(ChannelError):
    """The entry in the settings is not right, such as a token that the platform does not know. Trying again does not help."""


#: Takes an event; when it returns, the event is kept on the disk and may be acknowledged. Raises YbsError where it is not.
Take = Callable[[Incoming], Awaitable[None]]


class Channel(Protocol):
    """A platform. All methods raise ChannelError, or one of its kinds, and no error of a library."""

    @property
    def capabilities(self) -> Capabilities:
        """What the platform can do."""
        ...

    @property
    def account(self) -> str:
        """The platform's id of the bot; "" before `run` has connected."""
        ...

    async def run(self, take: Take, connected: Callable[[], None]) -> None:
        """Receive events until cancelled: `connected` is called when the platform has accepted the account. Each event is acknowledged after `take` has returned, in order."""
        ...

    async def probe(self) -> None:
        """Ask the platform for a sign of life."""
        ...

    async def send(self, place: ChatPlace, message: Outgoing) -> str:
        """Send a message and return the platform's id of it."""
        ...

    async def edit(self, place: ChatPlace, message_id: str, message: Outgoing) -> None:
        """Put another text, and other buttons, in the place of a message's. The same again is not an error."""
        ...

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that an answer is on its way, for some seconds."""
        ...

    async def fetch(self, file: IncomingFile, most_bytes: int) -> bytes:
        """Return the content of a file. Raises ChannelError where it is larger."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


#: What an entry point of `ybs.channels` names: makes a channel of its name and its entry in the settings, in which `folder` is added:
#: the channel may keep there what it has to know, as files of `ybs.config.private_file`. Raises BadSettingsError.
MakeChannel = Callable[[str, Mapping[str, Any]], Channel]
