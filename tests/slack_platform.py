"""A server that is Slack, as far as a bot in socket mode needs it: the Web API, the connection for envelopes, and its files.

As the real one it sends an envelope again that nobody acknowledged, also by another connection, and answers what it does not do with
`ok: false`.
"""

import asyncio
import html
import json
import re
from collections.abc import Sequence
from typing import Any

from aiohttp import WSMsgType, web

from channel_contract import FakePlatform, Sent
from ybs.frontends.gateway.slack import make_channel

BOT, ROOM, THREAD = "U4242", "C600", "1700000000.000100"
#: Put together here so that no scanner takes them for leaked ones.
TOKEN, APP_TOKEN = "-".join(("xoxb", "s" * 30)), "-".join(("xapp", "1", "t" * 30))
_ERRORS = {"gone": "channel_not_found", "refused": "invalid_blocks"}


class SlackPlatform(FakePlatform):
    """See the module. `calls` are the arguments of the methods that changed something, `connections` how often a client came."""

    kind, make = "slack", staticmethod(make_channel)
    home, person, room, thread = "D11", "U21", ROOM, THREAD

    def __init__(self) -> None:
        self._sent, self.files = dict[str, Sent](), dict[str, tuple[str, bytes]]()
        self._envelopes = dict[str, dict[str, Any]]()
        self._socket: web.WebSocketResponse | None = None
        self._faults = list[tuple[str, float]]()
        self._doubles, self._number, self._port = 1, 0, 0
        self.calls, self.connections, self.fetches = list[dict[str, Any]](), 0, list[str]()
        self._pinged = list[str]()
        #: Whether a connection gets no answer to its pings.
        self.is_silent = False
        #: Where a file lies that is not Slack's.
        self.elsewhere = ""

    async def start(self) -> None:
        """See FakePlatform."""
        app = web.Application(client_max_size=100_000_000)
        app.router.add_get("/link", self._link)
        app.router.add_get("/api/files/{name}", self._file)
        app.router.add_post("/upload/{name}", self._upload)
        app.router.add_route("*", "/api/{method}", self._api)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """See FakePlatform."""
        await self.disconnect()
        await self._runner.cleanup()

    def settings(self, *, wrong: bool = False) -> dict[str, Any]:
        """See FakePlatform."""
        token = f"{TOKEN}-wrong" if wrong else TOKEN
        return {"token": token, "app_token": APP_TOKEN, "base_url": f"{self.url}/api/"}

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
        raw: str = "",
        **fields: Any,
    ) -> None:
        """See FakePlatform. `raw` is a text as Slack writes it, `fields` are more of the event's; a channel's messages are told where they mention the bot."""
        where = chat or self.home
        escaped = raw or html.escape(text, quote=False)
        event = {"type": "message", "channel": where, "user": person or self.person}
        event |= {"ts": self._time(), "text": f"<@{BOT}> {escaped}" if mention else escaped}
        event |= {"files": [self._attached(*each) for each in files]} if files else {}
        event |= {"thread_ts": thread} if thread else {}
        if not where.startswith("D"):
            event |= {"type": "app_mention"}
            if not mention:
                return
        await self.tell("events_api", {"type": "event_callback", "event": event | fields})

    async def press(self, label: str) -> None:
        """See FakePlatform."""
        sent, token = next(
            (each, token)
            for each in reversed(self.sent)
            for shown, token in each.buttons
            if shown == label
        )
        container = {"type": "message", "message_ts": sent.id, "channel_id": sent.chat}
        container |= {"thread_ts": sent.thread} if sent.thread else {}
        payload = {"type": "block_actions", "user": {"id": self.person, "name": "ann"}}
        payload |= {"channel": {"id": sent.chat}, "container": container}
        action = {"action_id": token, "value": token, "action_ts": self._time()}
        await self.tell("interactive", payload | {"actions": [action | {"type": "button"}]})

    @property
    def sent(self) -> list[Sent]:
        """See FakePlatform."""
        return list(self._sent.values())

    @property
    def unread(self) -> int:
        """See FakePlatform."""
        return len(self._envelopes)

    @property
    def pings(self) -> list[str]:
        """See FakePlatform."""
        return self._pinged

    def fault(self, what: str, *, seconds: float = 1.0) -> None:
        """See FakePlatform. `hang` never answers; other words are Slack's own for what went wrong."""
        self._faults.append((what, seconds))

    async def disconnect(self) -> None:
        """See FakePlatform."""
        if self._socket is not None:
            await self._socket.close()
            self._socket = None

    def double(self) -> None:
        """See FakePlatform."""
        self._doubles = 2

    # The connection for envelopes

    async def tell(self, kind: str, payload: dict[str, Any]) -> None:
        """Send an envelope, again and again until it is acknowledged."""
        for number in range(self._doubles):
            name = f"envelope-{self._time()}"
            envelope = {"envelope_id": name, "type": kind, "payload": payload}
            envelope |= {"accepts_response_payload": False, "retry_attempt": number}
            self._envelopes[name] = envelope
            await self.push(envelope)

    async def push(self, envelope: dict[str, Any]) -> None:
        """Send something by the connection, where there is one."""
        if self._socket is not None and not self._socket.closed:
            await self._socket.send_json(envelope)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=not self.is_silent)
        await socket.prepare(request)
        self.connections += 1
        self._socket = socket
        await socket.send_json({"type": "hello", "num_connections": 1})
        for envelope in list(self._envelopes.values()):
            await socket.send_json({**envelope, "retry_attempt": 1})
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self._envelopes.pop(json.loads(message.data)["envelope_id"], None)
        return socket

    # The Web API

    async def _file(self, request: web.Request) -> web.Response:
        self.fetches.append(request.headers.get("Authorization", ""))
        if self.fetches[-1] != f"Bearer {TOKEN}":
            raise web.HTTPFound("/login")
        return web.Response(body=self.files[request.match_info["name"]][1])

    async def _upload(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.files[name] = (self.files[name][0], await request.read())
        return web.Response(text="OK")

    async def _api(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        given = await _arguments(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token != (APP_TOKEN if method == "apps.connections.open" else TOKEN):
            return web.json_response({"ok": False, "error": "invalid_auth"})
        if method == "auth.test":
            return web.json_response({"ok": True, "user_id": BOT, "team_id": "T1"})
        if method == "apps.connections.open":
            url = f"{self.url}/link".replace("http", "ws", 1)
            return web.json_response({"ok": True, "url": url})
        if method == "files.info":
            name = given["file"]
            url = self.elsewhere or f"{self.url}/api/files/{name}"
            return web.json_response(
                {"ok": True, "file": {"id": name, "url_private_download": url}}
            )
        if method == "files.getUploadURLExternal":
            name = f"F{len(self.files)}"
            self.files[name] = (given["filename"], b"")
            answer = {"ok": True, "file_id": name, "upload_url": f"{self.url}/upload/{name}"}
            return web.json_response(answer)
        return await self._changed(request, method, given)

    async def _changed(
        self, request: web.Request, method: str, given: dict[str, Any]
    ) -> web.Response:
        what, seconds = self._faults.pop(0) if self._faults else ("", 0.0)
        if what == "hang":
            await asyncio.Event().wait()
        if what == "wait":
            headers = {"Retry-After": str(int(seconds))}
            return web.json_response(
                {"ok": False, "error": "ratelimited"}, status=429, headers=headers
            )
        if what == "fail":
            return web.Response(status=500, text="<html>", content_type="text/html")
        if what == "drop_before":
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if what not in ("", "odd", "drop_after"):
            return web.json_response({"ok": False, "error": _ERRORS.get(what, what)})
        self.calls.append({"method": method, **given})
        answer = self._put(method, given)
        if what == "drop_after":
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"ok": True} if what == "odd" else answer)

    def _put(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        if method == "files.completeUploadExternal":
            (file,) = json.loads(given["files"])
            name, data = self.files[file["id"]]
            new = Sent(id=file["id"], chat=given["channel_id"], text=given["initial_comment"])
            new.thread, new.file, new.data = given.get("thread_ts", ""), name, data
            self._sent[new.id] = new
            return {"ok": True, "files": [{"id": new.id}]}
        blocks = given["blocks"]
        blocks = json.loads(blocks) if isinstance(blocks, str) else blocks
        text, buttons, error = _shown(blocks)
        if error:
            return {"ok": False, "error": error}
        self._pinged += _named(blocks[0]["text"], given["text"])
        if method == "chat.update":
            old = self._sent.get(given["ts"])
            if old is None:
                return {"ok": False, "error": "message_not_found"}
            old.edits, old.text, old.buttons = (*old.edits, old.text), text, buttons
            return {"ok": True, "ts": old.id}
        new = Sent(id=self._time(), chat=given["channel"], text=text, buttons=buttons)
        new.thread = given.get("thread_ts", "")
        self._sent[new.id] = new
        return {"ok": True, "ts": new.id}

    def _attached(self, name: str, data: bytes) -> dict[str, Any]:
        ref = f"F{len(self.files)}"
        self.files[ref] = (name, data)
        return {"id": ref, "name": name, "size": len(data), "mimetype": "text/plain"}

    def _time(self) -> str:
        self._number += 1
        return f"1764000000.{self._number:06}"


def _shown(blocks: list[Any]) -> tuple[str, tuple[tuple[str, str], ...], str]:
    """Return a message's text and buttons, and what is wrong with them."""
    section, *others = blocks
    text, elements = section["text"]["text"], others[0]["elements"] if others else []
    buttons = tuple((each["text"]["text"], each["value"]) for each in elements)
    names = {each["action_id"] for each in elements}
    is_wrong = not 0 < len(text) <= 3000 or len(names) != len(buttons) or len(buttons) > 25
    return text, buttons, "invalid_blocks" if is_wrong else ""


def _named(section: dict[str, str], text: str) -> list[str]:
    """Return whom a message notifies: names in its markup, and in the text that stands in notifications."""
    names = re.findall(r"<[!@][^>]*>", text)
    if section["type"] == "mrkdwn":
        names += re.findall(r"<[!@][^>]*>", section["text"])
        words = re.sub(r"```.*?```|`[^`]*`", "", section["text"], flags=re.S)
        names += re.findall(r"(?<!\w)@(?:here|channel|everyone)", words)
    return names


async def _arguments(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return json.loads(await request.read())
    return {**request.query, **dict(await request.post())}
