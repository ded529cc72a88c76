"""A server that is Meta's Cloud API for one number, as far as a bot needs it, and what sends its webhooks.

As the real one, it sends an event until the webhook has answered 200, and refuses what is longer than Meta says.
"""

import asyncio
import hashlib
import hmac
import json
import re
import socket
import time
from collections.abc import Sequence
from typing import Any

import aiohttp
from aiohttp import web

from channel_contract import FakePlatform, Sent
from ybs.frontends.gateway.whatsapp import make_channel

NUMBER = "106540352242922"
#: Put together here so that no scanner takes them for leaked ones.
TOKEN, APP_SECRET = "E" + "A" * 60, "5" * 32
VERIFY = "a-word-of-ones-own"
_ERRORS: dict[str, tuple[int, dict[str, Any]]] = {
    "wait": (400, {"message": "(#131056) Pair rate limit hit", "code": 131056}),
    "gone": (400, {"message": "(#131026) Message undeliverable", "code": 131026}),
    "refused": (400, {"message": "(#100) Invalid parameter", "code": 100}),
    "late": (400, {"message": "(#131047) Re-engagement message", "code": 131047}),
    "fail": (500, {"message": "An unknown error occurred", "code": 1}),
    "expired": (401, {"message": "Session has expired", "code": 190, "error_subcode": 463}),
}


class WhatsAppPlatform(FakePlatform):
    """See the module. `typing` are the messages that "is typing" was shown for, `webhook` is where the channel listens,
    `connections` how many times it asked for the number."""

    kind, make = "whatsapp", staticmethod(make_channel)
    home = person = "491701234567"
    room = ""

    def __init__(self) -> None:
        self._sent, self._media = list[Sent](), dict[str, tuple[str, str, bytes]]()
        self._events, self._changed = list[dict[str, Any]](), asyncio.Event()
        self._faults, self._doubles, self._number = list[tuple[str, float]](), 1, 0
        self.typing, self.statuses, self._port = list[str](), list[int](), 0
        self.connections = 0
        #: The next answers to messages: a status, and what is wrong.
        self.answers = list[tuple[int, Any]]()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.listen = f"127.0.0.1:{free.getsockname()[1]}"
        self.webhook = f"http://{self.listen}/whatsapp"

    async def start(self) -> None:
        """See FakePlatform."""
        app = web.Application(client_max_size=200_000_000)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._delivering = asyncio.create_task(self._deliver())

    async def stop(self) -> None:
        """See FakePlatform."""
        self._delivering.cancel()
        await asyncio.gather(self._delivering, return_exceptions=True)
        await self._runner.cleanup()

    def settings(self, *, wrong: bool = False) -> dict[str, Any]:
        """See FakePlatform."""
        return {
            "token": TOKEN[::-1] if wrong else TOKEN,
            "phone_number_id": NUMBER,
            "app_secret": APP_SECRET,
            "verify_token": VERIFY,
            "webhook_listen": self.listen,
            "base_url": self.url,
        }

    # What persons do

    async def say(
        self,
        text: str,
        *,
        chat: str = "",
        person: str = "",
        thread: str = "",
        mention: bool = False,
        files: Sequence[tuple[str, bytes]] = (),
        **fields: Any,
    ) -> None:
        """See FakePlatform. `fields` are more of the message's."""
        for name, data in files:
            media = {"id": self._keep(name, "application/octet-stream", data), "filename": name}
            media |= {"mime_type": "application/octet-stream", "caption": text}
            self.message({"type": "document", "document": media} | fields, person or chat)
        if not files:
            self.message({"type": "text", "text": {"body": text}} | fields, person or chat)

    def message(self, fields: dict[str, Any], person: str = "") -> None:
        """Send a message to the number."""
        person = person or self.person
        who = {"wa_id": person, "profile": {"name": "Ann"}}
        own = {"from": person, "id": self._id(), "timestamp": str(int(time.time()))}
        self.tell({"contacts": [who], "messages": [own | fields]})

    async def press(self, label: str) -> None:
        """See FakePlatform."""
        sent, token = next(
            (each, token)
            for each in reversed(self._sent)
            for shown, token in each.buttons
            if shown == label
        )
        reply = {"type": "button_reply", "button_reply": {"id": token, "title": label}}
        context = {"from": NUMBER, "id": sent.id}
        self.message({"type": "interactive", "interactive": reply, "context": context}, sent.chat)

    def too_late(self, sent: Sent) -> None:
        """Say that a message was not delivered as 24 hours have passed."""
        error = {"code": 131047, "title": "Re-engagement message"}
        self.tell(
            {
                "statuses": [
                    {
                        "id": sent.id,
                        "status": "failed",
                        "recipient_id": sent.chat,
                        "errors": [error],
                    }
                ]
            }
        )

    def tell(self, value: dict[str, Any], *, number: str = NUMBER) -> None:
        """Have the webhook told a change."""
        metadata = {"display_phone_number": "49301234567", "phone_number_id": number}
        value = {"messaging_product": "whatsapp", "metadata": metadata} | value
        changes = [{"field": "messages", "value": value}]
        body = {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": changes}]}
        self._events += [body] * self._doubles
        self._changed.set()

    @property
    def media(self) -> list[tuple[str, str, bytes]]:
        """The files: name, kind and content."""
        return list(self._media.values())

    @property
    def sent(self) -> list[Sent]:
        """See FakePlatform."""
        return self._sent

    @property
    def unread(self) -> int:
        """See FakePlatform."""
        return len(self._events)

    @property
    def pings(self) -> list[str]:
        """See FakePlatform."""
        texts = [re.sub("```.*?```|`.*?`", "", each.text, flags=re.S) for each in self._sent]
        return [name for text in texts for name in re.findall(r"(?<!\w)@\w+", text)]

    def fault(self, what: str, *, seconds: float = 1.0) -> None:
        """See FakePlatform. `hang` never answers; `late`: more than 24 hours have passed; `expired`: the token is."""
        self._faults.append((what, seconds))

    async def disconnect(self) -> None:
        """See FakePlatform: a webhook has no connection to break."""

    def double(self) -> None:
        """See FakePlatform."""
        self._doubles = 2

    # The webhook

    async def _deliver(self) -> None:
        async with aiohttp.ClientSession() as client:
            while True:
                if not self._events:
                    self._changed.clear()
                    await self._changed.wait()
                if self._events and await self._told(client, self._events[0]):
                    self._events.pop(0)
                else:
                    await asyncio.sleep(0.05)

    async def _told(self, client: aiohttp.ClientSession, event: dict[str, Any]) -> bool:
        try:
            async with client.post(self.webhook, **signed(event)) as answer:
                self.statuses.append(answer.status)
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    # The API

    async def _handle(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _json(401, {"error": {"message": "Invalid OAuth access token", "code": 190}})
        if path == NUMBER:
            self.connections += 1
            return _json(200, {"id": NUMBER})
        if path.startswith("files/"):
            return web.Response(body=self._media[path.removeprefix("files/")][2])
        if path == f"{NUMBER}/media":
            given = await request.post()
            file = given["file"]
            assert isinstance(file, web.FileField)
            assert given["messaging_product"] == "whatsapp"
            kind, data = str(given["type"]), file.file.read()
            return _json(200, {"id": self._keep(file.filename, kind, data)})
        if path in self._media:
            name, media_type, data = self._media[path]
            found = {"url": f"{self.url}/files/{path}", "mime_type": media_type, "id": path}
            return _json(200, found | {"file_size": len(data), "name": name})
        if path != f"{NUMBER}/messages":
            error = {"message": "Unsupported get request", "code": 100, "error_subcode": 33}
            return _json(400, {"error": error})
        return await self._posted(request, await request.json())

    async def _posted(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        if body.get("status") == "read":
            self.typing.append(body["message_id"])
            return _json(200, {"success": True})
        what, seconds = self._faults.pop(0) if self._faults else ("", 0.0)
        if self.answers:
            status, error = self.answers.pop(0)
            return _json(status, {"error": error})
        if what == "hang":
            await asyncio.Event().wait()
        if what in _ERRORS:
            status, error = _ERRORS[what]
            headers = {"Retry-After": str(int(seconds))} if what == "wait" else {}
            return _json(status, {"error": error}, headers)
        if what == "drop_before":
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        wrong = _wrong(body, self._media)
        if wrong:
            return _json(400, {"error": {"message": f"(#100) {wrong}", "code": 100}})
        sent = self._put(body)
        if what == "drop_after":
            assert request.transport is not None
            request.transport.close()
        return _json(200, {"messages": []} if what == "odd" else {"messages": [{"id": sent.id}]})

    def _put(self, body: dict[str, Any]) -> Sent:
        content = body[body["type"]]
        sent = Sent(id=self._id(), chat=body.get("to") or body["recipient"], text=_text(body))
        if body["type"] == "document":
            sent.file, sent.data = content["filename"], self._media[content["id"]][2]
        if body["type"] == "interactive":
            sent.buttons = tuple(_buttons(content["action"]))
        self._sent.append(sent)
        return sent

    def _keep(self, name: str, media_type: str, data: bytes) -> str:
        number = str(7000 + len(self._media))
        self._media[number] = name, media_type, data
        return number

    def _id(self) -> str:
        self._number += 1
        return f"wamid.{self._number:020}"


def signed(event: dict[str, Any], secret: str = APP_SECRET) -> dict[str, Any]:
    """Return what is posted for an event: its bytes, and the header with their signature."""
    data = json.dumps(event).encode()
    signature = hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()
    return {"data": data, "headers": {"X-Hub-Signature-256": f"sha256={signature}"}}


def _buttons(action: dict[str, Any]) -> list[tuple[str, str]]:
    if "buttons" in action:
        return [(b["reply"]["title"], b["reply"]["id"]) for b in action["buttons"]]
    return [(row["title"], row["id"]) for each in action["sections"] for row in each["rows"]]


def _text(body: dict[str, Any]) -> str:
    content = body[body["type"]]
    return {
        "text": lambda: content["body"],
        "document": lambda: content.get("caption", ""),
        "interactive": lambda: content["body"]["text"],
    }[body["type"]]()


def _wrong(body: dict[str, Any], media: dict[str, Any]) -> str:
    """Return what is wrong with a message, by Meta's limits."""
    content, text = body[body["type"]], _text(body)
    most = {"text": 4096, "document": 1024}.get(body["type"], 4096)
    if body["type"] == "document" and content["id"] not in media:
        return "no such media"
    if body["type"] == "interactive":
        labels = [label for label, _ in _buttons(content["action"])]
        is_list = content["type"] == "list"
        most, longest, count = (4096, 24, 10) if is_list else (1024, 20, 3)
        if not 0 < len(labels) <= count or max(map(len, labels)) > longest:
            return "too many or too long buttons"
        if not is_list and len(set(labels)) < len(labels):
            return "two buttons of one title"
    return "" if 0 < len(text) <= most else "the text is empty or too long"


def _json(status: int, body: Any, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response(body, status=status, headers=headers)
