"""A server that is several chat platforms at once, Telegram first, with knobs for what goes wrong. `python -m` runs it as a process.

It speaks as much of the Bot API as a bot needs. Tests reach it as an object (`async with ChatPlatform() as platform`), and from other
processes by `POST /control/NAME` with a JSON object (the arguments of the method NAME) and `GET /control/state`.
"""

import argparse
import asyncio
import json
import re
import time
from collections.abc import Callable, Iterable
from email.message import Message as MailMessage
from email.parser import BytesParser
from email.policy import HTTP
from html.parser import HTMLParser
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Struct, field

BOT = {"id": 4242, "is_bot": True, "first_name": "Yips", "username": "yips_bot"}
#: Put together here so that no scanner takes it for a leaked one.
TOKEN = ":".join(("4242", "A" * 35))

#: What happens to requests. `hang` never answers; `drop_before` and `drop_after` break the connection before or after the effect;
#: `half` answers with half of the bytes; `fail` is an answer 500 without the effect, `odd` one of 200 with other JSON than expected.
Fault = Literal["wait", "hang", "drop_before", "drop_after", "half", "fail", "odd", "error"]


class Knob(Struct, kw_only=True):
    """A fault of the next `times` requests of a `method` ("": any), in a `chat` (0: any). `retry_after` and `description` are for the answer."""

    fault: Fault
    method: str = ""
    chat: int = 0
    times: int = 1
    retry_after: int = 1
    code: int = 400
    description: str = ""
    parameters: dict[str, Any] = {}


class Sent(Struct, kw_only=True):
    """A message as it stands in a chat. `at` is when it came, `texts` each text that it had, and `edited_at` when each edit came."""

    message: int
    chat: int
    text: str
    at: float
    thread: int = 0
    parse_mode: str = ""
    buttons: list[list[dict[str, str]]] = []
    file: str = ""
    data: bytes = b""
    texts: list[str] = field(default_factory=list[str])
    edited_at: list[float] = field(default_factory=list[float])


class Call(Struct):
    """A request as it came."""

    method: str
    at: float
    arguments: dict[str, Any]


class Answer(Exception):
    """An answer that says no."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.body: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
        if parameters:
            self.body["parameters"] = parameters


class ChatPlatform:
    """The server. What persons do are methods; what the bot did is in `sent`, `calls` and `typing`."""

    def __init__(self, token: str = TOKEN, *, port: int = 0) -> None:
        self.token, self.port = token, port
        self.sent = list[Sent]()
        self.calls = list[Call]()
        self.knobs = list[Knob]()
        self.answered = list[str]()
        self.files = dict[str, bytes]()
        #: Where a file is said to be, if not under its name.
        self.paths = dict[str, str]()
        self.webhook = self.webhook_secret = ""
        #: Whether updates come once more, and backwards.
        self.doubles = self.reorders = False
        self.polls = 0
        self._updates = dict[int, dict[str, Any]]()
        self._numbers = {"update": 100, "message": 1000}
        self._changed = asyncio.Event()
        self._poller: object | None = None
        self._tasks = set[asyncio.Task[None]]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # What persons do

    def say(
        self,
        text: str,
        *,
        chat: int = 1,
        person: int = 1,
        kind: str = "private",
        name: str = "Ann",
        thread: int = 0,
        **fields: Any,
    ) -> int:
        """Write a message to the bot and return the update's number. `fields` are more of the message's."""
        message = self._message(chat, person=person, kind=kind, name=name, thread=thread)
        if text:
            message |= {"text": text, "entities": list(_entities(text))}
        return self.update({"message": message | fields})

    def attach(self, data: bytes, *, name: str = "a.txt", caption: str = "", **fields: Any) -> int:
        """Send a file to the bot."""
        ref = f"file-{len(self.files)}"
        self.files[ref] = data
        document = {"file_id": ref, "file_unique_id": ref, "file_name": name}
        document |= {"file_size": len(data), "mime_type": "text/plain"}
        return self.say("", document=document, caption=caption, **fields)

    def press(self, label: str, *, person: int = 1, chat: int = 0, token: str = "") -> int:
        """Press the newest button of a label, or a forged one of a token."""
        sent = next(
            each
            for each in reversed(self.sent)
            if (not chat or each.chat == chat) and (token or label in _labels(each))
        )
        data = token or next(
            one["callback_data"] for row in sent.buttons for one in row if one["text"] == label
        )
        kind = "private" if sent.chat > 0 else "supergroup"
        message = self._message(sent.chat, person=person, kind=kind, name="Ann", thread=sent.thread)
        message |= {"message_id": sent.message, "from": BOT, "text": sent.text}
        query = {"id": f"q{self._numbers['update']}", "data": data, "chat_instance": "1"}
        return self.update(
            {"callback_query": query | {"from": _person(person, "Ann"), "message": message}}
        )

    def update(self, fields: dict[str, Any]) -> int:
        """Put an update in the queue."""
        self._numbers["update"] += 1
        number = self._numbers["update"]
        self._updates[number] = {"update_id": number, **fields}
        self._changed.set()
        return number

    def knob(self, fault: Fault, method: str = "", **fields: Any) -> None:
        """Have something go wrong."""
        self.knobs.append(Knob(fault=fault, method=method, **fields))

    def set(self, **values: bool) -> None:
        """Set `doubles` or `reorders`."""
        for name, value in values.items():
            setattr(self, name, value)

    def texts(self, chat: int = 1) -> list[str]:
        """Return what stands in a chat."""
        return [each.text for each in self.sent if each.chat == chat]

    async def until(self, holds: Callable[[], object], seconds: float = 5.0) -> None:
        """Wait until something holds. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not holds():
                self._changed.clear()
                try:
                    async with asyncio.timeout(0.05):
                        await self._changed.wait()
                except TimeoutError:
                    continue

    @property
    def unread(self) -> int:
        """How many updates were not acknowledged."""
        return len(self._updates)

    def _message(
        self, chat: int, *, person: int, kind: str, name: str, thread: int
    ) -> dict[str, Any]:
        self._numbers["message"] += 1
        message: dict[str, Any] = {
            "message_id": self._numbers["message"],
            "date": int(time.time()),
            "chat": {"id": chat, "type": kind, "title": "Group"},
            "from": _person(person, name),
        }
        if thread:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        return message

    # HTTP

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, _, rest = head.partition("\r\n")
                headers = {
                    k.lower(): v.strip()
                    for k, _, v in (line.partition(":") for line in rest.split("\r\n"))
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                if not await self._handle(first.split(" ")[1], headers, body, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _handle(
        self, target: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter
    ) -> bool:
        path, _, query = target.partition("?")
        path = unquote(path)
        if path.startswith("/control/"):
            return await _write(writer, 200, self._controlled(path.rpartition("/")[2], body))
        if path.startswith(f"/file/bot{self.token}/"):
            return await _write(writer, 200, self.files[path.rpartition("/")[2]])
        found = re.fullmatch(r"/bot([^/]+)/(\w+)", path)
        if found is None or found[1] != self.token:
            return await _write(writer, 401, Answer(401, "Unauthorized").body)
        method = found[2]
        arguments = _arguments(query, headers, body)
        shown = {k: v for k, v in arguments.items() if not isinstance(v, bytes)}
        self.calls.append(Call(method, time.time(), shown))
        return await self._answer(method, arguments, writer)

    async def _answer(
        self, method: str, arguments: dict[str, Any], writer: asyncio.StreamWriter
    ) -> bool:
        knob = self._knob(method, int(arguments.get("chat_id", 0) or 0))
        fault = "" if knob is None else knob.fault
        if fault == "hang":
            await asyncio.Event().wait()
        if fault == "drop_before":
            return False
        try:
            if knob is not None:
                _refuse(knob)
            done: Any = {"ok": True, "result": await self._do(method, arguments)}
            code = 200
        except Answer as answer:
            done, code = answer.body, answer.body["error_code"]
        self._changed.set()
        if fault == "drop_after":
            return False
        if fault == "odd":
            done = {"ok": True, "outcome": []}
        return await _write(writer, code, done, is_half=fault == "half")

    def _knob(self, method: str, chat: int) -> Knob | None:
        for knob in self.knobs:
            if knob.method in ("", method) and knob.chat in (0, chat):
                knob.times -= 1
                if not knob.times:
                    self.knobs.remove(knob)
                return knob
        return None

    def _controlled(self, name: str, body: bytes) -> Any:
        if name == "state":
            state = {"sent": self.sent, "calls": self.calls, "unread": self.unread}
            return msgspec.to_builtins(state | {"answered": self.answered})
        arguments = json.loads(body or b"{}")
        if name == "attach":
            arguments["data"] = arguments["data"].encode()
        done = {
            "say": self.say,
            "attach": self.attach,
            "press": self.press,
            "update": self.update,
            "knob": self.knob,
            "set": self.set,
        }[name](**arguments)
        return {"result": done}

    # The Bot API

    async def _do(self, method: str, arguments: dict[str, Any]) -> Any:
        name = "_on_" + re.sub(r"(?=[A-Z])", "_", method).lower()
        done = getattr(self, name, None)
        if done is None:
            raise Answer(404, "Not Found: method not found")
        result = done(arguments)
        return await result if asyncio.iscoroutine(result) else result

    def _on_get_me(self, _: dict[str, Any]) -> Any:
        return BOT

    async def _on_get_updates(self, arguments: dict[str, Any]) -> Any:
        self.polls += 1
        if self.webhook:
            raise Answer(409, "Conflict: can't use getUpdates method while webhook is active")
        own = self._poller = object()
        self._changed.set()
        if offset := int(arguments.get("offset", 0) or 0):
            for number in [each for each in self._updates if each < offset]:
                del self._updates[number]
        end = time.monotonic() + float(arguments.get("timeout", 0) or 0)
        while not self._updates and time.monotonic() < end:
            if self._poller is not own:
                raise Answer(409, "Conflict: terminated by other getUpdates request")
            self._changed.clear()
            try:
                async with asyncio.timeout(min(0.5, max(end - time.monotonic(), 0.01))):
                    await self._changed.wait()
            except TimeoutError:
                continue
        updates = list(self._updates.values())[: int(arguments.get("limit", 100) or 100)]
        updates = [*updates, *updates] if self.doubles else updates
        return updates[::-1] if self.reorders else updates

    def _on_send_message(self, arguments: dict[str, Any]) -> Any:
        return self._put(arguments, _shown(arguments, "text", 4096))

    def _on_send_document(self, arguments: dict[str, Any]) -> Any:
        text = _shown(arguments, "caption", 1024) if arguments.get("caption") else ""
        data = arguments["document"]
        return self._put(arguments, text, file=arguments.get("document.name", "file"), data=data)

    def _put(
        self, arguments: dict[str, Any], text: str, *, file: str = "", data: bytes = b""
    ) -> Any:
        chat = int(arguments["chat_id"])
        self._numbers["message"] += 1
        sent = Sent(
            message=self._numbers["message"],
            chat=chat,
            text=text,
            at=time.time(),
            thread=int(arguments.get("message_thread_id", 0) or 0),
            parse_mode=arguments.get("parse_mode", ""),
            buttons=_buttons(arguments),
            file=file,
            data=data,
            texts=[text],
        )
        self.sent.append(sent)
        return _answered(sent)

    def _on_edit_message_text(self, arguments: dict[str, Any]) -> Any:
        number, text = int(arguments["message_id"]), _shown(arguments, "text", 4096)
        sent = next((each for each in self.sent if each.message == number), None)
        if sent is None:
            raise Answer(400, "Bad Request: message to edit not found")
        if sent.text == text and sent.buttons == _buttons(arguments):
            raise Answer(400, "Bad Request: message is not modified")
        sent.text, sent.buttons = text, _buttons(arguments)
        sent.texts.append(text)
        sent.edited_at.append(time.time())
        return _answered(sent)

    def _on_send_chat_action(self, _: dict[str, Any]) -> Any:
        return True

    def _on_answer_callback_query(self, arguments: dict[str, Any]) -> Any:
        self.answered.append(arguments["callback_query_id"])
        return True

    def _on_get_file(self, arguments: dict[str, Any]) -> Any:
        ref = arguments["file_id"]
        size = len(self.files[ref])
        path = self.paths.get(ref, ref)
        return {"file_id": ref, "file_unique_id": ref, "file_size": size, "file_path": path}

    def _on_set_webhook(self, arguments: dict[str, Any]) -> Any:
        self.webhook, self.webhook_secret = arguments["url"], arguments["secret_token"]
        return True

    def _on_delete_webhook(self, arguments: dict[str, Any]) -> Any:
        self.webhook = ""
        if arguments.get("drop_pending_updates") in (True, "true", "True"):
            self._updates.clear()
        return True


# Parts of messages


def _person(person: int, name: str) -> dict[str, Any]:
    return {"id": person, "is_bot": False, "first_name": name}


def _entities(text: str) -> Iterable[dict[str, Any]]:
    for found in re.finditer(r"(?<!\w)@\w+|(?<!\S)/\w+(@\w+)?", text):
        kind = "mention" if found[0].startswith("@") else "bot_command"
        offset = len(text[: found.start()].encode("utf-16-le")) // 2
        yield {"type": kind, "offset": offset, "length": len(found[0])}


def _labels(sent: Sent) -> list[str]:
    return [one["text"] for row in sent.buttons for one in row]


def _buttons(arguments: dict[str, Any]) -> list[list[dict[str, str]]]:
    markup = arguments.get("reply_markup")
    return json.loads(markup)["inline_keyboard"] if markup else []


def _answered(sent: Sent) -> dict[str, Any]:
    chat = {"id": sent.chat, "type": "private" if sent.chat > 0 else "supergroup"}
    return {"message_id": sent.message, "date": int(sent.at), "chat": chat, "from": BOT}


class Markup(HTMLParser):
    """Reads the HTML of a message as the platform does: every tag is known, and closed in its order."""

    _KNOWN = ("b", "i", "s", "u", "a", "code", "pre", "blockquote", "tg-spoiler")

    def __init__(self, text: str) -> None:
        super().__init__()
        self._open, self.words = list[str](), ""
        self.feed(text)
        self.close()
        if self._open:
            raise Answer(400, "Bad Request: can't parse entities: unclosed tag")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self._KNOWN:
            raise Answer(400, f'Bad Request: can\'t parse entities: unsupported start tag "{tag}"')
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            raise Answer(400, "Bad Request: can't parse entities: unmatched end tag")

    def handle_data(self, data: str) -> None:
        self.words += data


def _shown(arguments: dict[str, Any], name: str, most: int) -> str:
    text = arguments.get(name, "")
    words = Markup(text).words if arguments.get("parse_mode") == "HTML" else text
    if not words.strip():
        raise Answer(400, "Bad Request: message text is empty")
    if len(words.encode("utf-16-le")) // 2 > most:
        raise Answer(400, "Bad Request: message is too long")
    return text


def _refuse(knob: Knob) -> None:
    if knob.fault == "wait":
        raise Answer(429, "Too Many Requests", retry_after=knob.retry_after)
    if knob.fault == "fail":
        raise Answer(500, "Internal Server Error")
    if knob.fault == "error":
        raise Answer(knob.code, knob.description, **knob.parameters)


def _arguments(query: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    arguments: dict[str, Any] = dict(parse_qsl(query))
    kind = headers.get("content-type", "")
    if kind.startswith("application/x-www-form-urlencoded"):
        arguments |= dict(parse_qsl(body.decode(), keep_blank_values=True))
    elif kind.startswith("application/json"):
        arguments |= json.loads(body)
    elif kind.startswith("multipart/"):
        whole = b"content-type: " + kind.encode() + b"\r\n\r\n" + body
        for part in BytesParser(policy=HTTP).parsebytes(whole).iter_parts():
            arguments |= _part(part)
    return arguments


def _part(part: MailMessage) -> dict[str, Any]:
    name = str(part.get_param("name", header="content-disposition"))
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)
    if (file := part.get_filename()) is not None:
        return {name: data, f"{name}.name": file}
    return {name: data.decode()}


async def _write(
    writer: asyncio.StreamWriter, code: int, body: Any, *, is_half: bool = False
) -> bool:
    data = body if isinstance(body, bytes) else json.dumps(body, default=_text).encode()
    head = f"HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + (data[: len(data) // 2] if is_half else data))
    await writer.drain()
    return not is_half


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


async def _main(port: int, token: str) -> None:
    async with ChatPlatform(token, port=port) as platform:
        print(platform.url, flush=True)  # noqa: T201 - who started it reads the address
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default=TOKEN)
    given = parser.parse_args()
    asyncio.run(_main(given.port, given.token))
