"""The channel Matrix: an account on any homeserver (https://spec.matrix.org), in rooms that it is invited to, encrypted ones too.

What came since the last sync is asked for by a token, which is kept in a file when all before it is taken. A message carries an id of
its own, by which the homeserver tells that it has it, so that one that may have been sent is sent again without a second one.
"""

import hashlib
import io
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final, Literal, cast
from urllib.parse import quote

import aiohttp
import nio
from msgspec import Struct
from nio.crypto import decrypt_attachment
from nio.exceptions import EncryptionError, LocalProtocolError, OlmTrustError, ProtocolError

from ybs.config import private_file
from ybs.core.threads import in_thread
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
    OutgoingFile,
    RefusedError,
    Take,
    UnreachableError,
    WaitError,
)
from ybs.frontends.gateway.received import encodable, fetched, part_of_path, settings_of, too_large

#: An event has at most 65,536 bytes, and an edit holds its text three times.
CAPABILITIES: Final = Capabilities(
    length=4000,
    unit="utf16",
    dialect="matrix-html",
    can_edit=True,
    shows_typing=True,
    file_bytes=50_000_000,
)
_POLL_MS, _TYPING_MS = 25_000, 8_000
_CONFIG: Final = nio.AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0, request_timeout=30)
_NOTHING: Final[dict[str, Any]] = {"types": []}
_FILTER: Final[dict[str, Any]] = {
    "presence": _NOTHING,
    "account_data": _NOTHING,
    "room": {"account_data": _NOTHING, "ephemeral": _NOTHING, "timeline": {"limit": 100}},
}
#: So many pages of 100 events are read of a room in which more was said than a sync tells.
_MOST_PAGES: Final = 10
#: The reactions that stand for buttons, and the field of a message that says which.
_KEYS: Final = (*(f"{n}\ufe0f\u20e3" for n in range(1, 10)), "\U0001f51f")
_BUTTONS: Final = "ybs.buttons"
_MOST_SHOWN: Final = 1_000
_FILES: Final = ("m.file", "m.image", "m.audio", "m.video")
#: The name of a homeserver (https://spec.matrix.org/latest/appendices/#server-name).
_SERVER: Final = r"(?:[\w.-]{1,230}|\[[\da-fA-F:.]{2,45}\])(?::\d{1,5})?"
_NO_KEY: Final = "an encrypted message whose key did not reach me (it comes with the next one)"
#: The specification's codes of errors, and the errors that they are.
_CODES: Final[Mapping[str, type[ChannelError]]] = {
    **dict.fromkeys(("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_LOCKED"), BadSettingsError),
    **dict.fromkeys(("M_FORBIDDEN", "M_NOT_FOUND"), ChatGoneError),
}
_log = logging.getLogger("ybs.gateway.matrix")


class _Settings(Struct, frozen=True):
    """The entry of a channel. `invitations` says whose are accepted; `folder` is where the channel keeps what it has to know."""

    homeserver: str = ""
    token: str = ""
    invitations: Literal["owners", "open"] = "owners"
    owners: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    folder: str = ""


def make_channel(name: str, section: Mapping[str, Any]) -> "Matrix":
    """Make a channel of its name and its entry in the settings. Raises BadSettingsError."""
    settings = settings_of(section, _Settings)
    if not settings.token.strip():
        raise BadSettingsError("there is no token; docs/matrix.md says where it comes from")
    if not settings.homeserver.startswith(("https://", "http://")):
        raise BadSettingsError("homeserver is not an address, such as https://matrix.org")
    for logger in ("nio", "peewee"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)  # they log words of chats
    return Matrix(name, settings)


class Matrix:
    """An account. See `Channel`."""

    capabilities = CAPABILITIES

    def __init__(self, name: str, settings: _Settings) -> None:
        self._name, self._settings = name, settings
        self._url, self._folder = settings.homeserver.rstrip("/"), Path(settings.folder)
        self._token, self.account = settings.token.strip(), ""
        self._client: nio.AsyncClient | None = None
        #: The newest messages with buttons, by their ids.
        self._shown = dict[str, dict[str, Any]]()

    @property
    def _connected(self) -> nio.AsyncClient:
        if self._client is None:
            raise UnreachableError("The homeserver is not connected.")
        return self._client

    # Receiving

    async def run(self, take: Take, connected: Callable[[], None]) -> None:
        """Receive events until cancelled; see `Channel`."""
        client = await self._start()
        kept = self._folder / f"since-{quote(client.user_id, safe='')}"
        since = (private_file.read(kept) or b"").decode()
        client.next_batch, is_first = "", True
        while True:
            pause = 0 if is_first else _POLL_MS
            syncing = client.sync(pause, _FILTER, since or None, full_state=is_first)
            came: nio.SyncResponse = await _asked(syncing)
            await self._tend(client)
            if since:  # before the first sync of all, what was said is not for the bot
                for room_id, info in came.rooms.join.items():
                    for event in await self._news(client, room_id, info.timeline, since):
                        await self._taken(client.rooms[room_id], event, take)
            for room_id, invitation in came.rooms.invite.items():
                await self._invited(client, room_id, invitation)
            if came.next_batch != since:
                since = came.next_batch
                await _keep(kept, since)
            if is_first:
                is_first, self.account = False, client.user_id
                connected()

    async def _start(self) -> nio.AsyncClient:
        if self._client is not None:
            return self._client
        private_file.make_folder(self._folder)
        client = nio.AsyncClient(self._url, store_path=str(self._folder), config=_CONFIG)
        client.access_token = self._token
        try:
            own: nio.WhoamiResponse = await _asked(client.whoami())
            if not own.device_id:
                raise BadSettingsError("the token belongs to no device: log in for one")
            client.restore_login(own.user_id, own.device_id, self._token)
        except ChannelError:
            await client.close()
            raise
        self._client = client
        return client

    async def _tend(self, client: nio.AsyncClient) -> None:
        """Exchange the keys that encrypted rooms need."""
        if client.should_upload_keys:
            await _asked(client.keys_upload())
        if client.should_query_keys:
            await _asked(client.keys_query())
        if client.should_claim_keys:
            users: Any = client.get_users_for_key_claiming()
            await _asked(client.keys_claim(users))
        for answer in await _asked(client.send_to_device_messages()):
            if isinstance(answer, nio.ErrorResponse):
                raise _refusal(answer)

    async def _news(
        self, client: nio.AsyncClient, room_id: str, timeline: Any, since: str
    ) -> list[nio.Event]:
        """Return what was said in a room since the last sync, or since the bot was invited."""
        events: list[nio.Event] = timeline.events
        for number, event in enumerate(events):
            if _lets_in(event, client.user_id):
                return events[number + 1 :]
        missed, start = list[nio.Event](), timeline.prev_batch if timeline.limited else ""
        for _ in range(_MOST_PAGES):
            if not start:
                break
            page: Any = await _asked(client.room_messages(room_id, start, since, limit=100))
            missed += page.chunk
            start = page.end if page.chunk else ""
        return [*reversed(missed), *events]

    async def _invited(self, client: nio.AsyncClient, room_id: str, invitation: Any) -> None:
        known = {*self._settings.owners, *self._settings.allow}
        for event in invitation.invite_state:
            if getattr(event, "state_key", "") != client.user_id:
                continue
            if not (self._settings.invitations == "open" or {event.sender, room_id} & known):
                _log.warning("an invitation of %s to %s was left alone", event.sender, room_id)
                continue
            try:
                await _asked(client.join(room_id))
            except (ChatGoneError, RefusedError) as error:
                _log.warning("an invitation could not be accepted: %s", error)

    async def _taken(self, room: nio.MatrixRoom, event: nio.Event, take: Take) -> None:
        if event.sender == self._connected.user_id:
            return
        try:
            is_press = isinstance(event, nio.ReactionEvent)
            incoming = await self._pressed(room, event) if is_press else self._incoming(room, event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _log.warning("an event cannot be read: %s", type(error).__name__)
            return
        if incoming is not None:
            await take(incoming)

    def _incoming(self, room: nio.MatrixRoom, event: nio.Event) -> Incoming | None:
        content: dict[str, Any] = event.source["content"]
        relation: dict[str, Any] = content.get("m.relates_to") or {}
        is_secret = isinstance(event, nio.MegolmEvent)
        if not is_secret and not isinstance(event, nio.RoomMessage):
            return None
        if content.get("msgtype") == "m.notice" or relation.get("rel_type") == "m.replace":
            return None  # other bots write notices: two of them could talk with each other for ever
        place = self._place(room, relation)
        is_meant = _names(content, self._connected.user_id)
        text, files, unsupported = ("", (), _NO_KEY) if is_secret else _content(content)
        if "m.in_reply_to" in relation:
            text = re.sub(r"\A(?:> .*\n)+\n", "", text)
        return Incoming(
            **self._common(room, event),
            place=place,
            text=self._without_name(room, text) if is_meant else text,
            files=files,
            message=event.event_id,
            is_addressed=is_meant or place.kind == "private",
            is_own=True,  # what is forwarded comes as any other message: Matrix does not say it
            unsupported=unsupported,
        )

    async def _pressed(self, room: nio.MatrixRoom, event: nio.ReactionEvent) -> Incoming | None:
        content = await self._content_of(room.room_id, event.reacts_to)
        for each in content.get(_BUTTONS) or ():
            if _bare(each["key"]) == _bare(event.key):
                return Incoming(
                    **self._common(room, event),
                    place=self._place(room, content.get("m.relates_to") or {}),
                    button=str(each["token"]),
                    message=event.reacts_to,
                    is_own=True,
                )
        return None

    async def _content_of(self, room_id: str, message_id: str) -> dict[str, Any]:
        """Return the content of one of the bot's messages, {} where it is none of them."""
        if message_id in self._shown:
            return self._shown[message_id]
        try:
            found = await _asked(self._connected.room_get_event(room_id, message_id))
        except (ChatGoneError, RefusedError):
            return {}
        event: nio.Event = found.event
        return event.source["content"] if event.sender == self._connected.user_id else {}

    def _common(self, room: nio.MatrixRoom, event: nio.Event) -> dict[str, Any]:
        return {
            "id": f"{self._name}:{self._connected.user_id}:{event.event_id}",
            "person": event.sender,
            "name": encodable(room.user_name(event.sender) or event.sender),
            "at": event.server_timestamp / 1000,
        }

    def _place(self, room: nio.MatrixRoom, relation: dict[str, Any]) -> ChatPlace:
        is_thread = relation.get("rel_type") == "m.thread"
        return ChatPlace(
            channel=self._name,
            account=self._connected.user_id,
            kind="private" if len(room.users) <= 2 else "group",  # with who is invited
            chat=room.room_id,
            thread=str(relation["event_id"]) if is_thread else "",
        )

    def _without_name(self, room: nio.MatrixRoom, text: str) -> str:
        own = self._connected.user_id
        names = (own[1:], room.user_name(own) or own, own[1:].partition(":")[0])
        words = "|".join(re.escape(each) for each in names)
        return re.sub(rf"\A\s*@?(?:{words})(?!\w)\s*[:,]?\s*", "", text, flags=re.I).strip()

    # Sending

    async def probe(self) -> None:
        """Ask whose token it is, also where nobody runs the channel."""
        client = self._client or nio.AsyncClient(self._url)
        client.access_token = self._token
        try:
            await _asked(client.whoami())
        finally:
            if client is not self._client:
                await client.close()

    async def send(self, place: ChatPlace, message: Outgoing) -> str:
        """Send a message and return its id. Once more with the same nonce is once."""
        self._check(place)
        content = _shown(message)
        if message.file is not None:
            content = await self._with_file(place, content, message.file)
        if place.thread:
            begun = {"event_id": place.thread}
            relation = {"rel_type": "m.thread", "is_falling_back": True, "m.in_reply_to": begun}
            content["m.relates_to"] = {**relation, **begun}
        sent = await self._said(place, "m.room.message", content, message.nonce)
        await self._offer(place, sent, content)
        return sent

    async def edit(self, place: ChatPlace, message_id: str, message: Outgoing) -> None:
        """Put another text in the place of a message's."""
        self._check(place)
        content = _shown(message)
        relation = {"rel_type": "m.replace", "event_id": message_id}
        changed: dict[str, Any] = {"msgtype": "m.text", "m.mentions": {}, "m.new_content": content}
        changed |= {"body": f"* {content['body']}", "m.relates_to": relation}
        nonce = f"{message.nonce}:{message_id}" if message.nonce else ""
        try:
            await self._said(place, "m.room.message", changed, nonce)
        except RefusedError as error:
            if "relation" in str(error):
                raise MessageGoneError(str(error)) from None
            raise
        await self._offer(place, message_id, content)

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that an answer is being written."""
        await _asked(self._connected.room_typing(place.chat, True, _TYPING_MS))

    async def fetch(self, file: IncomingFile, most_bytes: int) -> bytes:
        """Return the content of a file."""
        if file.size > most_bytes:
            raise too_large(most_bytes)
        key: dict[str, Any] = json.loads(file.ref)
        server, _, media = str(key["url"]).removeprefix("mxc://").partition("/")
        where = f"{part_of_path(server, _SERVER)}/{part_of_path(media)}"
        url = f"{self._url}/_matrix/client/v1/media/download/{where}"
        token = {"Authorization": f"Bearer {self._token}"}
        data = await fetched(url, most_bytes, token, hosts=[self._url])
        if "key" not in key:
            return data
        try:
            return decrypt_attachment(data, key["key"]["k"], key["hashes"]["sha256"], key["iv"])
        except (EncryptionError, LookupError, TypeError, ValueError):
            raise ChannelError("The file cannot be decrypted.") from None

    async def close(self) -> None:
        """Let go of connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
            if client.store is not None:
                client.store.database.close()

    def _check(self, place: ChatPlace) -> None:
        """Raise ChatGoneError where a private room is not that of its person alone any more."""
        room = self._connected.rooms.get(place.chat)
        if place.person and room and set(room.users) != {self.account, place.person}:
            raise ChatGoneError("Others came into this room, or it was left.")

    async def _said(self, place: ChatPlace, kind: str, content: dict[str, Any], nonce: str) -> str:
        digest = hashlib.sha256(nonce.encode()).hexdigest() if nonce else None
        sending = self._connected.room_send(
            place.chat, kind, content, tx_id=digest, ignore_unverified_devices=True
        )
        return (await _asked(sending)).event_id

    async def _offer(self, place: ChatPlace, message_id: str, content: dict[str, Any]) -> None:
        """Put the reactions under a message that stand for its buttons, as far as the homeserver lets the bot."""
        if message_id in self._shown or _BUTTONS in content:
            self._shown[message_id] = content
        if len(self._shown) > _MOST_SHOWN:
            del self._shown[next(iter(self._shown))]
        for each in content.get(_BUTTONS, ()):
            reaction = {"rel_type": "m.annotation", "event_id": message_id, "key": each["key"]}
            try:
                await self._said(place, "m.reaction", {"m.relates_to": reaction}, "")
            except ChannelError as error:
                _log.info("a reaction was not offered: %s", type(error).__name__)
                return

    async def _with_file(
        self, place: ChatPlace, content: dict[str, Any], file: OutgoingFile
    ) -> dict[str, Any]:
        """Bring a file to the homeserver and return the message that it stands in. Raises ChannelError; nobody has seen the file then."""
        client = self._connected
        room = client.rooms.get(place.chat)
        is_secret = client.olm is not None and room is not None and room.encrypted
        given: Any = {"encrypt": is_secret, "filesize": len(file.data)}
        try:
            parts = (io.BytesIO(file.data), file.media_type, file.name)
            answer, key = await client.upload(*parts, **given)
            if isinstance(answer, nio.ErrorResponse):
                raise _refusal(answer)
            uri = answer.content_uri
        except (MaybeSentError, aiohttp.ClientError, OSError):
            raise ChannelError("A file could not be brought to the homeserver.") from None
        info = {"size": len(file.data), "mimetype": file.media_type}
        where = {"file": {**key, "url": uri}} if key else {"url": uri}
        return {**content, "msgtype": "m.file", "filename": file.name, "info": info, **where}


async def _keep(file: Path, since: str) -> None:
    try:
        await in_thread(lambda: private_file.replace(file, since.encode(), waits=False))
    except (private_file.Unsafe, OSError) as error:
        raise ChannelError(f"{file} cannot be written: {error}") from error


async def _asked(asking: Awaitable[Any]) -> Any:
    """Return what the homeserver answers. Raises ChannelError, without the token and what it was raised from."""
    try:
        answer = await asking
    except (aiohttp.ClientConnectorError, RuntimeError):  # the latter where the client is closed
        raised = UnreachableError("The homeserver cannot be reached.")
    except (TimeoutError, aiohttp.ClientError, OSError):
        raised = MaybeSentError("The connection broke, or no answer came in time.")
    except (ProtocolError, OlmTrustError, EncryptionError) as error:
        is_gone = type(error) is LocalProtocolError  # a room that the bot is not in
        raised = (ChatGoneError if is_gone else ChannelError)(f"Matrix: {error}")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raised = MaybeSentError(f"An answer could not be understood ({type(error).__name__}).")
    else:
        if not isinstance(answer, nio.ErrorResponse):
            return answer
        raised = _refusal(answer)
    raise raised


def _refusal(answer: nio.ErrorResponse) -> ChannelError:
    """Return the error that an answer is; only words of the homeserver's own get into it."""
    code, transport = answer.status_code or "", cast(Any, answer.transport_response)
    status: int = transport.status
    if status == 429 or code == "M_LIMIT_EXCEEDED":
        after = transport.headers.get("Retry-After", "")
        seconds = float(after) if after.isdecimal() else (answer.retry_after_ms or 0) / 1000
        return WaitError(seconds or 5.0)
    kind = _CODES.get(code)
    if kind is BadSettingsError or status == 401:
        return BadSettingsError("The homeserver does not accept the access token.")
    if kind is None and (status < 400 or status >= 500):
        return MaybeSentError("The homeserver is out of order, or no homeserver is there.")
    return (kind or RefusedError)(f"Matrix: {str(answer.message or status).rstrip('.')}.")


def _lets_in(event: nio.Event, own: str) -> bool:
    """Return whether the bot comes into a room by this event."""
    if not isinstance(event, nio.RoomMemberEvent) or event.state_key != own:
        return False
    return event.membership in ("invite", "join") and event.prev_membership != "join"


def _names(content: dict[str, Any], own: str) -> bool:
    """Return whether a message mentions the bot; clients mention whom a reply is for, too."""
    if "m.mentions" in content:
        return own in (content["m.mentions"].get("user_ids") or ())
    return own in f"{content.get('body')} {content.get('formatted_body')}"


def _content(content: dict[str, Any]) -> tuple[str, tuple[IncomingFile, ...], str]:
    """Return the words of a message, its file, and its kind where it cannot be read."""
    kind, body = content["msgtype"], encodable(str(content["body"]))
    if kind not in _FILES:
        return body.strip(), (), ""
    if "org.matrix.msc3245.voice" in content:
        return "", (), "a voice message"
    name = encodable(str(content.get("filename") or body))
    key: dict[str, Any] = content.get("file") or {"url": content["url"]}
    info: dict[str, Any] = content.get("info") or {}
    media_type, size = str(info.get("mimetype") or ""), int(info.get("size") or 0)
    file = IncomingFile(ref=json.dumps(key), name=name, media_type=media_type, size=size)
    return "" if body == name else body.strip(), (file,), ""


def _shown(message: Outgoing) -> dict[str, Any]:
    """Return the content of a message, which mentions nobody. Its buttons are reactions that are named below it."""
    buttons = [each for row in message.buttons for each in row]
    named = [(key, each) for key, each in zip(_KEYS, buttons, strict=False)]
    lines = [f"{key} {each.label}" for key, each in named]
    content: dict[str, Any] = {"msgtype": "m.text", "m.mentions": {}, "body": message.plain}
    if message.text:
        ends = "".join(f"<br>{escape(line, quote=False)}" for line in lines)
        html = f"{message.text}<br>{ends}" if lines else message.text
        content |= {"format": "org.matrix.custom.html", "formatted_body": html}
    if lines:
        content["body"] = "\n".join((message.plain, "", *lines))
        content[_BUTTONS] = [{"key": k, "label": b.label, "token": b.token} for k, b in named]
    return content


def _bare(key: str) -> str:
    """Return a reaction without the sign that asks for its picture, which not all clients write."""
    return key.replace("\ufe0f", "")
