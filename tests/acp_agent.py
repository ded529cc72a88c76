"""An agent of the Agent Client Protocol for tests: it does what the variable SCRIPT says, a list of steps.

It speaks JSON-RPC by hand, since the official SDK takes a second to load, in each test; that stands at the other end.
The shapes are those of https://agentclientprotocol.com/protocol/schema (version 1).
"""

import asyncio
import json
import os
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

CHOICES = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Refused(Exception):
    """The client answered with an error, of which this is the message."""


class Agent:
    def __init__(self) -> None:
        self.steps = json.loads(os.environ["SCRIPT"])
        self.session, self.cwd, self.usage = "", Path(), None
        self.is_logged_in = False
        self.model = "its own"
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def run(self) -> None:
        """Serve until standard input ends."""
        reader = asyncio.StreamReader(limit=1 << 26)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        async with asyncio.TaskGroup() as tasks:
            while line := await reader.readline():
                message = json.loads(line)
                if "method" in message:
                    tasks.create_task(self._serve(message))
                else:
                    self._take(message)
            os._exit(0)

    async def _serve(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            return  # `session/cancel`
        handle = getattr(self, f"on_{message['method'].replace('/', '_')}")
        try:
            reply = {"result": await handle(**message["params"])}
        except Refused as error:
            reply = {"error": {"code": -32000, "message": str(error)}}
        self._send({"id": message["id"], **reply})

    def _take(self, message: dict[str, Any]) -> None:
        waiting = self._waiting.pop(message["id"])
        if "error" in message:
            waiting.set_exception(Refused(message["error"]["message"]))
        else:
            waiting.set_result(message["result"])

    async def ask_client(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        params = {"sessionId": self.session, **without_none(params)}
        self._send({"id": number, "method": method, "params": params})
        return await self._waiting[number]

    async def tell(self, kind_of_update: str, /, **update: Any) -> None:
        params = {"sessionId": self.session, "update": {"sessionUpdate": kind_of_update, **update}}
        self._send({"method": "session/update", "params": params})

    async def say(self, text: Any) -> None:
        await self.tell("agent_message_chunk", content={"type": "text", "text": str(text)})

    def _send(self, message: dict[str, Any]) -> None:
        write(f"{json.dumps({'jsonrpc': '2.0', **message})}\n".encode())

    async def on_initialize(
        self, protocolVersion: int, clientCapabilities: dict[str, Any], **_: Any
    ) -> Any:
        self.capabilities = clientCapabilities
        if ["silent"] in self.steps:
            await asyncio.sleep(600)
        return {"protocolVersion": 7 if ["version"] in self.steps else protocolVersion}

    async def on_authenticate(self, methodId: str, **_: Any) -> Any:
        self.is_logged_in = methodId == "api-key"
        return {}

    async def on_session_new(self, cwd: str, **_: Any) -> Any:
        if ["login"] in self.steps and not self.is_logged_in:
            raise Refused("Authentication required")
        self.cwd, self.session = Path(cwd), "s"
        return {"sessionId": "s", "configOptions": self.options}

    async def on_session_set_config_option(self, configId: str, value: Any, **_: Any) -> Any:
        self.model = f"{configId} {value}"
        return {"configOptions": self.options}

    @property
    def options(self) -> list[dict[str, Any]]:
        """The choice of a model, where the script has one."""
        if ["model"] not in self.steps:
            return []
        fields = {"type": "select", "id": "llm", "name": "Model", "category": "model"}
        small = [{"value": "small-1", "name": "Small"}, {"value": "big-1", "name": "Big"}]
        groups = [{"group": "all", "name": "All", "options": small}]
        return [{**fields, "currentValue": "small-1", "options": groups}]

    async def do_model(self) -> None:
        await self.say(self.model)

    async def on_session_prompt(self, prompt: list[Any], **_: Any) -> Any:
        self.words = prompt[0]["text"]
        for name, *arguments in self.steps:
            if (reason := await getattr(self, f"do_{name}")(*arguments)) is not None:
                return without_none({"stopReason": reason, "usage": self.usage})
        return without_none({"stopReason": "end_turn", "usage": self.usage})

    async def do_login(self) -> None:
        await self.say("logged in")

    async def do_say(self, text: str) -> None:
        await self.say(text)

    async def do_words(self) -> None:
        await self.say(self.words)

    async def do_about(self) -> None:
        fs = self.capabilities["fs"]
        told = [fs["readTextFile"], fs["writeTextFile"], self.capabilities.get("terminal", False)]
        await self.say(json.dumps(told))

    async def do_env(self, name: str) -> None:
        await self.say(os.environ.get(name, "unset"))

    async def do_think(self, text: str) -> None:
        await self.tell("agent_thought_chunk", content={"type": "text", "text": text})

    async def do_put(self, path: str, text: str) -> None:
        """Write a file by itself, as its own tools do."""
        try:
            _path(self.cwd, path).write_text(text)
        except OSError as error:
            await self.say(f"{error.strerror};")

    async def do_peek(self, path: str) -> None:
        """Read a file by itself."""
        try:
            await self.say(f"{_path(self.cwd, path).read_text()};")
        except OSError as error:
            await self.say(f"{error.strerror};")

    async def do_read(self, path: str, *rest: int) -> None:
        line, limit = rest or (None, None)
        try:
            text = await self._read(path, line=line, limit=limit)
            await self.say(f"read {text!r};")
        except Refused as error:
            await self.say(f"no: {error};")

    async def _read(self, path: str, **part: int | None) -> str:
        file = await self.ask_client("fs/read_text_file", path=str(self.cwd / path), **part)
        return file["content"]

    async def do_write(self, path: str, text: str) -> None:
        try:
            await self.ask_client("fs/write_text_file", path=str(self.cwd / path), content=text)
            await self.say("written;")
        except Refused as error:
            await self.say(f"no: {error};")

    async def do_copy(self, source: str, target: str) -> None:
        """Read and write through the client, the text between them as it came."""
        text = await self._read(source)
        await self.say(text)
        await self.do_write(target, f"{text}more\n")

    async def do_call(self, kind: str, title: str, raw: Any) -> None:
        await self.tell("tool_call", toolCallId=title, title=title, kind=kind, rawInput=raw)
        output = [{"type": "content", "content": {"type": "text", "text": "out"}}]
        await self.tell("tool_call_update", toolCallId=title, status="completed", content=output)

    async def do_ask(self, kind: str | None, title: str, raw: Any = None, path: str = "") -> None:
        where = [{"path": str(self.cwd / path)}] if path else None
        await self._ask(f"ask {title}", title=title, kind=kind, rawInput=raw, locations=where)

    async def do_ask_edit(self, path: str, old: str | None, new: str) -> None:
        await self.do_ask_diffs("edit", "Edit", [path, old, new])

    async def do_ask_diffs(self, kind: str | None, title: str, *changes: Any) -> None:
        diffs = [
            without_none(
                {"type": "diff", "path": str(self.cwd / path), "oldText": old, "newText": new}
            )
            for path, old, new in changes
        ]
        await self._ask(f"e{changes[0][0]}", title=title, kind=kind, content=diffs)

    async def _ask(self, number: str, choices: Any = None, **call: Any) -> None:
        reply = await self._permission(number, choices, **call)
        await self.say(f"{reply['outcome'].get('optionId', 'cancelled')};")

    async def _permission(self, number: str, choices: Any = None, **call: Any) -> Any:
        call = without_none({"toolCallId": number, **call})
        options = CHOICES if choices is None else choices
        return await self.ask_client("session/request_permission", toolCall=call, options=options)

    async def do_ask_always(self) -> None:
        await self._ask("a", CHOICES[:1], title="ls", kind="read")

    async def do_cost(self, used: int, amount: float) -> None:
        cost = {"amount": amount, "currency": "USD"}
        await self.tell("usage_update", used=used, size=9_999, cost=cost)

    async def do_tokens(self, read: int, written: int) -> None:
        self.usage = {
            "totalTokens": read + written,
            "inputTokens": read,
            "outputTokens": written,
        }

    async def do_end(self, reason: str) -> str:
        return reason

    async def do_die(self, code: int) -> None:
        sys.stderr.write("fatal: the engine is broken\n")
        sys.stderr.flush()
        os._exit(code)

    async def do_hang(self) -> None:
        await asyncio.sleep(600)

    async def do_block(self) -> None:
        """Hang for good, without ears for a cancellation."""
        time.sleep(600)  # noqa: ASYNC251 - that is the point

    async def do_child(self, file: str) -> None:
        """Start a process that goes on by itself, and note its number."""
        child = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
        (self.cwd / file).write_text(str(child.pid))

    async def do_raw(self, line: str, times: int = 1) -> None:
        write(f"{line}\n".encode() * times)

    async def do_long_line(self) -> None:
        await self.do_raw("x" * 17_000_000)

    async def do_deep_line(self) -> None:
        await self.do_raw("[" * 600_000)

    async def do_flood(self) -> None:
        while True:
            for _ in range(100):
                await self.say("x" * 1000)
            await asyncio.sleep(0)  # what the client says is heard between

    async def do_terminal(self) -> None:
        try:
            await self.ask_client("terminal/create", command="ls")
        except Refused as error:
            await self.say(str(error))

    async def do_crowd(self) -> None:
        asked = (self._permission(str(n), title="x", kind="execute") for n in range(300))
        await asyncio.gather(*asked, return_exceptions=True)


def _path(folder: Path, path: str) -> Path:
    return folder / Path(path).expanduser()


def without_none(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    asyncio.run(Agent().run())
