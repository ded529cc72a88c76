"""A server that is Discord, as far as a bot needs it: its REST API, its gateway with resumed sessions, and its files.

As on the real one, a bot without the privileged intent reads nothing in a server but what mentions it, and a message whose nonce came
before is the earlier one.
"""

import asyncio
import json
import re
import time
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from aiohttp import WSMsgType, web
from msgspec import Struct, field

from channel_contract import FakePlatform, Sent
from ybs.frontends.gateway.discord import make_channel

BOT = {"id": "4242", "username": "yips", "discriminator": "0", "avatar": None, "bot": True}
#: Put together here so that no scanner takes it for a leaked one.
TOKEN = ".".join(("D" * 24, "e" * 6, "f" * 38))
GUILD, ROOM, THREAD = "500", "600", "700"
MESSAGE_CONTENT = 1 << 15
REFUSALS = {"refused": (400, 50035), "gone": (403, 50001)}


class _Session(Struct):
    """What was told to a client, by number, and where it listens."""

    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    socket: web.WebSocketResponse | None = None
    deflate: Any = None
    sees_all: bool = False


class DiscordPlatform(FakePlatform):
    """See the module. `forgets` has it resume no session; `calls` are the requests that changed something."""

    kind, make = "discord", staticmethod(make_channel)
    home, person, room, thread = "11", "21", ROOM, THREAD
    name: ClassVar[str] = "Ann"

    def __init__(self) -> None:
        self._sent, self._nonces = dict[str, Sent](), dict[str, str]()
        self.sessions, self.history = dict[str, _Session](), list[dict[str, Any]]()
        self._faults, self.files = list[tuple[str, float]](), dict[str, bytes]()
        self._doubles, self.forgets = 1, False
        self.calls, self.deferred, self.typing = list[dict[str, Any]](), list[str](), 0
        self.identified = self.resumed = 0
        self._number, self._port, self._pinged = 0, 0, list[str]()

    async def start(self) -> None:
        """See FakePlatform."""
        app = web.Application(client_max_size=100_000_000)
        app.router.add_get("/gateway/", self._gateway)
        app.router.add_get("/files/{name}", self._file)
        app.router.add_route("*", "/api/{path:.*}", self._api)
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
        return {
            "token": TOKEN[::-1] if wrong else TOKEN,
            "base_url": f"{self.url}/api",
            "gateway_url": f"{self.url}/gateway/".replace("http", "ws", 1),
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
        where, who = thread or chat or self.home, person or self.person
        message = self.message(where, _user(who, self.name))
        message |= {"content": f"<@{BOT['id']}> {text}" if mention else text}
        message |= {"mentions": [BOT] if mention else []}
        message |= {"attachments": [self._attached(*each) for each in files]}
        if where in (ROOM, THREAD):
            message |= {"guild_id": GUILD, "member": _member()}
        message |= fields
        self.history.append(message)
        await self.tell("MESSAGE_CREATE", message)

    async def press(self, label: str) -> None:
        """See FakePlatform."""
        sent, token = next(
            (each, token)
            for each in reversed(self.sent)
            for shown, token in each.buttons
            if shown == label
        )
        chat = sent.thread or sent.chat
        interaction = {
            "id": self._snowflake(),
            "application_id": BOT["id"],
            "type": 3,
            "token": "answer",
            "version": 1,
            "channel_id": chat,
            "channel": _channel(chat) if chat in (ROOM, THREAD) else {"id": chat, "type": 1},
            "message": {**self.message(chat, BOT), "id": sent.id, "content": sent.text},
            "data": {"custom_id": token, "component_type": 2},
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": {},
            "attachment_size_limit": 0,
        }
        who = _user(self.person, self.name)
        if chat in (ROOM, THREAD):
            interaction |= {"guild_id": GUILD, "member": {**_member(), "user": who}}
        else:
            interaction |= {"user": who}
        await self.tell("INTERACTION_CREATE", interaction)

    @property
    def sent(self) -> list[Sent]:
        """See FakePlatform."""
        return list(self._sent.values())

    @property
    def connections(self) -> int:
        """How often a client came."""
        return self.identified + self.resumed

    @property
    def unread(self) -> int:
        """See FakePlatform."""
        return 0

    @property
    def pings(self) -> list[str]:
        """See FakePlatform."""
        return self._pinged

    def fault(self, what: str, *, seconds: float = 1.0) -> None:
        """See FakePlatform. `hang` never answers."""
        self._faults.append((what, seconds))

    async def disconnect(self) -> None:
        """See FakePlatform."""
        for each in self.sessions.values():
            if each.socket is not None:
                await each.socket.close(code=4000)
                each.socket = None

    def double(self) -> None:
        """See FakePlatform."""
        self._doubles = 2

    # The gateway

    async def tell(self, name: str, data: dict[str, Any]) -> None:
        """Tell an event to all clients that were there, now or when they are back."""
        for session in self.sessions.values():
            shown = data
            is_hidden = "guild_id" in data and not data.get("mentions") and not session.sees_all
            if name == "MESSAGE_CREATE" and is_hidden:
                shown = {**data, "content": "", "attachments": []}
            for _ in range(self._doubles):
                await self._told(session, name, shown)

    async def _told(self, session: _Session, name: str, data: dict[str, Any]) -> None:
        event = {"op": 0, "t": name, "s": len(session.events) + 1, "d": data}
        session.events.append(event)
        await self._push(session, event)

    async def _push(self, session: _Session, event: dict[str, Any]) -> None:
        if session.socket is not None and not session.socket.closed:
            data = session.deflate.compress(json.dumps(event).encode())
            await session.socket.send_bytes(data + session.deflate.flush(zlib.Z_SYNC_FLUSH))

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        session = _Session(socket=socket, deflate=zlib.compressobj())
        await self._push(session, {"op": 10, "d": {"heartbeat_interval": 40_000}})
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            told = json.loads(message.data)
            if told["op"] == 1:
                await self._push(session, {"op": 11, "d": None})
            elif told["d"]["token"] != TOKEN:
                await socket.close(code=4004)
            elif told["op"] == 2:
                await self._identified(session, told["d"]["intents"])
            elif told["op"] == 6:
                session = await self._resumed(session, told["d"])
        return socket

    async def _identified(self, session: _Session, intents: int) -> None:
        self.identified += 1
        name = f"session-{self.identified}"
        session.sees_all = bool(intents & MESSAGE_CONTENT)
        self.sessions[name] = session
        ready = {"v": 10, "user": BOT, "session_id": name, "private_channels": []}
        ready |= {"guilds": [{"id": GUILD, "unavailable": True}], "shard": [0, 1]}
        ready |= {"resume_gateway_url": self.settings()["gateway_url"]}
        await self._told(session, "READY", ready | {"application": {"id": BOT["id"], "flags": 0}})
        guild = {"id": GUILD, "name": "Server", "member_count": 2, "members": [], "roles": []}
        guild |= {"channels": [_channel(ROOM)], "threads": [_channel(THREAD)], "owner_id": "21"}
        await self._told(session, "GUILD_CREATE", guild)

    async def _resumed(self, session: _Session, asked: dict[str, Any]) -> _Session:
        known = self.sessions.get(asked["session_id"] or "")
        if known is None or self.forgets:
            self.sessions.pop(asked["session_id"] or "", None)
            await self._push(session, {"op": 9, "d": False})
            return session
        self.resumed += 1
        known.socket, known.deflate = session.socket, session.deflate
        for event in known.events[asked["seq"] :]:
            await self._push(known, event)
        await self._told(known, "RESUMED", {})
        return known

    # The REST API

    async def _file(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["name"]])

    async def _api(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        if path.startswith("interactions/"):
            self.deferred.append(path.split("/")[1])
            return web.Response(status=204)
        if request.headers.get("Authorization") != f"Bot {TOKEN}":
            return _json({"message": "401: Unauthorized", "code": 0}, 401)
        if path.startswith("users/"):
            return _json(BOT)
        if path == "oauth2/applications/@me":
            fixed = {"id": BOT["id"], "name": "yips", "icon": None, "description": ""}
            fixed |= {"bot_public": False, "bot_require_code_grant": False, "verify_key": ""}
            return _json(fixed | {"owner": BOT, "flags": 0})
        found = re.fullmatch(r"channels/(\d+)/(messages|typing)/?(\d*)", path)
        assert found, path
        chat, what, message = found.groups()
        if what == "typing":
            self.typing += 1
            return web.Response(status=204)
        if request.method == "GET":
            after, limit = int(request.query.get("after", 0)), int(request.query["limit"])
            found_ones = [m for m in self.history if m["channel_id"] == chat]
            newer = [m for m in found_ones if int(m["id"]) > after][:limit]
            return _json([{**m, "guild_id": None} for m in newer][::-1])
        return await self._changed(request, chat, message)

    async def _changed(self, request: web.Request, chat: str, message: str) -> web.Response:
        what, seconds = self._faults.pop(0) if self._faults else ("", 0.0)
        if what == "hang":
            await asyncio.Event().wait()
        if what == "wait":
            body = {"message": "You are being rate limited.", "retry_after": seconds}
            return _json(body | {"global": False}, 429, Via="1.1 google")
        if what in REFUSALS:
            status, code = REFUSALS[what]
            return _json({"message": "No", "code": code}, status)
        if what == "fail":
            return _json({"message": "500: Internal Server Error", "code": 0}, 500)
        if what == "drop_before":
            assert request.transport is not None
            request.transport.close()
        payload, files = await _read(request)
        if what == "drop_before":
            return web.Response()
        self.calls.append(payload)
        answer = self._put(chat, message, payload, files)
        if what == "drop_after":
            assert request.transport is not None
            request.transport.close()
        return _json([]) if what == "odd" else answer

    def _put(
        self, chat: str, number: str, payload: dict[str, Any], files: list[tuple[str, bytes]]
    ) -> web.Response:
        if number and number not in self._sent:
            return _json({"message": "Unknown Message", "code": 10008}, 404)
        nonce = payload.get("nonce", "")
        if payload.get("enforce_nonce") and nonce in self._nonces:
            return _json(self._answered(self._sent[self._nonces[nonce]]))
        text, buttons = payload.get("content") or "", _buttons(payload)
        rows = payload.get("components", [])
        is_wrong = len(text) > 2000 or len(nonce) > 25 or not (text or files) or len(rows) > 5
        if is_wrong or any(len(row["components"]) > 5 for row in rows):
            return _json({"message": "Invalid Form Body", "code": 50035}, 400)
        if "parse" not in payload.get("allowed_mentions", {}):
            self._pinged += re.findall(r"@everyone|@here|<@&?\w+>", text)
        if number:
            old = self._sent[number]
            old.edits, old.text, old.buttons = (*old.edits, old.text), text, buttons
            return _json(self._answered(old))
        name, data = files[0] if files else ("", b"")
        parent = ROOM if chat == THREAD else chat
        new = Sent(id=self._snowflake(), chat=parent, text=text, buttons=buttons)
        new.thread, new.file, new.data = THREAD if chat == THREAD else "", name, data
        self._sent[new.id] = new
        if nonce:
            self._nonces[nonce] = new.id
        self.history.append(self._answered(new))
        return _json(self._answered(new))

    def _answered(self, sent: Sent) -> dict[str, Any]:
        message = self.message(sent.thread or sent.chat, BOT)
        return {**message, "id": sent.id, "content": sent.text}

    def message(self, chat: str, author: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": self._snowflake(),
            "channel_id": chat,
            "author": author,
            "content": "",
            "timestamp": datetime.now(UTC).isoformat(),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
        }

    def _attached(self, name: str, data: bytes) -> dict[str, Any]:
        ref = f"file-{len(self.files)}"
        self.files[ref] = data
        url = f"{self.url}/files/{ref}"
        fixed = {"id": self._snowflake(), "filename": name, "size": len(data)}
        return fixed | {"url": url, "proxy_url": url, "content_type": "application/octet-stream"}

    def _snowflake(self) -> str:
        self._number += 1
        return str((int(time.time() * 1000) - 1_420_070_400_000 << 22) + self._number)


def _user(person: str, name: str) -> dict[str, Any]:
    return {"id": person, "username": name, "discriminator": "0", "avatar": None}


def _member() -> dict[str, Any]:
    return {"roles": [], "joined_at": datetime.now(UTC).isoformat(), "deaf": False, "mute": False}


def _channel(number: str) -> dict[str, Any]:
    fixed = {"id": number, "guild_id": GUILD, "name": "room", "position": 0, "nsfw": False}
    fixed |= {"permission_overwrites": [], "type": 0}
    if number == THREAD:
        state = {"archived": False, "auto_archive_duration": 60, "locked": False}
        state |= {"archive_timestamp": datetime.now(UTC).isoformat()}
        fixed |= {"type": 11, "parent_id": ROOM, "owner_id": "21", "thread_metadata": state}
        fixed |= {"message_count": 0, "member_count": 0}
    return fixed


def _buttons(payload: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    rows = payload.get("components", [])
    return tuple((each["label"], each["custom_id"]) for row in rows for each in row["components"])


async def _read(request: web.Request) -> tuple[dict[str, Any], list[tuple[str, bytes]]]:
    if request.content_type != "multipart/form-data":
        return json.loads(await request.read() or b"{}"), []
    given = await request.post()
    files = [
        (each.filename, each.file.read())
        for each in given.values()
        if isinstance(each, web.FileField)
    ]
    return json.loads(str(given["payload_json"])), files


def _json(body: Any, status: int = 200, **headers: str) -> web.Response:
    data = json.dumps(body).encode()
    return web.Response(
        body=data, status=status, content_type="application/json", headers=headers or None
    )
