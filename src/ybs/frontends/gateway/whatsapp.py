"""The channel WhatsApp: a business number of Meta's Cloud API (https://developers.facebook.com/docs/whatsapp/cloud-api), by a webhook.

Meta sends an event again until the webhook has answered, which it does when the event is kept. Messages cannot be edited, so a chat sees
that an answer is being written, and then the answer. Only within 24 hours after a person's last message may a number write to them.
"""

import asyncio
import logging
import mimetypes
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, cast

import httpx2
from msgspec import Struct

from ybs.config.addresses import proxy_for
from ybs.config.http_client import open_client
from ybs.frontends.gateway.channel import (
    BadSettingsError,
    Button,
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
from ybs.frontends.gateway.webhook import Webhook
from ybs.frontends.layout import clipped

CAPABILITIES: Final = Capabilities(
    length=4096,
    unit="utf16",
    dialect="whatsapp",
    shows_typing=True,
    file_bytes=100_000_000,
)
_GRAPH: Final = "https://graph.facebook.com/v26.0"
#: So long a shown "is typing" stays, in seconds; Meta takes it away with the next message, too.
_TYPING_SECONDS: Final = 20.0
#: A message has three buttons of so many characters under a short text, or a list of ten lines.
_MOST_BUTTONS, _BUTTON_LENGTH, _TEXT_OVER_BUTTONS = 3, 20, 1024
_MOST_LINES, _LINE_LENGTH, _NOTE_LENGTH = 10, 24, 72
#: Where Meta does not say how long it wants a pause.
_UNSAID_PAUSE: Final = 60.0
_MOST_CHATS: Final = 5_000
_NOT_WITHIN_A_DAY: Final = 131047
_WINDOW: Final = "WhatsApp takes a message only within 24 hours after the person's last one."
_LATE: Final = (
    "A message did not reach you: WhatsApp lets me write only within 24 hours after your last message. "
    "/approve lists the questions that are still open; ask again for an answer that is missing."
)
_REFUSED: Final = (
    "Meta does not accept the token: it has expired, or has no rights for this phone_number_id."
)
#: Meta's codes of errors, and the errors that they are.
_CODES: Final[Mapping[int, type[ChannelError]]] = {
    **dict.fromkeys((0, 3, 10, 190, *range(200, 300), 131005, 131031), BadSettingsError),
    **dict.fromkeys((4, 17, 80007, 130429, 131048, 131056), WaitError),
    **dict.fromkeys((1, 2, 131000, 131016, 131057), MaybeSentError),
    **dict.fromkeys((131021, 131026, 131030, 131047, 131050), ChatGoneError),
}
#: Where Meta has the files of messages; nobody else is told the token.
_META: Final = ("fbsbx.com", "facebook.com", "fbcdn.net", "whatsapp.net")
_FILES: Final = ("document", "image", "video", "audio")
_UNSUPPORTED: Final = {
    "sticker": "a sticker",
    "location": "a location",
    "contacts": "a contact",
    "order": "an order",
    "unsupported": "a message of a kind that cannot be read",
}
_log = logging.getLogger("ybs.gateway.whatsapp")


class _Settings(Struct, frozen=True):
    """The entry of a channel. `verify_token` is a word of one's own, which Meta says when it looks for the webhook."""

    token: str = ""
    phone_number_id: str = ""
    app_secret: str = ""
    verify_token: str = ""
    webhook_listen: str = "127.0.0.1:8443"
    base_url: str = _GRAPH


def make_channel(name: str, section: Mapping[str, Any]) -> "WhatsApp":
    """Make a channel of its name and its entry in the settings. Raises BadSettingsError."""
    settings = settings_of(section, _Settings)
    for key in ("token", "phone_number_id", "app_secret", "verify_token"):
        if not getattr(settings, key).strip():
            raise BadSettingsError(f"there is no {key}; docs/whatsapp.md says where it comes from")
    for logger in ("httpx2", "httpcore2"):
        logging.getLogger(logger).setLevel(logging.WARNING)
    return WhatsApp(name, settings)


class WhatsApp:
    """A number. See `Channel`."""

    capabilities = CAPABILITIES

    def __init__(self, name: str, settings: _Settings) -> None:
        self._name, self._settings = name, settings
        self._number, self.account = settings.phone_number_id.strip(), ""
        self._headers = {"Authorization": f"Bearer {settings.token.strip()}"}
        base_url = settings.base_url.rstrip("/")
        proxy = proxy_for(base_url, os.environ)
        self._client = open_client(
            proxy=proxy, base_url=base_url, headers=self._headers, timeout=20
        )
        #: The last message of each chat, and when "is typing" was shown for it.
        self._last = dict[str, tuple[str, float]]()
        #: Chats that a message did not reach as it came too late.
        self._late = set[str]()

    # Receiving

    async def run(self, take: Take, connected: Callable[[], None]) -> None:
        """Receive events until cancelled; see `Channel`."""

        async def came(body: Any) -> None:
            for event in _events(body, self._number):
                await self._taken(event, take)

        await self.probe()
        self.account = self._number
        settings = self._settings
        async with Webhook(
            settings.webhook_listen, settings.app_secret.strip(), came, settings.verify_token
        ):
            connected()
            await asyncio.Event().wait()

    async def _taken(self, event: dict[str, Any], take: Take) -> None:
        """Hand a message on, or note that one of the bot's own was too late."""
        if "status" in event:
            codes = [each.get("code") for each in event.get("errors") or ()]
            if event["status"] == "failed":
                _log.warning("Meta did not deliver a message: %s", codes)
            if _NOT_WITHIN_A_DAY in codes:
                self._late.add(str(event.get("recipient_id") or event.get("recipient_user_id")))
            return
        try:
            incoming = self._incoming(event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _log.warning("a message cannot be read: %s", type(error).__name__)
            return
        if incoming is None:
            return
        await take(incoming)
        chat = incoming.place.chat
        self._last.pop(chat, None)
        self._last[chat] = str(event["id"]), 0.0
        if len(self._last) > _MOST_CHATS:
            del self._last[next(iter(self._last))]
        if chat in self._late:
            self._late.discard(chat)
            with suppress(ChannelError):
                await self.send(incoming.place, Outgoing(text="", plain=_LATE))

    def _incoming(self, event: dict[str, Any]) -> Incoming | None:
        if event.get("group_id"):
            return None  # who speaks to the bot in a group, Meta does not say
        kind, person = str(event["type"]), str(event.get("from") or event["from_user_id"])
        common: dict[str, Any] = {
            "id": f"{self._name}:{self.account}:{event['id']}",
            "place": ChatPlace(self._name, self.account, "private", person),
            "person": person,
            "name": encodable(str(event["name"] or person)),
            "at": float(event["timestamp"]),
        }
        context = _part(event, "context")
        if kind == "interactive":
            pressed = next(v for k, v in event[kind].items() if k.endswith("_reply"))
            message = str(context.get("id", ""))
            return Incoming(**common, button=str(pressed["id"]), message=message, is_own=True)
        text, files, unsupported = _content(event)
        if not text and not files and not unsupported:
            return None  # a reaction, a changed number
        is_own = not (context.get("forwarded") or context.get("frequently_forwarded"))
        return Incoming(
            **common,
            text=text if is_own else f"(forwarded)\n{text}",
            files=files,
            message=str(event["id"]),
            is_own=is_own,
            unsupported=unsupported,
        )

    # Sending

    async def probe(self) -> None:
        """Ask whether the number is there."""
        answer = await self._asked("GET", f"/{self._number}", params={"fields": "id"})
        if str(answer.get("id")) != self._number:
            raise ChannelError("Meta's answer could not be understood.")

    async def send(self, place: ChatPlace, message: Outgoing) -> str:
        """Send a message and return its id."""
        text, buttons = message.text or message.plain, [b for row in message.buttons for b in row]
        if message.file is not None:  # no file has buttons here
            name, media = message.file.name, await self._uploaded(message.file)
            document = {"id": media, "filename": name, "caption": text}
            return await self._said(place, "document", document)
        if not buttons:
            return await self._said(place, "text", {"body": text, "preview_url": False})
        choices = _with_buttons(buttons) if _fit(buttons, text) else _with_list(buttons)
        return await self._said(place, "interactive", {"body": {"text": text}, **choices})

    async def edit(self, place: ChatPlace, message_id: str, message: Outgoing) -> None:
        """Refuse: WhatsApp's messages stay as they are."""
        raise MessageGoneError("WhatsApp cannot edit messages.")

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that an answer is being written, as long as the chat's last message is known."""
        message, shown = self._last.get(place.chat, ("", 0.0))
        if not message or time.monotonic() - shown < _TYPING_SECONDS:
            return
        self._last[place.chat] = message, time.monotonic()
        body = {"messaging_product": "whatsapp", "status": "read", "message_id": message}
        body |= {"typing_indicator": {"type": "text"}}
        await self._asked("POST", f"/{self._number}/messages", json=body)

    async def fetch(self, file: IncomingFile, most_bytes: int) -> bytes:
        """Return the content of a file."""
        number, media = {"phone_number_id": self._number}, part_of_path(file.ref)
        found = await self._asked("GET", f"/{media}", params=number)
        if int(found.get("file_size") or 0) > most_bytes:
            raise too_large(most_bytes)
        hosts = [*_META, self._settings.base_url]
        return await fetched(str(found.get("url")), most_bytes, self._headers, hosts=hosts)

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.aclose()

    async def _said(self, place: ChatPlace, kind: str, content: dict[str, Any]) -> str:
        whom = "to" if place.chat.isdecimal() else "recipient"  # a number, or an id of Meta's own
        body = {"messaging_product": "whatsapp", "recipient_type": "individual"}
        body |= {whom: place.chat, "type": kind, kind: content}
        answer = await self._asked("POST", f"/{self._number}/messages", json=body)
        self._last[place.chat] = self._last.get(place.chat, ("", 0.0))[0], 0.0
        try:
            return str(answer["messages"][0]["id"])
        except (KeyError, IndexError, TypeError):
            raise MaybeSentError("Meta's answer could not be understood.") from None

    async def _uploaded(self, file: OutgoingFile) -> str:
        """Bring a file to Meta and return its id there. Raises ChannelError; nobody has seen the file then."""
        given = {"messaging_product": "whatsapp", "type": _media_type(file)}
        parts = {"file": (file.name, file.data, given["type"])}
        try:
            path = f"/{self._number}/media"
            answer = await self._asked("POST", path, data=given, files=parts, timeout=120)
            return str(answer["id"])
        except (MaybeSentError, KeyError):
            raise ChannelError("A file could not be brought to Meta.") from None

    async def _asked(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        """Return what Meta answers. Raises ChannelError, without the token and what it was raised from."""
        try:
            answer = await self._client.request(method, path, **given)
            body = answer.json()
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, RuntimeError):
            raised = UnreachableError("Meta cannot be reached.")  # or the client is closed
        except httpx2.TimeoutException:
            raised = MaybeSentError("Meta did not answer in time.")
        except httpx2.HTTPError:
            raised = MaybeSentError("The connection to Meta broke.")
        except ValueError:
            raised = MaybeSentError("Meta's answer could not be understood.")
        else:
            if answer.is_success and isinstance(body, dict):
                return cast(dict[str, Any], body)
            raised = _refusal(answer, body)
        raise raised


def _refusal(answer: httpx2.Response, body: Any) -> ChannelError:
    """Return the error that an answer is; only words of Meta's own get into it."""
    error = _part(body, "error")
    code, details = error.get("code"), _part(error, "error_data").get("details")
    kind = _CODES.get(code) if isinstance(code, int) else None
    if kind is WaitError or (kind is None and answer.status_code == 429):
        after = answer.headers.get("Retry-After", "")
        return WaitError(float(after) if after.isdecimal() else _UNSAID_PAUSE)
    if kind is None and answer.status_code >= 500:
        kind = MaybeSentError
    if kind is BadSettingsError or answer.status_code == 401 or error.get("error_subcode") == 33:
        return BadSettingsError(_REFUSED)
    if code == _NOT_WITHIN_A_DAY:
        return ChatGoneError(_WINDOW)
    words = str(details or error.get("message") or answer.status_code).rstrip(".")
    return (kind or RefusedError)(f"Meta: {words}.")


def _events(body: Any, number: str) -> Iterator[dict[str, Any]]:
    """Return the messages and statuses of a number, each message with the name of its author."""
    for entry in body["entry"]:
        for change in entry.get("changes") or ():
            value = change["value"]
            if _part(value, "metadata").get("phone_number_id") != number:
                continue
            names = dict[str, Any]()
            for each in value.get("contacts") or ():
                name = _part(each, "profile").get("name")
                names |= {str(each.get("wa_id")): name, str(each.get("user_id")): name}
            for each in value.get("messages") or ():
                yield {**each, "name": names.get(str(each.get("from") or each.get("from_user_id")))}
            yield from value.get("statuses") or ()


def _part(of: Any, key: str) -> dict[str, Any]:
    """Return an object in an object of JSON, an empty one where there is none."""
    found = cast(dict[str, Any], of).get(key) if isinstance(of, dict) else None
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _content(event: dict[str, Any]) -> tuple[str, tuple[IncomingFile, ...], str]:
    """Return the words of a message, its file, and its kind where it cannot be read."""
    kind = event["type"]
    found = _part(event, kind)
    if kind == "audio" and found.get("voice"):
        return "", (), "a voice message"
    files = (_file(kind, found),) if kind in _FILES else ()
    text = found.get("body" if kind == "text" else "text" if kind == "button" else "caption")
    return encodable(str(text or "")).strip(), files, _UNSUPPORTED.get(kind, "")


def _file(kind: str, found: dict[str, Any]) -> IncomingFile:
    media_type = str(found.get("mime_type") or "").partition(";")[0]
    ending = mimetypes.guess_extension(media_type) or ""
    name = encodable(str(found.get("filename") or f"{kind}{ending}"))
    return IncomingFile(ref=str(found["id"]), name=name, media_type=media_type)


def _media_type(file: OutgoingFile) -> str:
    """Return what a file is to Meta, which takes texts of one kind."""
    guessed = mimetypes.guess_type(file.name)[0] or file.media_type
    is_text = guessed.startswith("text/")
    if not is_text and not guessed.startswith(("image/", "application/pdf", "application/vnd.")):
        with suppress(UnicodeDecodeError):
            is_text = bool(file.data.decode())
    return "text/plain" if is_text else guessed


def _fit(buttons: list[Button], text: str) -> bool:
    """Return whether the choices can be buttons, which WhatsApp shows under short texts."""
    labels = {each.label for each in buttons if len(each.label) <= _BUTTON_LENGTH}
    return len(labels) == len(buttons) <= _MOST_BUTTONS and len(text) <= _TEXT_OVER_BUTTONS


def _with_buttons(buttons: list[Button]) -> dict[str, Any]:
    replies = [{"type": "reply", "reply": {"id": b.token, "title": b.label}} for b in buttons]
    return {"type": "button", "action": {"buttons": replies}}


def _with_list(buttons: list[Button]) -> dict[str, Any]:
    sections = [{"title": "Choices", "rows": [_line(each) for each in buttons[:_MOST_LINES]]}]
    return {"type": "list", "action": {"button": "Choose", "sections": sections}}


def _line(button: Button) -> dict[str, Any]:
    """Return a line of a list: a label that is too long for its title stands below it once more."""
    line = {"id": button.token, "title": clipped(button.label, _LINE_LENGTH)}
    if len(button.label) > _LINE_LENGTH:
        line["description"] = button.label[:_NOTE_LENGTH]
    return line
