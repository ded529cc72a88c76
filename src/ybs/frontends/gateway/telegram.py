"""The channel Telegram: bots of its Bot API (https://core.telegram.org/bots/api), by long polling or by a webhook.

An update is acknowledged by the next request for updates, so that one is made only when all before it are taken. The token is part of each
address: no error, and no line of a log, holds one.
"""

import asyncio
import json
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from secrets import token_urlsafe
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlencode

import httpx
import msgspec
from msgspec import Struct
from telegram import (
    Animation,
    Audio,
    Bot,
    Document,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    Update,
    User,
    Video,
)
from telegram.constants import ChatAction, ChatType, ParseMode
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.request import HTTPXRequest

from ybs.core.decoding import decodable
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Capabilities,
    ChannelError,
    ChatGoneError,
    ChatMovedError,
    ChatPlace,
    Incoming,
    IncomingFile,
    MaybeSentError,
    MessageGoneError,
    Outgoing,
    RefusedError,
    RivalError,
    Take,
    UnreachableError,
    WaitError,
)
from ybs.frontends.gateway.received import encodable

T = TypeVar("T")
CAPABILITIES: Final = Capabilities(
    length=4096,
    unit="utf16",
    dialect="telegram-html",
    can_edit=True,
    shows_typing=True,
    file_bytes=50_000_000,
)
#: What bots may fetch (https://core.telegram.org/bots/api#getfile).
MOST_FETCHED: Final = 20_000_000
_HOST: Final = "https://api.telegram.org"
_POLL_SECONDS: Final = 25
_SHORTEST_POLL: Final = 0.3
_TIMEOUT: Final = 20.0
#: Kinds of updates that are asked for.
_UPDATES: Final = ("message", "callback_query")
#: What the platform says about a bad request, in lower case, and the error that it is.
_BAD_REQUESTS: Final[tuple[tuple[str, type[ChannelError]], ...]] = (
    ("message to edit not found", MessageGoneError),
    ("message can't be edited", MessageGoneError),
    ("message_id_invalid", MessageGoneError),
    ("there is no text in the message to edit", MessageGoneError),
    ("chat not found", ChatGoneError),
    ("message thread not found", ChatGoneError),
    ("topic_closed", ChatGoneError),
    ("topic_deleted", ChatGoneError),
    ("not enough rights", ChatGoneError),
    ("have no rights", ChatGoneError),
    ("chat_write_forbidden", ChatGoneError),
    ("group chat was deactivated", ChatGoneError),
    ("peer_id_invalid", ChatGoneError),
)
#: Times are `timedelta`s: the library warns of each that is not, with its next version in mind.
os.environ.setdefault("PTB_TIMEDELTA", "true")
#: What the library raises where something is missing in an answer.
_ODD: Final = (KeyError, TypeError, ValueError, AttributeError)
_NOT_UNDERSTOOD: Final = "Telegram's answer could not be understood."
_log = logging.getLogger("ybs.gateway.telegram")
_SAID: Final[dict[type[TelegramError], tuple[type[ChannelError], str]]] = {
    InvalidToken: (
        BadSettingsError,
        "Telegram does not know the token, or the base_url is wrong.",
    ),
    Conflict: (
        RivalError,
        "Another process receives the messages of this bot: only one may run for each token.",
    ),
}


class _OddAnswerError(MaybeSentError):
    """The platform says that it did what was asked, in other words than it should."""


class _Numbered(Struct):
    """An update, of which only the number is known."""

    update_id: int


class _Settings(Struct, frozen=True):
    """The entry of a channel. `base_url` is that of a Bot API server, with or without "/bot" at its end."""

    token: str
    base_url: str = _HOST
    base_file_url: str = ""
    webhook_url: str = ""
    webhook_listen: str = "127.0.0.1:8443"


def make_channel(name: str, section: Mapping[str, Any]) -> "Telegram":
    """Make a channel of its name and its entry in the settings. Raises BadSettingsError."""
    given = {key: section[key] for key in _Settings.__struct_fields__ if key in section}
    if wrong := [key for key, value in given.items() if not isinstance(value, str)]:
        raise BadSettingsError(f"{wrong[0]} is not a text")
    if not given.get("token", "").strip():
        raise BadSettingsError("there is no token: @BotFather on Telegram gives one")
    settings = _Settings(**given)
    for logger in ("httpx", "httpcore", "telegram"):  # they log addresses, which hold the token
        logging.getLogger(logger).setLevel(logging.WARNING)
    return Telegram(name, settings)


class Telegram:
    """A bot. See `Channel`."""

    capabilities = CAPABILITIES

    def __init__(self, name: str, settings: _Settings) -> None:
        self._name, self._settings = name, settings
        base, token = settings.base_url.rstrip("/").removesuffix("/bot"), settings.token.strip()
        self._url = f"{base}/bot{token}"
        self._calling, self._polling = _request(), _request()
        self._bot = Bot(
            token,
            base_url=f"{base}/bot",
            base_file_url=settings.base_file_url.rstrip("/") or f"{base}/file/bot",
            request=self._calling,
            get_updates_request=self._polling,
        )
        self.account = self._user_name = ""
        self._next = 0

    # Receiving

    async def run(self, take: Take, connected: Callable[[], None]) -> None:
        """Receive updates until cancelled; see `Channel`."""
        await self._start()
        if self._settings.webhook_url:
            await self._serve(take, connected)
            return
        with suppress(TelegramError):  # one that is set would get the updates
            await self._bot.delete_webhook(drop_pending_updates=False)
        connected_once = False
        while True:
            began = time.monotonic()
            updates = await self._updates(_POLL_SECONDS if connected_once else 0)
            if not connected_once:
                connected_once = True
                connected()
            for body in sorted(updates, key=lambda each: each["update_id"]):
                await self._taken(body, take)
                self._next = body["update_id"] + 1
            if not updates and time.monotonic() - began < _SHORTEST_POLL:
                await asyncio.sleep(_SHORTEST_POLL)  # a server that does not wait

    async def _updates(self, seconds: int) -> list[dict[str, Any]]:
        """Ask for updates, not parsed yet: one that cannot be must not keep the others from being read."""
        query = {"timeout": seconds, "allowed_updates": json.dumps(_UPDATES)}
        query |= {"offset": self._next} if self._next else {}
        url = f"{self._url}/getUpdates?{urlencode(query)}"
        answer = await self._asked(self._polling.post(url, read_timeout=seconds + _TIMEOUT))
        try:
            msgspec.convert(answer, decodable(list[_Numbered]))
        except msgspec.ValidationError:
            raise ChannelError(_NOT_UNDERSTOOD) from None
        return cast(list[dict[str, Any]], answer)

    async def _start(self) -> None:
        await self._calling.initialize()
        await self._polling.initialize()
        own: Any = await self._asked(self._calling.post(f"{self._url}/getMe"))
        self._user_name = str(own.get("username") or "").lower()
        self.account = str(own["id"])

    async def _serve(self, take: Take, connected: Callable[[], None]) -> None:
        """Receive updates by a webhook, with a secret of this run: while no gateway listens, another user of the machine may, and is sent the last one."""

        async def came(body: Any) -> None:
            await self._taken(body, take)

        from ybs.frontends.gateway.webhook import Webhook

        settings, secret = self._settings, token_urlsafe(32)
        async with Webhook(settings.webhook_listen, secret, came):
            await self._asked(
                self._bot.set_webhook(
                    settings.webhook_url,
                    secret_token=secret,
                    allowed_updates=_UPDATES,
                    drop_pending_updates=False,
                )
            )
            connected()
            await asyncio.Event().wait()

    async def _taken(self, body: dict[str, Any], take: Take) -> None:
        """Hand an update on. Raises what `take` does, and then it is not acknowledged."""
        try:
            update = Update.de_json(body, self._bot)
        except _ODD as error:  # asked for again it would be no better
            _log.warning("an update cannot be read: %s", type(error).__name__)
            return
        incoming = self._incoming(update)
        if incoming is not None:
            await take(incoming)
        if update.callback_query is not None:  # the button stops to turn
            with suppress(TelegramError):
                await update.callback_query.answer()

    def _incoming(self, update: Update) -> Incoming | None:
        event_id, query = f"{self._name}:{self.account}:{update.update_id}", update.callback_query
        if query is not None:
            message = query.message
            if message is None or (place := self._place(message)) is None or not query.data:
                return None
            return Incoming(
                id=event_id,
                place=place,
                person=str(query.from_user.id),
                name=encodable(query.from_user.full_name),
                at=time.time(),
                button=query.data,
                message=str(message.message_id),
                is_own=True,
            )
        message = update.message
        if message is None or (place := self._place(message)) is None:
            return None
        user = message.from_user
        moved_to = str(message.migrate_to_chat_id or "")  # the group has become a supergroup
        if user is None or (user.is_bot and message.sender_chat is None and not moved_to):
            return None  # two bots could talk with each other for ever
        text, is_meant = self._text(message)
        files, unsupported = _attached(message)
        if not (text or files or unsupported or is_meant or moved_to):
            return None  # somebody joined, a title changed
        is_addressed = is_meant or place.kind == "private" or self._is_answer(message)
        anonymous = message.sender_chat  # its members share one id
        return Incoming(
            id=event_id,
            place=place,
            person=f"anonymous:{anonymous.id}" if anonymous else str(user.id),
            name=encodable((anonymous.title or "") if anonymous else user.full_name),
            at=message.date.timestamp(),
            text=text,
            files=files,
            message=str(message.message_id),
            is_addressed=is_addressed,
            is_own=not (message.forward_origin or _bot_of(message) or message.edit_date),
            unsupported=unsupported,
            album=f"{place.chat}:{message.media_group_id}" if message.media_group_id else "",
            moved_to=moved_to,
        )

    def _place(self, message: Any) -> ChatPlace | None:
        if message.chat.type not in (ChatType.PRIVATE, ChatType.GROUP, ChatType.SUPERGROUP):
            return None
        is_topic = getattr(message, "is_topic_message", False)
        return ChatPlace(
            channel=self._name,
            account=self.account,
            kind="private" if message.chat.type == ChatType.PRIVATE else "group",
            chat=str(message.chat.id),
            thread=str(message.message_thread_id) if is_topic else "",
        )

    def _is_answer(self, message: Message) -> bool:
        to = message.reply_to_message
        if to is None or to.from_user is None or to.forum_topic_created is not None:
            return False
        return str(to.from_user.id) == self.account

    def _text(self, message: Message) -> tuple[str, bool]:
        """Return a message's words without the mention of the bot, and whether there was one."""
        data = (message.text or message.caption or "").encode("utf-16-le", "surrogatepass")
        entities = message.entities or message.caption_entities
        is_meant = False
        for entity in sorted(entities, key=lambda each: -each.offset):  # from the end: offsets stay
            start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
            word = data[start:end].decode("utf-16-le", "replace")
            command, _, whom = word.partition("@")
            if not self._names_bot(entity, whom):
                continue
            is_meant = True
            kept = command if entity.type == MessageEntity.BOT_COMMAND else ""
            data = data[:start] + kept.encode("utf-16-le") + data[end:]
        text = data.decode("utf-16-le", "replace").strip()
        if text and message.forward_origin is not None:
            text = f"(forwarded)\n{text}"
        if text and (bot := _bot_of(message)) is not None:
            text = f"(by the bot {bot.full_name})\n{text}"
        return text, is_meant

    def _names_bot(self, entity: MessageEntity, whom: str) -> bool:
        if entity.type == MessageEntity.TEXT_MENTION:
            return entity.user is not None and str(entity.user.id) == self.account
        is_name = entity.type in (MessageEntity.MENTION, MessageEntity.BOT_COMMAND)
        return is_name and bool(self._user_name) and whom.lower() == self._user_name

    # Sending

    async def probe(self) -> None:
        """Ask for a sign of life."""
        await self._asked(self._bot.get_me())

    async def send(self, place: ChatPlace, message: Outgoing) -> str:
        """Send a message and return its id."""
        where: dict[str, Any] = {
            "chat_id": int(place.chat),
            "message_thread_id": int(place.thread) if place.thread else None,
            "reply_markup": _keyboard(message),
            "parse_mode": ParseMode.HTML if message.text else None,
        }
        words, file = message.text or message.plain, message.file
        if file is None:
            shown = LinkPreviewOptions(is_disabled=True)  # the platform would fetch the address
            sending = self._bot.send_message(text=words, link_preview_options=shown, **where)
        else:
            content = InputFile(file.data, filename=file.name, attach=False)
            sending = self._bot.send_document(document=content, caption=words, **where)
        return str((await self._asked(sending)).message_id)

    async def edit(self, place: ChatPlace, message_id: str, message: Outgoing) -> None:
        """Put another text in the place of a message's."""
        try:
            await self._asked(
                self._bot.edit_message_text(
                    message.text or message.plain,
                    chat_id=int(place.chat),
                    message_id=int(message_id),
                    parse_mode=ParseMode.HTML if message.text else None,
                    reply_markup=_keyboard(message),
                    link_preview_options=LinkPreviewOptions(is_disabled=True),
                )
            )
        except RefusedError as error:
            if "not modified" not in str(error):
                raise
        except _OddAnswerError:  # it was carried out
            pass

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that an answer is being written."""
        thread = int(place.thread) if place.thread else None
        await self._asked(
            self._bot.send_chat_action(int(place.chat), ChatAction.TYPING, message_thread_id=thread)
        )

    async def fetch(self, file: IncomingFile, most_bytes: int) -> bytes:
        """Return the content of a file."""
        most = min(most_bytes, MOST_FETCHED)
        too_large = ChannelError(f"The file is larger than the {most / 1_000_000:.0f} MB allowed.")
        found = await self._asked(self._bot.get_file(file.ref))
        if max(file.size, found.file_size or 0) > most:
            raise too_large
        if not str(found.file_path).startswith(f"{self._bot.base_file_url}/"):
            # The library would read one of this machine.
            raise ChannelError("The file is not at the platform.")
        data = bytes(await self._asked(found.download_as_bytearray(read_timeout=60)))
        if len(data) > most:
            raise too_large
        return data

    async def close(self) -> None:
        """Let go of connections."""
        await self._calling.shutdown()
        await self._polling.shutdown()

    async def _asked(self, asking: Awaitable[T]) -> T:
        """Return what the platform answers. Raises ChannelError, without the token and what it was raised from."""
        try:
            return await asking
        except TelegramError as error:
            raised = _translated(error)
        except _ODD as error:
            raised = _OddAnswerError(f"{_NOT_UNDERSTOOD} ({type(error).__name__})")
        raise raised


def _request() -> HTTPXRequest:
    return HTTPXRequest(
        read_timeout=_TIMEOUT,
        write_timeout=_TIMEOUT,
        connect_timeout=10.0,
        pool_timeout=5.0,
        media_write_timeout=120.0,
    )


def _translated(error: TelegramError) -> ChannelError:
    """Return the error of the gateway that one of the library is; only words of Telegram's own get into it."""
    if isinstance(error, RetryAfter):
        after = error.retry_after
        return WaitError(after.total_seconds() if isinstance(after, timedelta) else after)
    if isinstance(error, ChatMigrated):
        return ChatMovedError(str(error.new_chat_id))
    if isinstance(error, BadRequest):
        words = error.message.lower()
        kind = next((kind for part, kind in _BAD_REQUESTS if part in words), RefusedError)
        return kind(f"Telegram: {error.message}.")
    if isinstance(error, Forbidden):
        return ChatGoneError(f"Telegram: {error.message}.")
    if isinstance(error, NetworkError):
        return _broken(error)
    kind, words = _SAID.get(type(error), (MaybeSentError, _NOT_UNDERSTOOD))
    return kind(words)


def _broken(error: NetworkError) -> ChannelError:
    why = error.__cause__
    if isinstance(why, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return UnreachableError("Telegram cannot be reached.")
    if isinstance(error, TimedOut):
        return MaybeSentError("Telegram did not answer in time.")
    return MaybeSentError("The connection to Telegram broke, or it is out of order.")


def _keyboard(message: Outgoing) -> InlineKeyboardMarkup | None:
    rows: Sequence[Sequence[InlineKeyboardButton]] = [
        [InlineKeyboardButton(each.label, callback_data=each.token) for each in row]
        for row in message.buttons
    ]
    return InlineKeyboardMarkup(rows) if rows else None


def _bot_of(message: Message) -> User | None:
    """Return the bot that wrote a message on somebody's behalf; None where a person did."""
    return message.via_bot or message.sender_business_bot


def _attached(message: Message) -> tuple[tuple[IncomingFile, ...], str]:
    """Return the file that came with a message, or the name of what came with it and cannot be read."""
    if message.photo:
        found, name, media_type = message.photo[-1], f"photo-{message.message_id}.jpg", "image/jpeg"
    elif isinstance(found := message.effective_attachment, Animation | Audio | Document | Video):
        name, media_type = encodable(found.file_name or "file"), found.mime_type or ""
    else:
        kind = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(found).__name__).lower()
        return (), f"a {kind} message" if found else ""
    size = found.file_size or 0
    return (IncomingFile(ref=found.file_id, name=name, media_type=media_type, size=size),), ""
