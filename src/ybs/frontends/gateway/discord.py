"""The channel Discord: a bot in private chats, and where it is mentioned in the channels and threads of servers.

Discord is told nothing of what was kept: a lost connection goes on where it broke, and where Discord does not let it, as after a restart,
the chats that are known are read from where they were read before. A message that may have been sent is sent again with the nonce that it
had, by which Discord tells that it has it.
"""

import asyncio
import hashlib
import io
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import aiohttp
import discord
import msgspec
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route
from msgspec import Struct

from ybs.config import private_file
from ybs.config.private_file import Unsafe
from ybs.core.decoding import from_json
from ybs.core.threads import in_thread
from ybs.core.time_limits import time_limit
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Capabilities,
    ChannelError,
    ChatGoneError,
    ChatPlace,
    Incoming,
    IncomingFile,
    MaybeSentError,
    MessageGoneError,
    Outgoing,
    RefusedError,
    Take,
    UnreachableError,
    WaitError,
)
from ybs.frontends.gateway.received import encodable, fetched, settings_of, too_large

T = TypeVar("T")
CAPABILITIES: Final = Capabilities(
    length=2000,
    unit="utf16",
    dialect="discord",
    can_edit=True,
    shows_typing=True,
    file_bytes=10_000_000,
)
#: None of these is privileged: what a message says is told where the bot is mentioned, and in private.
_INTENTS: Final = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
_TIMEOUT, _FILE_TIMEOUT = 30.0, 120.0
#: The library sits out shorter pauses by itself.
_SHORT_PAUSE: Final = 5.0
#: Where the answer does not say for how long nothing more is wanted.
_UNSAID_PAUSE: Final = 60.0
#: A message has five rows of five buttons.
_ROWS, _IN_ROW = 5, 5
_LONGEST_NONCE: Final = 25
#: So many chats are known, of which is read what was missed: so many messages of each, and no older ones.
_MOST_CHATS, _MOST_MISSED = 200, 100
_LONGEST_AWAY: Final = timedelta(days=1)
_UNKNOWN_BOT: Final = "Discord does not know the token."
_TYPES: Final = (discord.MessageType.default, discord.MessageType.reply)
#: Discord's codes of errors, and the errors that they are.
_CODES: Final[Mapping[int, type[ChannelError]]] = {
    10003: ChatGoneError,  # unknown channel
    10008: MessageGoneError,  # unknown message
    30046: MessageGoneError,  # too many edits of an old message
    50005: MessageGoneError,  # somebody else's message
    50007: ChatGoneError,  # this person takes no messages
    50083: ChatGoneError,  # the thread is archived
    160005: ChatGoneError,  # the thread is locked
}
_KINDS: Final[tuple[tuple[type[Exception], type[ChannelError], str], ...]] = (
    (discord.LoginFailure, BadSettingsError, _UNKNOWN_BOT),
    (aiohttp.ClientConnectorError, UnreachableError, "Discord cannot be reached."),
    (RuntimeError, UnreachableError, "The connection to Discord is closed."),
    (TimeoutError, MaybeSentError, "Discord did not answer in time."),
    (aiohttp.ClientError, MaybeSentError, "The connection to Discord broke."),
    (OSError, MaybeSentError, "The connection to Discord broke."),
)
#: What comes of an answer that makes no sense.
_ODD: Final = (LookupError, TypeError, ValueError, AttributeError)
_log = logging.getLogger("ybs.gateway.discord")


class _OddAnswerError(MaybeSentError):
    """The platform answers in other words than it should."""


class _Settings(Struct, frozen=True):
    """The entry of a channel. `base_url` and `gateway_url` are those of a proxy, for all bots of the process."""

    token: str = ""
    base_url: str = ""
    gateway_url: str = ""
    folder: str = ""


def make_channel(name: str, section: Mapping[str, Any]) -> "Discord":
    """Make a channel of its name and its entry in the settings. Raises BadSettingsError."""
    settings = settings_of(section, _Settings)
    if not settings.token.strip():
        raise BadSettingsError("there is no token: https://discord.com/developers gives one")
    if settings.base_url:
        Route.BASE = settings.base_url.rstrip("/")
    if settings.gateway_url:
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(settings.gateway_url)
    logging.getLogger("discord").setLevel(logging.CRITICAL)  # what fails is told here
    return Discord(name, settings)


class _Client(discord.Client):
    """The library's client: hands on what comes, in its order, and None where something may have been missed."""

    def __init__(
        self, came: Callable[[discord.Message | discord.Interaction | None], None]
    ) -> None:
        super().__init__(
            intents=_INTENTS,
            allowed_mentions=discord.AllowedMentions.none(),
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
        )
        self.http.max_ratelimit_timeout = _SHORT_PAUSE
        self._came = came

    async def on_connect(self) -> None:
        self._came(None)

    async def on_message(self, message: discord.Message) -> None:
        self._came(message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self._came(interaction)


class Discord:
    """A bot. See `Channel`."""

    capabilities = CAPABILITIES

    def __init__(self, name: str, settings: _Settings) -> None:
        self._name, self._settings = name, settings
        self.account = ""
        self._client: _Client | None = None
        self._file = Path(settings.folder) / "read.json" if settings.folder else None
        #: Up to which message each chat was read, and whether that is in the file.
        self._read, self._is_kept = self._read_before(), True

    # Receiving

    async def run(self, take: Take, connected: Callable[[], None]) -> None:
        """Receive events until cancelled; see `Channel`."""
        events = asyncio.Queue[Incoming | discord.Interaction | None]()

        def came(event: discord.Message | discord.Interaction[Any] | None) -> None:
            if event is None or isinstance(event, discord.Interaction):
                events.put_nowait(event)
            elif incoming := self._incoming(event, self._place(event.channel)):
                if incoming.is_addressed:
                    self._know(incoming.place, event.id - 1)
                events.put_nowait(incoming)

        client = _Client(came)
        try:
            await _asked(client.login(self._settings.token.strip()))
            self._client, self.account = client, str(cast(discord.ClientUser, client.user).id)
            connecting = asyncio.create_task(client.connect())
            taking = asyncio.create_task(self._take_all(events, take, connected))
            try:
                await asyncio.wait((connecting, taking), return_when=asyncio.FIRST_COMPLETED)
            finally:
                connecting.cancel()
                taking.cancel()
                await asyncio.gather(connecting, taking, return_exceptions=True)
            for task in (taking, connecting):
                if not task.cancelled():
                    await _asked(task)
        finally:
            self._client = None
            await client.close()

    async def _take_all(
        self,
        events: asyncio.Queue[Incoming | discord.Interaction | None],
        take: Take,
        connected: Callable[[], None],
    ) -> None:
        while True:
            event = await events.get()
            if isinstance(event, discord.Interaction):
                await self._take_press(event, take)
            elif event is not None:
                await self._take(event, take)
            else:
                connected()
                for place, newest in list(self._read.items()):
                    if place.account == self.account:
                        await self._catch_up(place, newest, take)

    async def _take(self, incoming: Incoming, take: Take) -> None:
        await self._keep()
        await take(incoming)
        if incoming.is_addressed:
            self._read[incoming.place], self._is_kept = int(incoming.message), False
            await self._keep()

    def _know(self, place: ChatPlace, message: int) -> None:
        """Note from where on a chat is to be read, if it is not known."""
        if place not in self._read:
            self._read[place], self._is_kept = message, False
        if len(self._read) > _MOST_CHATS:
            del self._read[next(iter(self._read))]

    def _read_before(self) -> dict[ChatPlace, int]:
        """Return what an earlier process has read. Where that is damaged, nothing is read again."""
        try:
            data = private_file.read(self._file) if self._file else None
            return dict(from_json(data or b"[]", list[tuple[ChatPlace, int]]))
        except (msgspec.DecodeError, Unsafe, OSError) as error:
            _log.warning("%s cannot be read: %s", self._file, type(error).__name__)
            return {}

    async def _keep(self) -> None:
        if self._file is None or self._is_kept:
            return
        file, data = self._file, msgspec.json.encode(list(self._read.items()))
        self._is_kept = True
        try:
            await in_thread(lambda: private_file.replace(file, data, waits=False))
        except (Unsafe, OSError) as error:
            raise ChannelError(f"{file} cannot be written: {error}") from error

    async def _catch_up(self, place: ChatPlace, newest: int, take: Take) -> None:
        """Take what was said in a chat behind a message: Discord may have told nobody. What was taken is known by its id."""
        oldest = discord.utils.time_snowflake(discord.utils.utcnow() - _LONGEST_AWAY)
        after = discord.Object(max(newest, oldest))
        history = self._chat(place).history(limit=_MOST_MISSED, after=after, oldest_first=True)
        try:
            messages = await _asked(_listed(history))
        except (ChatGoneError, _OddAnswerError) as error:  # asked again it would be no better
            _log.warning("a chat cannot be read: %s", type(error).__name__)
            return
        for message in messages:
            incoming = self._incoming(message, place)
            if incoming is not None:
                await self._take(incoming, take)

    async def _take_press(self, interaction: discord.Interaction, take: Take) -> None:
        message, channel = interaction.message, interaction.channel
        is_press = interaction.type is discord.InteractionType.component
        if not is_press or message is None or channel is None:
            return
        data = cast(Mapping[str, Any], interaction.data or {})
        await take(
            Incoming(
                id=self._id(interaction.id),
                place=self._place(channel),
                person=str(interaction.user.id),
                name=encodable(interaction.user.display_name),
                at=time.time(),
                button=str(data.get("custom_id", "")),
                message=str(message.id),
                is_own=True,
            )
        )
        try:
            await _asked(interaction.response.defer())  # else Discord says that nobody answers
        except ChannelError as error:
            _log.info("a press was not acknowledged: %s", type(error).__name__)

    def _incoming(self, message: discord.Message, place: ChatPlace) -> Incoming | None:
        if message.author.bot or message.webhook_id is not None or message.type not in _TYPES:
            return None  # two bots could talk with each other for ever
        is_meant = any(str(each.id) == self.account for each in message.mentions)
        unsupported = _unsupported(message)
        files = () if unsupported else tuple(_files(message))
        text = self._text(message)
        if not text and not files and not unsupported and not is_meant:
            return None
        return Incoming(
            id=self._id(message.id),
            place=place,
            person=str(message.author.id),
            name=encodable(message.author.display_name),
            at=message.created_at.timestamp(),
            text=text,
            files=files,
            message=str(message.id),
            is_addressed=is_meant or place.kind == "private",
            is_own=not (message.message_snapshots or message.edited_at or message.application_id),
            unsupported=unsupported,
        )

    def _text(self, message: discord.Message) -> str:
        """Return a message's words without the mention of the bot."""
        text = message.content
        for mention in (f"<@{self.account}>", f"<@!{self.account}>"):
            text = text.replace(mention, "")
        for snapshot in message.message_snapshots:
            text = f"(forwarded)\n{snapshot.content}\n{text}"
        return encodable(text).strip()

    def _place(self, channel: Any) -> ChatPlace:
        """Return a chat: that of a thread is the channel that it is in."""
        is_private = isinstance(channel, discord.DMChannel)
        parent = channel.parent_id if isinstance(channel, discord.Thread) else 0
        return ChatPlace(
            channel=self._name,
            account=self.account,
            kind="private" if is_private else "group",
            chat=str(parent or channel.id),
            thread=str(channel.id) if parent else "",
        )

    def _id(self, snowflake: int) -> str:
        return f"{self._name}:{self.account}:{snowflake}"

    # Sending

    async def probe(self) -> None:
        """Ask for a sign of life; without `run`, whether Discord knows the token."""
        if not self.account:
            client = _Client(lambda _: None)
            try:
                await _asked(client.login(self._settings.token.strip()))
            finally:
                await client.close()
            return
        client = self._connected
        if not (cast(DiscordWebSocket | None, client.ws) and client.ws.open):
            raise UnreachableError("Discord sends no events.")
        await _asked(client.fetch_user(int(self.account)))

    async def send(self, place: ChatPlace, message: Outgoing) -> str:
        """Send a message and return its id. Once more with the same nonce is once."""
        seconds = _TIMEOUT if message.file is None else _FILE_TIMEOUT
        try:
            sent = await _asked(self._sent(place, message), seconds)
        except MaybeSentError:
            if not message.nonce:
                raise
            sent = await _asked(self._sent(place, message), seconds)
        self._know(place, sent.id)
        return str(sent.id)

    def _sent(self, place: ChatPlace, message: Outgoing) -> Awaitable[discord.Message]:
        given: dict[str, Any] = {"view": _view(message)} if message.buttons else {}
        if message.file is not None:
            given["file"] = discord.File(io.BytesIO(message.file.data), message.file.name)
        if message.nonce:
            digest = hashlib.sha256(message.nonce.encode()).hexdigest()
            given["nonce"] = digest[:_LONGEST_NONCE]
        text = message.text or _escaped(message.plain)
        # Without embeds: the platform would fetch addresses.
        return self._chat(place).send(text, suppress_embeds=True, **given)

    async def edit(self, place: ChatPlace, message_id: str, message: Outgoing) -> None:
        """Put another text in the place of a message's."""
        part = self._chat(place).get_partial_message(int(message_id))
        text = message.text or _escaped(message.plain)
        await _asked(part.edit(content=text, view=_view(message) if message.buttons else None))

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that an answer is being written."""
        await _asked(self._connected.http.send_typing(int(place.thread or place.chat)))

    async def fetch(self, file: IncomingFile, most_bytes: int) -> bytes:
        """Return the content of a file."""
        if file.size > most_bytes:
            raise too_large(most_bytes)
        hosts = ("discordapp.com", "discordapp.net", self._settings.base_url)
        return await fetched(file.ref, most_bytes, hosts=hosts)

    async def close(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.close()

    @property
    def _connected(self) -> _Client:
        if self._client is None:
            raise UnreachableError("Discord is not connected.")
        return self._client

    def _chat(self, place: ChatPlace) -> discord.PartialMessageable:
        return self._connected.get_partial_messageable(int(place.thread or place.chat))


async def _asked(asking: Awaitable[T], seconds: float = _TIMEOUT) -> T:
    """Return what the platform answers. Raises ChannelError, without what it was raised from."""
    try:
        async with time_limit(seconds):
            return await asking
    except (discord.DiscordException, aiohttp.ClientError, OSError, RuntimeError, *_ODD) as error:
        raised = _translated(error)
    raise raised


def _translated(error: Exception) -> ChannelError:
    """Return the error of the gateway that one of the library is."""
    if isinstance(error, discord.RateLimited):
        return WaitError(error.retry_after)
    if isinstance(error, discord.HTTPException) and not isinstance(error, discord.LoginFailure):
        return _answered(error)
    if isinstance(error, discord.ConnectionClosed):
        words = f"Discord ended the connection ({error.code})."
        return BadSettingsError(_UNKNOWN_BOT) if error.code == 4004 else ChannelError(words)
    for failure, kind, words in _KINDS:
        if isinstance(error, failure):
            return kind(words)
    return _OddAnswerError(f"Discord's answer could not be understood ({type(error).__name__}).")


def _answered(error: discord.HTTPException) -> ChannelError:
    """Return the error that an answer with a status is."""
    words = f"Discord: {error.text or error.status}."
    if error.status == 429:
        after = error.response.headers.get("Retry-After", "")
        return WaitError(float(after) if after.isdecimal() else _UNSAID_PAUSE)
    if error.status >= 500:
        return MaybeSentError("Discord is out of order.")
    if error.status == 401:
        return BadSettingsError(_UNKNOWN_BOT)
    missing = ChatGoneError if error.status in (403, 404) else RefusedError
    return _CODES.get(error.code, missing)(words)


async def _listed(messages: AsyncIterator[discord.Message]) -> list[discord.Message]:
    return [each async for each in messages]


def _view(message: Outgoing) -> discord.ui.View:
    """Return the buttons of a message. What is pressed comes as an event, so the library is to remember nothing."""
    buttons = [each for row in message.buttons for each in row][: _ROWS * _IN_ROW]
    in_row = 1 if len(buttons) <= _ROWS else _IN_ROW
    view = discord.ui.View(timeout=None)
    for number, each in enumerate(buttons):
        view.add_item(
            discord.ui.Button(label=each.label, custom_id=each.token, row=number // in_row)
        )
    view.stop()
    return view


def _escaped(plain: str) -> str:
    """Return a text that is shown as it is, where there is room for that."""
    escaped = discord.utils.escape_markdown(plain)
    return escaped if len(escaped.encode("utf-16-le")) // 2 <= CAPABILITIES.length else plain


def _unsupported(message: discord.Message) -> str:
    if message.flags.voice:
        return "a voice message"
    if message.poll is not None:
        return "a poll"
    return "a sticker" if message.stickers else ""


def _files(message: discord.Message) -> Iterator[IncomingFile]:
    for each in message.attachments:
        yield IncomingFile(
            ref=each.url,
            name=encodable(each.filename),
            media_type=each.content_type or "",
            size=each.size,
        )
