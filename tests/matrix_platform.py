"""A server that is a Matrix homeserver, as far as a bot needs it, without encryption (test_synapse.py has the real one).

As the real one, it tells a message that came before by its transaction, and refuses to relate to an event that it does not know.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from aiohttp import web

from channel_contract import FakePlatform, Sent
from ybs.frontends.gateway.matrix import make_channel

BOT, BOB = "@yips:localhost", "@bob:localhost"
#: Put together here so that no scanner takes it for a leaked one.
TOKEN = "_".join(("syt", "eWlwcw", "a" * 20, "0" * 6))
_ERRORS = {
    "gone": (403, {"errcode": "M_FORBIDDEN", "error": "User not in room"}),
    "refused": (400, {"errcode": "M_BAD_JSON", "error": "Unknown format"}),
    "fail": (502, {"errcode": "M_UNKNOWN", "error": "Internal server error"}),
}


class MatrixPlatform(FakePlatform):
    """See the module. `events` is all that was ever said, `joined` the rooms that the bot accepted an invitation to, `connections` how many clients began."""

    kind, make = "matrix", staticmethod(make_channel)
    home, room, person = "!home:localhost", "!room:localhost", "@ann:localhost"
    thread = "$root"

    def __init__(self) -> None:
        self.events, self.joined, self._invited = list[dict[str, Any]](), list[str](), set[str]()
        self._changed, self._faults = asyncio.Event(), list[tuple[str, float]]()
        self._transactions, self._media = dict[str, str](), dict[str, bytes]()
        self._doubles, self._port, self._since, self.typing = 1, 0, 0, 0
        self.refused_kinds, self.connections = set[str](), 0
        self._syncs, self.folder, self.pages = set[asyncio.Transport](), mkdtemp("ybs"), 0
        finalize(self, rmtree, self.folder, ignore_errors=True)
        for room, members in ((self.home, 2), (self.room, 3)):
            for member in (BOT, self.person, BOB)[:members]:
                self.member(room, member, "join")
            self.event(room, self.person, "m.room.message", {"msgtype": "m.text", "body": "old"})

    async def start(self) -> None:
        """See FakePlatform."""
        app = web.Application(client_max_size=100_000_000)
        app.router.add_route("*", "/{path:.*}", self._handle)
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
        token = TOKEN[::-1] if wrong else TOKEN
        return {"homeserver": self.url, "token": token, "folder": self.folder}

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
        content: dict[str, Any] = {"msgtype": "m.text", "body": text, "m.mentions": {}}
        if mention:
            content |= {"body": f"yips: {text}", "m.mentions": {"user_ids": [BOT]}}
        for name, data in files:
            media = f"{len(self._media)}"
            self._media[media] = data
            content |= {"msgtype": "m.file", "filename": name, "info": {"size": len(data)}}
            content |= {"url": f"mxc://localhost/{media}"}
        if thread:
            content["m.relates_to"] = {"rel_type": "m.thread", "event_id": thread}
        content |= fields
        self.event(chat or self.home, person or self.person, "m.room.message", content)

    async def press(self, label: str) -> None:
        """See FakePlatform."""
        event, key = next(
            (event, each["key"])
            for event in reversed(self.events)
            for each in event["content"].get("ybs.buttons", ())
            if each["label"] == label
        )
        self.react(event, key)

    def react(self, event: dict[str, Any], key: str, person: str = "") -> None:
        """Have a person react to an event."""
        relation = {"rel_type": "m.annotation", "event_id": event["event_id"], "key": key}
        who = person or self.person
        self.event(event["room_id"], who, "m.reaction", {"m.relates_to": relation})

    def invite(self, room: str, person: str) -> None:
        """Have a person invite the bot to a room in which they are."""
        self.member(room, person, "join")
        self.event(room, person, "m.room.message", {"msgtype": "m.text", "body": "before"})
        self._invited.add(room)
        self.member(room, BOT, "invite", sender=person)

    def member(self, room: str, who: str, membership: str, *, sender: str = "") -> None:
        """Change whether somebody is in a room."""
        content = {"membership": membership, "displayname": who[1:].partition(":")[0]}
        self.event(room, sender or who, "m.room.member", content, state_key=who)

    def event(self, room: str, who: str, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
        """Add an event."""
        number = len(self.events) + 1
        event = {"event_id": f"$e{number:040}", "sender": who, "type": kind, "content": content}
        event |= {"room_id": room, "origin_server_ts": 1_700_000_000_000 + number, **fields}
        self.events.append(event)
        self._changed.set()
        return event

    @property
    def sent(self) -> list[Sent]:
        """See FakePlatform."""
        shown = dict[str, Sent]()
        for event in self.events:
            content = event["content"]
            if event["sender"] != BOT or event["type"] != "m.room.message":
                continue
            relation = content.get("m.relates_to", {})
            if relation.get("rel_type") == "m.replace":
                old, new = shown[relation["event_id"]], content["m.new_content"]
                old.edits, old.text = (*old.edits, old.text), _text(new)
                old.buttons = _buttons(new)
                continue
            media = content.get("url", "").rpartition("/")[2]
            shown[event["event_id"]] = Sent(
                id=event["event_id"],
                chat=event["room_id"],
                text=_text(content),
                thread=relation.get("event_id", ""),
                buttons=_buttons(content),
                file=content.get("filename", ""),
                data=self._media.get(media, b""),
            )
        return list(shown.values())

    @property
    def unread(self) -> int:
        """See FakePlatform."""
        return sum(each["sender"] != BOT for each in self.events[self._since :])

    @property
    def pings(self) -> list[str]:
        """See FakePlatform."""
        said = [e["content"] for e in self.events if e["sender"] == BOT and "body" in e["content"]]
        pinged = [one for each in said for one in each.get("m.mentions", {}).get("user_ids", ())]
        unsaid = [each["body"] for each in said if "m.mentions" not in each]
        return pinged + [one for each in unsaid for one in re.findall("@[a-z]+", each)]

    def fault(self, what: str, *, seconds: float = 1.0) -> None:
        """See FakePlatform. `hang` never answers."""
        self._faults.append((what, seconds))

    async def disconnect(self) -> None:
        """See FakePlatform."""
        for each in self._syncs:
            each.abort()

    def double(self) -> None:
        """See FakePlatform."""
        self._doubles = 2

    # The API

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"].removeprefix("_matrix/client/").partition("/")[2]
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _no(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.")
        if path == "account/whoami":
            return web.json_response({"user_id": BOT, "device_id": "DEVICE"})
        if path == "sync":
            return await self._sync(request)
        if "media/download" in path:
            return web.Response(body=self._media[path.rpartition("/")[2]])
        if path.endswith("upload") and "keys/" not in path:
            media = f"{len(self._media)}"
            self._media[media] = await request.read()
            return web.json_response({"content_uri": f"mxc://localhost/{media}"})
        if path.startswith("join/"):
            return self._join(path.removeprefix("join/"))
        if path.startswith("rooms/"):
            return await self._in_room(request, *path.split("/")[1:])
        empty: dict[str, Any] = {"one_time_key_counts": {"signed_curve25519": 50}, "failures": {}}
        return web.json_response(empty | {"device_keys": {}, "one_time_keys": {}})

    async def _sync(self, request: web.Request) -> web.Response:
        since, limit = int(request.query.get("since", "s0")[1:]), 100
        assert request.transport is not None
        self._syncs.add(request.transport)
        is_full = request.query.get("full_state") == "true"
        self._since = max(self._since, since)
        try:
            async with asyncio.timeout(int(request.query.get("timeout", 0)) / 1000):
                while since == len(self.events) and not is_full:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        finally:
            self._syncs.discard(request.transport)
        joined, invited = dict[str, Any](), dict[str, Any]()
        for room in {each["room_id"] for each in self.events}:
            news = [e for e in self.events[since:] if e["room_id"] == room]
            if room in self._invited:
                invited[room] = {"invite_state": {"events": [e for e in news if _is_state(e)]}}
            elif news or is_full:
                if any(e.get("state_key") == BOT and "unsigned" in e for e in news):
                    news = [e for e in self.events if e["room_id"] == room]  # it is new to the bot
                joined[room] = self._told(room, news, since, limit, is_full=is_full)
        self.connections += is_full
        rooms = {"join": joined, "invite": invited, "leave": {}}
        return web.json_response({"next_batch": f"s{len(self.events)}", "rooms": rooms})

    def _told(
        self, room: str, news: list[Any], since: int, limit: int, *, is_full: bool
    ) -> dict[str, Any]:
        timeline: dict[str, Any] = {"limited": len(news) > limit}
        timeline["events"] = [e for e in news[-limit:] for _ in range(self._doubles)]
        first = self.events.index(news[-limit:][0]) if news else since
        timeline["prev_batch"] = f"s{first}"
        before = self.events[: first if is_full else 0]
        state = [e for e in before if e["room_id"] == room and _is_state(e)]
        return {"timeline": timeline, "state": {"events": state}}

    def _join(self, room: str) -> web.Response:
        self._invited.discard(room)
        self.joined.append(room)
        old = {"unsigned": {"prev_content": {"membership": "invite"}}}
        self.event(room, BOT, "m.room.member", {"membership": "join"}, state_key=BOT, **old)
        return web.json_response({"room_id": room})

    async def _in_room(self, request: web.Request, room: str, what: str, *rest: str) -> Any:
        if what == "typing":
            self.typing += 1
            return web.json_response({})
        if what == "event":
            found = next((e for e in self.events if e["event_id"] == rest[0]), None)
            return web.json_response(found) if found else _no(404, "M_NOT_FOUND", "No event")
        if what == "messages":
            self.pages += 1
            start, end = (int(request.query[each][1:]) for each in ("from", "to"))
            found = [e for e in self.events[end:start] if e["room_id"] == room][::-1]
            chunk = found[: int(request.query["limit"])]
            page: dict[str, Any] = {"chunk": chunk, "start": f"s{start}"}
            if len(found) > len(chunk):
                page["end"] = f"s{self.events.index(chunk[-1])}"
            return web.json_response(page)
        kind, transaction = rest
        return await self._said(request, room, kind, transaction)

    async def _said(
        self, request: web.Request, room: str, kind: str, transaction: str
    ) -> web.Response:
        content = await request.json()
        if kind in self.refused_kinds:
            return _no(403, "M_FORBIDDEN", "You cannot send that here")
        is_message = kind == "m.room.message"
        what, seconds = self._faults.pop(0) if self._faults and is_message else ("", 0.0)
        if what == "hang":
            await asyncio.Event().wait()
        if what == "wait":
            body = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests"}
            return web.json_response(body | {"retry_after_ms": int(seconds * 1000)}, status=429)
        if what in _ERRORS:
            return web.json_response(_ERRORS[what][1], status=_ERRORS[what][0])
        assert request.transport is not None
        if what == "drop_before":
            request.transport.abort()
            return web.Response()
        answer = self._put(room, kind, transaction, content)
        if what == "drop_after":
            request.transport.abort()
        return web.json_response([]) if what == "odd" else answer

    def _put(self, room: str, kind: str, transaction: str, content: dict[str, Any]) -> web.Response:
        if len(json.dumps(content, ensure_ascii=False).encode()) > 65_000:
            return _no(413, "M_TOO_LARGE", "event too large")
        target = content.get("m.relates_to", {}).get("event_id", self.thread)
        if target != self.thread and target not in {e["event_id"] for e in self.events}:
            return _no(400, "M_UNKNOWN", "Can't send relation to unknown event")
        if transaction not in self._transactions:
            self._transactions[transaction] = self.event(room, BOT, kind, content)["event_id"]
        return web.json_response({"event_id": self._transactions[transaction]})


def _is_state(event: dict[str, Any]) -> bool:
    return "state_key" in event


def _text(content: dict[str, Any]) -> str:
    return content["body"].partition("\n\n1\ufe0f")[0]


def _buttons(content: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((each["label"], each["token"]) for each in content.get("ybs.buttons", ()))


def _no(status: int, code: str, error: str) -> web.Response:
    return web.json_response({"errcode": code, "error": error}, status=status)
