"""An agent of the Agent Client Protocol for tests, on the official SDK: it does what the variable SCRIPT says, a list of steps."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pydantic

pydantic.BaseModel.model_config = pydantic.ConfigDict(
    defer_build=True
)  # or each start takes twice as long

from acp import (  # noqa: E402 - its models are built when they are used
    PROTOCOL_VERSION,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    helpers,
    run_agent,
)
from acp.schema import (  # noqa: E402
    AgentMessageChunk,
    Cost,
    FileEditToolCallContent,
    PermissionOption,
    SessionConfigOptionSelect,
    SetSessionConfigOptionResponse,
    TextContentBlock,
    ToolCallLocation,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)

CHOICES = [
    PermissionOption(option_id="always", name="Always", kind="allow_always"),
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class Agent:
    def __init__(self) -> None:
        self.steps = json.loads(os.environ["SCRIPT"])
        self.client: Any = None
        self.session, self.cwd, self.usage = "", Path(), None
        self.is_logged_in = False
        self.model = "its own"

    def on_connect(self, client: Any) -> None:
        self.client = client

    async def initialize(self, protocol_version: int, **more: Any) -> InitializeResponse:
        self.capabilities = more["client_capabilities"]
        if ["silent"] in self.steps:
            await asyncio.sleep(600)
        version = 7 if ["version"] in self.steps else PROTOCOL_VERSION
        return InitializeResponse(protocol_version=version)

    async def authenticate(self, method_id: str, **_: Any) -> None:
        self.is_logged_in = method_id == "api-key"

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        if ["login"] in self.steps and not self.is_logged_in:
            raise RequestError.auth_required()
        self.cwd, self.session = Path(cwd), "s"
        return NewSessionResponse(session_id="s", config_options=self.options)

    async def set_config_option(self, config_id: str, value: Any, **_: Any) -> Any:
        self.model = f"{config_id} {value}"
        return SetSessionConfigOptionResponse(config_options=self.options)

    @property
    def options(self) -> list[SessionConfigOptionSelect]:
        """The choice of a model, where the script has one."""
        if ["model"] not in self.steps:
            return []
        fields = {"type": "select", "id": "llm", "name": "Model", "category": "model"}
        small = [{"value": "small-1", "name": "Small"}, {"value": "big-1", "name": "Big"}]
        groups = [{"group": "all", "name": "All", "options": small}]
        data = {**fields, "currentValue": "small-1", "options": groups}
        return [SessionConfigOptionSelect.model_validate(data)]

    async def do_model(self) -> None:
        await self.say(self.model)

    async def prompt(self, prompt: list[Any], **_: Any) -> PromptResponse:
        self.words = prompt[0].text
        for name, *arguments in self.steps:
            if (reason := await getattr(self, f"do_{name}")(*arguments)) is not None:
                return PromptResponse(stop_reason=reason, usage=self.usage)
        return PromptResponse(stop_reason="end_turn", usage=self.usage)

    async def cancel(self, session_id: str, **_: Any) -> None:
        pass

    async def tell(self, update: Any) -> None:
        await self.client.session_update(session_id=self.session, update=update)

    async def say(self, text: Any) -> None:
        await self.tell(helpers.update_agent_message_text(str(text)))

    async def do_login(self) -> None:
        await self.say("logged in")

    async def do_say(self, text: str) -> None:
        await self.say(text)

    async def do_words(self) -> None:
        await self.say(self.words)

    async def do_about(self) -> None:
        fs = self.capabilities.fs
        await self.say(
            json.dumps([fs.read_text_file, fs.write_text_file, self.capabilities.terminal])
        )

    async def do_env(self, name: str) -> None:
        await self.say(os.environ.get(name, "unset"))

    async def do_think(self, text: str) -> None:
        await self.tell(helpers.update_agent_thought_text(text))

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
            file = await self.client.read_text_file(
                session_id=self.session, path=str(self.cwd / path), line=line, limit=limit
            )
            await self.say(f"read {file.content!r};")
        except RequestError as error:
            await self.say(f"no: {error};")

    async def do_write(self, path: str, text: str) -> None:
        try:
            await self.client.write_text_file(
                session_id=self.session, path=str(self.cwd / path), content=text
            )
            await self.say("written;")
        except RequestError as error:
            await self.say(f"no: {error};")

    async def do_copy(self, source: str, target: str) -> None:
        """Read and write through the client, the text between them as it came."""
        path = str(self.cwd / source)
        file = await self.client.read_text_file(session_id=self.session, path=path)
        await self.say(file.content)
        await self.do_write(target, file.content + "more\n")

    async def do_call(self, kind: str, title: str, raw: Any) -> None:
        await self.tell(helpers.start_tool_call(title, title, kind=kind, raw_input=raw))
        await self.tell(
            helpers.update_tool_call(
                title, status="completed", content=[helpers.tool_content(helpers.text_block("out"))]
            )
        )

    async def do_ask(self, kind: str | None, title: str, raw: Any = None, path: str = "") -> None:
        where = [ToolCallLocation(path=str(self.cwd / path))] if path else None
        call = ToolCallUpdate(
            tool_call_id=f"ask {title}", title=title, kind=kind, raw_input=raw, locations=where
        )
        await self._ask(call)

    async def do_ask_edit(self, path: str, old: str | None, new: str) -> None:
        await self.do_ask_diffs("edit", "Edit", [path, old, new])

    async def do_ask_diffs(self, kind: str | None, title: str, *changes: Any) -> None:
        diffs = [
            FileEditToolCallContent(
                type="diff", path=str(self.cwd / path), old_text=old, new_text=new
            )
            for path, old, new in changes
        ]
        number = f"e{changes[0][0]}"
        await self._ask(ToolCallUpdate(tool_call_id=number, title=title, kind=kind, content=diffs))

    async def _ask(self, call: ToolCallUpdate, choices: Any = None) -> None:
        choices = CHOICES if choices is None else choices
        reply = await self.client.request_permission(self.session, call, choices)
        await self.say(f"{getattr(reply.outcome, 'option_id', 'cancelled')};")

    async def do_ask_always(self) -> None:
        await self._ask(ToolCallUpdate(tool_call_id="a", title="ls", kind="read"), CHOICES[:1])

    async def do_cost(self, used: int, amount: float) -> None:
        cost = Cost(amount=amount, currency="USD")
        await self.tell(
            UsageUpdate(session_update="usage_update", used=used, size=9_999, cost=cost)
        )

    async def do_tokens(self, read: int, written: int) -> None:
        self.usage = Usage(total_tokens=read + written, input_tokens=read, output_tokens=written)

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
        os.set_blocking(1, True)
        data = f"{line}\n".encode() * times
        while data:
            data = data[os.write(1, data) :]
        os.set_blocking(1, False)

    async def do_long_line(self) -> None:
        await self.do_raw("x" * 17_000_000)

    async def do_deep_line(self) -> None:
        await self.do_raw("[" * 600_000)

    async def do_flood(self) -> None:
        chunk = AgentMessageChunk(
            session_update="agent_message_chunk",
            content=TextContentBlock(type="text", text="x" * 1000),
        )
        params = {"sessionId": "s", "update": chunk.model_dump(mode="json", by_alias=True)}
        line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params})
        while True:
            await self.do_raw(line, 100)

    async def do_terminal(self) -> None:
        try:
            await self.client.create_terminal(session_id=self.session, command="ls")
        except RequestError as error:
            await self.say(str(error))

    async def do_crowd(self) -> None:
        calls = [ToolCallUpdate(tool_call_id=str(n), title="x", kind="execute") for n in range(300)]
        await asyncio.gather(
            *(self.client.request_permission(self.session, each, CHOICES) for each in calls),
            return_exceptions=True,
        )


def _path(folder: Path, path: str) -> Path:
    return folder / Path(path).expanduser()


if __name__ == "__main__":
    asyncio.run(run_agent(Agent()))
