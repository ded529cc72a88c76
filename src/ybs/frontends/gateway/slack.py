"""The channel Slack: a bot in private messages, and where it is mentioned in channels and threads, by socket mode.

Each envelope is acknowledged when its event is kept; Slack sends one again that is not. A message's place and time are its id, so that
Slack's second tries, and its two events for one mention, are one message.
"""

import html
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, TypeVar, cast

import aiohttp
from msgspec import Struct
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

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
    length=3000,  # of a section's text
    dialect="slack",
    can_edit=True,
    file_bytes=50_000_000,
)
_HOST: Final = "https://slack.com/api/"
#: Where Slack keeps files; the token goes nowhere else.
_FILES: Final = "https://files.slack.com/"
_TIMEOUT, _FILE_TIMEOUT = 30, 120
#: How often the connection is asked for a sign of life, in seconds.
_HEARTBEAT: Final = 20.0
#: Where the answer does not say for how long nothing more is wanted.
_UNSAID_PAUSE: Final = 30.0
#: So many buttons may stand under a message.
_MOST_BUTTONS: Final = 25
#: A message of a person has one of these for its kind.
_SUBTYPES: Final = ("", "file_share", "thread_broadcast")
#: What Slack's words for what went wrong mean, besides `RefusedError`.
_ERRORS: Final[Mapping[str, type[ChannelError]]] = {
    "account_inactive": BadSettingsError,
    "invalid_auth": BadSettingsError,
    "not_allowed_token_type": BadSettingsError,
    "not_authed": BadSettingsError,
    "token_expired": BadSettingsError,
    "token_revoked": BadSettingsError,
    "cannot_dm_bot": ChatGoneError,
    "channel_not_found": ChatGoneError,
    "is_archived": ChatGoneError,
    "messages_tab_disabled": ChatGoneError,
    "not_in_channel": ChatGoneError,
    "restricted_action": ChatGoneError,
    "thread_not_found": ChatGoneError,
    "user_disabled": ChatGoneError,
    "cant_update_message": MessageGoneError,
    "edit_window_closed": MessageGoneError,
    "message_not_found": MessageGoneError,
    "fatal_error": MaybeSentError,
    "internal_error": MaybeSentError,
    "request_timeout": MaybeSentError,
    "service_unavailable": MaybeSentError,
}
#: <@U1>, <#C1|name>, <!here>, <https://x.example|words>
_MARK: Final = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
#: What comes of data that makes no sense.
_ODD: Final = (LookupError, TypeError, ValueError, AttributeError)
_NOT_UNDERSTOOD: Final = "Slack's answer could not be understood."
_log = logging.getLogger("ybs.gateway.slack")


class _Settings(Struct, frozen=True):
    """The entry of a channel: the bot's token, and the app's, by which events come. `base_url` is that of the API."""

    token: str
    app_token: str
    base_url: str = _HOST


def make_channel(name: str, section: Mapping[str, Any]) -> "Slack":
    """Make a channel of its name and its entry in the settings. Raises BadSettingsError."""
    for key, prefix in (("token", "xoxb-"), ("app_token", "xapp-")):
        if not str(section.get(key, "")).strip().startswith(prefix):
            raise BadSettingsError(f"{key} is to begin with {prefix}: https://api.slack.com/apps")
    logging.getLogger("slack_sdk").setLevel(logging.CRITICAL)  # its failures are told here
    return Slack(name, settings_of(section, _Settings))


class Slack:
    """A bot. See `Channel`."""

    capabilities = CAPABILITIES

    def __init__(self, name: str, settings: _Settings) -> None:
        self._name, self._settings = name, settings
        self.account = ""
        self._web: AsyncWebClient | None = None
        self._session: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    # Receiving

    async def run(self, take: Take, connected: Callable[[], None]) -> None:
        """Receive events until cancelled; see `Channel`."""
        web, token = self._client(), self._settings.app_token.strip()
        self.account = _part(await _asked(web.auth_test()), "user_id")
        while True:
            opened = await _asked(web.apps_connections_open(app_token=token))
            await _asked(self._receive(_part(opened, "url"), take, connected), None)

    def _client(self) -> Any:
        """Return the client, which tries nothing twice by itself: what was sent could come twice then."""
        if self._web is None:
            self._session = aiohttp.ClientSession(
                trust_env=True, timeout=aiohttp.ClientTimeout(total=_FILE_TIMEOUT)
            )
            self._web = AsyncWebClient(
                self._settings.token.strip(),
                self._settings.base_url,
                session=self._session,
                retry_handlers=[],
            )
            self._web.proxy = None  # the session knows it, and which hosts need none
        return self._web

    async def _receive(self, url: str, take: Take, connected: Callable[[], None]) -> None:
        """Take what comes by one connection, until Slack wants another one; what is not acknowledged comes by that."""
        async with self._client().session.ws_connect(url, heartbeat=_HEARTBEAT) as socket:
            self._socket = socket
            async for message in socket:
                envelope = json.loads(message.data)
                if envelope["type"] == "hello":
                    connected()
                elif envelope.get("reason") == "link_disabled":
                    raise BadSettingsError("socket mode is not switched on for this app")
                elif envelope["type"] == "disconnect":
                    return
                else:
                    incoming = self._incoming(envelope)
                    if incoming is not None:
                        await take(incoming)
                    await socket.send_json({"envelope_id": envelope["envelope_id"]})
        raise ChannelError("Slack ended the connection.")

    def _incoming(self, envelope: Mapping[str, Any]) -> Incoming | None:
        try:
            payload = envelope["payload"]
            match envelope["type"], payload.get("type"):
                case "events_api", _:
                    return self._said(payload["event"])
                case "interactive", "block_actions":
                    return self._pressed(payload)
                case "slash_commands", _:
                    return self._commanded(payload)
                case _:
                    return None
        except _ODD as error:  # sent again it would be no better
            _log.warning("an event cannot be read: %s", type(error).__name__)
            return None

    def _said(self, event: dict[str, Any]) -> Incoming | None:
        is_mention, subtype = event.get("type") == "app_mention", event.get("subtype") or ""
        if not is_mention and event.get("type") != "message":
            return None
        if subtype not in _SUBTYPES or not event.get("user") or event.get("bot_id"):
            return None  # two bots could talk with each other for ever
        text, is_meant = _words(str(event.get("text") or ""), self.account)
        files = tuple(_files(event))
        place = self._place(event, str(event["ts"]))
        unsupported = "a forwarded message" if event.get("attachments") and not text else ""
        if not text and not files and not unsupported and not is_meant:
            return None
        return Incoming(
            id=self._id(event["channel"], event["ts"]),
            place=place,
            person=str(event["user"]),
            name=str(event["user"]),
            at=float(event["ts"]),
            text=text,
            files=files,
            message=str(event["ts"]),
            is_addressed=is_meant or place.kind == "private",
            is_own=not any(event.get(key) for key in ("attachments", "edited", "app_id")),
            unsupported=unsupported,
        )

    def _pressed(self, payload: dict[str, Any]) -> Incoming:
        action, user = payload["actions"][0], payload["user"]
        container = {**payload["container"], "channel": payload["channel"]["id"]}
        message = str(container["message_ts"])
        return Incoming(
            id=self._id(container["channel"], message, user["id"], action["action_ts"]),
            place=self._place(container),
            person=str(user["id"]),
            name=encodable(str(user.get("name") or user["id"])),
            at=float(action["action_ts"]),
            button=str(action["value"]),
            message=message,
            is_own=True,
        )

    def _commanded(self, payload: dict[str, Any]) -> Incoming:
        """Return the words behind the bot's own slash command: Slack sends no message that begins with a slash."""
        channel = str(payload["channel_id"])
        return Incoming(
            id=self._id(channel, payload["trigger_id"]),
            place=self._place({"channel": channel}),
            person=str(payload["user_id"]),
            name=encodable(str(payload.get("user_name") or payload["user_id"])),
            at=time.time(),
            text=f"/{encodable(str(payload.get('text') or 'help')).strip().removeprefix('/')}",
            is_own=True,
        )

    def _place(self, event: Mapping[str, Any], begins: str = "") -> ChatPlace:
        """Return a chat. In channels each conversation is a thread, which may begin with the message itself."""
        channel = str(event["channel"])
        is_private = channel.startswith("D")
        return ChatPlace(
            channel=self._name,
            account=self.account,
            kind="private" if is_private else "group",
            chat=channel,
            thread=str(event.get("thread_ts") or ("" if is_private else begins)),
        )

    def _id(self, *parts: object) -> str:
        return ":".join(map(str, (self._name, self.account, *parts)))

    # Sending

    async def probe(self) -> None:
        """Ask for a sign of life; without `run`, whether Slack knows the tokens."""
        web, token = self._client(), self._settings.app_token.strip()
        await _asked(web.auth_test())
        if not self.account:
            await _asked(web.apps_connections_open(app_token=token))
        elif self._socket is None or self._socket.closed:
            raise UnreachableError("Slack sends no events.")

    async def send(self, place: ChatPlace, message: Outgoing) -> str:
        """Send a message and return its id; that of a file is the file's."""
        web, thread = self._client(), place.thread or None
        if message.file is not None:
            done = await _asked(
                web.files_upload_v2(
                    channel=place.chat,
                    thread_ts=thread,
                    filename=message.file.name,
                    file=message.file.data,
                    initial_comment=message.text or html.escape(message.plain, quote=False),
                ),
                _FILE_TIMEOUT,
            )
            return _part(done, "files", 0, "id")
        done = await _asked(
            web.chat_postMessage(
                channel=place.chat,
                thread_ts=thread,
                unfurl_links=False,  # the platform would fetch the address
                unfurl_media=False,
                **_body(message),
            )
        )
        return _part(done, "ts")

    async def edit(self, place: ChatPlace, message_id: str, message: Outgoing) -> None:
        """Put another text in the place of a message's."""
        await _asked(
            self._client().chat_update(channel=place.chat, ts=message_id, **_body(message))
        )

    async def show_typing(self, place: ChatPlace) -> None:
        """Slack shows no typing of bots."""

    async def fetch(self, file: IncomingFile, most_bytes: int) -> bytes:
        """Return the content of a file."""
        if file.size > most_bytes:
            raise too_large(most_bytes)
        found = await _asked(self._client().files_info(file=file.ref))
        url = _part(found, "file", "url_private_download")
        token = {"Authorization": f"Bearer {self._settings.token.strip()}"}
        return await fetched(url, most_bytes, token, hosts=[_FILES, self._settings.base_url])

    async def close(self) -> None:
        """Let go of connections."""
        self._web = None
        if self._session is not None:
            await self._session.close()


async def _asked(asking: Awaitable[T], seconds: float | None = _TIMEOUT) -> T:
    """Return what the platform answers. Raises ChannelError, without what it was raised from."""
    try:
        async with time_limit(seconds):
            return await asking
    except SlackApiError as error:
        raised = _answered(error)
    except aiohttp.ClientConnectorError:
        raised = UnreachableError("Slack cannot be reached.")
    except TimeoutError:
        raised = MaybeSentError("Slack did not answer in time.")
    except (aiohttp.ClientError, OSError):
        raised = MaybeSentError("The connection to Slack broke.")
    except (SlackClientError, *_ODD) as error:
        raised = MaybeSentError(f"{_NOT_UNDERSTOOD} ({type(error).__name__})")
    raise raised


def _part(answer: Any, *way: str | int) -> str:
    """Return a part of an answer. Raises MaybeSentError where it is not there."""
    found = answer.data
    try:
        for name in way:
            found = found[name]
    except _ODD:
        raise MaybeSentError(_NOT_UNDERSTOOD) from None
    return str(found)


def _answered(error: SlackApiError) -> ChannelError:
    """Return the error that an answer is."""
    response: Any = error.response
    body = getattr(response, "data", None)
    data = cast(Mapping[str, Any], body if isinstance(body, Mapping) else {})
    why = str(data.get("error", ""))
    if why == "ratelimited" or getattr(response, "status_code", 0) == 429:
        after = str(response.headers.get("Retry-After", ""))
        return WaitError(float(after) if after.isdecimal() else _UNSAID_PAUSE)
    if not why:
        return MaybeSentError("Slack is out of order.")
    scope = f" (the app needs the scope {data['needed']})" if "needed" in data else ""
    return _ERRORS.get(why, RefusedError)(f"Slack: {why}{scope}.")


def _body(message: Outgoing) -> dict[str, Any]:
    """Return what a message is: its text in a section, its buttons below, and the same without markup for where no blocks are shown."""
    words: dict[str, Any] = {"type": "plain_text", "text": message.plain, "emoji": False}
    if message.text:
        words = {"type": "mrkdwn", "text": message.text}
    blocks: list[dict[str, Any]] = [{"type": "section", "text": words, "expand": True}]
    buttons = [each for row in message.buttons for each in row][:_MOST_BUTTONS]
    if buttons:
        elements = [
            {
                "type": "button",
                "text": {"type": "plain_text", "text": each.label, "emoji": False},
                "action_id": each.token,
                "value": each.token,
            }
            for each in buttons
        ]
        blocks.append({"type": "actions", "elements": elements})
    return {"blocks": blocks, "text": html.escape(message.plain, quote=False)}


def _words(text: str, account: str) -> tuple[str, bool]:
    """Return a text as it was typed, without the mention of the bot, and whether there was one."""
    is_meant = f"<@{account}>" in text or f"<@{account}|" in text

    def plain(found: re.Match[str]) -> str:
        sign, what, label = found.groups()
        if sign == "@" and what == account:
            return ""
        if sign == "!":  # a group, or a date
            return label or f"@{what}"
        if sign or not label:
            return f"{sign}{label or what}"
        return label if what.endswith(label) else f"{label} ({what})"

    return encodable(html.unescape(_MARK.sub(plain, text))).strip(), is_meant


def _files(event: Mapping[str, Any]) -> Iterator[IncomingFile]:
    for each in event.get("files") or ():
        yield IncomingFile(
            ref=str(each["id"]),
            name=encodable(str(each.get("name") or "file")),
            media_type=str(each.get("mimetype") or ""),
            size=int(each.get("size") or 0),
        )
