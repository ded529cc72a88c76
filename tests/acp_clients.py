"""An editor for the tests of `ybs acp`: the client of the protocol's official SDK, on a pipe to an agent in this process.

Every message in both directions is checked against the schema: that of the SDK, and the published one where npm has brought it.
"""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import acp
from acp import schema
from acp.connection import StreamDirection, StreamEvent
from jsonschema import Draft202012Validator

from ybs.frontends.acp.command import served
from ybs.session.options import Options
from ybs.testing import ScriptedModel

PUBLISHED = Path(sys.prefix) / "npm/node_modules/@agentclientprotocol/sdk/schema/v1"
#: By method: the beginning of the names of what is asked and answered.
NAMES = {
    "initialize": "Initialize",
    "authenticate": "Authenticate",
    "session/new": "NewSession",
    "session/load": "LoadSession",
    "session/list": "ListSessions",
    "session/resume": "ResumeSession",
    "session/fork": "ForkSession",
    "session/close": "CloseSession",
    "session/prompt": "Prompt",
    "session/set_mode": "SetSessionMode",
    "session/set_config_option": "SetSessionConfigOption",
    "session/request_permission": "RequestPermission",
    "fs/read_text_file": "ReadTextFile",
    "fs/write_text_file": "WriteTextFile",
    "elicitation/create": "CreateElicitation",
}
NOTIFICATIONS = {"session/update": "SessionNotification", "session/cancel": "CancelNotification"}


class Editor(acp.Client):
    """It keeps what it was told, and answers as it is told to: `choice` is how the label of an option begins (None: no answer)."""

    def __init__(self, choice: str | None = "Yes", **buffers: str) -> None:
        self.choice, self.buffers = choice, buffers
        self.updates: list[Any] = []
        self.asked: list[tuple[Any, list[str]]] = []
        self.forms: list[Any] = []
        self.form: dict[str, Any] | None = None
        self.written: list[tuple[str, str]] = []
        self.has_asked = asyncio.Event()
        self.agent: Any = None
        self.messages: list[StreamEvent] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> Any:
        self.asked.append((tool_call, [each.name for each in options]))
        self.has_asked.set()
        if self.choice is None:
            await asyncio.Event().wait()
        chosen = next(each for each in options if each.name.startswith(self.choice or ""))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append((message, mode))
        if self.form is None:
            return schema.DeclineElicitationResponse(action="decline")
        return schema.AcceptElicitationResponse(action="accept", content=self.form)

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> Any:
        name = Path(path).name
        if name not in self.buffers:
            raise acp.RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=self.buffers[name])

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> Any:
        self._save(Path(path), content)
        return schema.WriteTextFileResponse()

    def _save(self, path: Path, content: str) -> None:
        self.written.append((path.name, content))
        self.buffers[path.name] = content
        path.write_text(content)

    def of(self, kind: str) -> list[Any]:
        """Return the updates of a kind."""
        return [each for each in self.updates if each.session_update == kind]

    @property
    def text(self) -> str:
        """The answers, as they came."""
        chunks = self.of("agent_message_chunk")
        return "".join(each.content.text for each in chunks if each.content.type == "text")

    def call(self, title: str) -> dict[str, Any]:
        """Return all that is known of the call whose title begins so."""
        found: dict[str, Any] = {}
        begun = next(each for each in self.of("tool_call") if each.title.startswith(title))
        for each in (begun, *self.of("tool_call_update")):
            if each.tool_call_id == begun.tool_call_id:
                found |= each.model_dump(exclude_none=True)
        return found

    async def new(self, folder: Path, **more: Any) -> str:
        """Open a session."""
        reply = await self.agent.new_session(cwd=str(folder), **{"mcp_servers": [], **more})
        return reply.session_id

    async def say(self, session_id: str, *blocks: Any) -> Any:
        """Take a turn."""
        prompt = [acp.text_block(each) if isinstance(each, str) else each for each in blocks]
        return await self.agent.prompt(session_id=session_id, prompt=prompt)


ALL = schema.ClientCapabilities(
    fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
    elicitation=schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities()),
)


@asynccontextmanager
async def edited(
    project: Path, *script: Any, editor: Editor | None = None, offers: Any = None, **options: Any
) -> AsyncIterator[Editor]:
    """Serve an editor; when it goes, what was said in both directions is checked."""
    own = editor or Editor()
    given = {"model": ScriptedModel(script), "sandbox": False, **options}
    async with connected(Options.of(project, given), own) as agent:
        own.agent = agent
        await agent.initialize(protocol_version=1, client_capabilities=offers)
        yield own
    check(own.messages)


@asynccontextmanager
async def connected(options: Options, editor: Editor) -> AsyncIterator[Any]:
    """Connect an editor with an agent of this process."""
    here, there = socket.socketpair()
    agent_end = await asyncio.open_unix_connection(sock=here)
    serving = asyncio.create_task(served(options, *agent_end))
    reader, writer = await asyncio.open_unix_connection(sock=there, limit=50_000_000)
    agent = acp.connect_to_agent(
        editor, writer, reader, use_unstable_protocol=True, observers=[editor.messages.append]
    )
    try:
        yield agent
    finally:
        await agent.close()
        writer.close()
        await asyncio.wait((serving,), timeout=10)
    await serving


def check(messages: Sequence[StreamEvent]) -> None:
    """Raise AssertionError for a message that the schema does not know."""
    check_all([(m.direction is StreamDirection.OUTGOING, m.message) for m in messages])


def check_all(messages: Sequence[tuple[bool, dict[str, Any]]]) -> None:
    """Do the same for messages with whether they are the editor's."""
    methods: dict[tuple[bool, Any], str] = {}
    for is_ours, message in messages:
        assert message["jsonrpc"] == "2.0"
        if (method := message.get("method")) is None:
            if "result" in message:
                asked = methods[not is_ours, message["id"]]
                check_part(f"{NAMES[asked]}Response", message["result"])
            else:
                check_part("Error", {k: v for k, v in message["error"].items() if v is not None})
        elif "id" in message:
            methods[is_ours, message["id"]] = method
            check_part(f"{NAMES[method]}Request", message["params"])
        else:
            check_part(NOTIFICATIONS[method], message["params"])


def check_part(name: str, value: Any) -> None:
    """Raise AssertionError where a part of a message is not what its name says."""
    for validator in validators(name):
        errors = [
            f"{'.'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(value)
        ]
        assert errors == [], f"{name}: {json.dumps(value)[:500]}"


@cache
def validators(name: str) -> list[Draft202012Validator]:
    """Return what checks parts of this name."""
    found: list[Draft202012Validator] = []
    model = getattr(schema, name, None)
    if hasattr(model, "model_json_schema"):
        found.append(Draft202012Validator(model.model_json_schema(by_alias=True)))
    if (file := PUBLISHED / "schema.unstable.json").exists():
        whole = json.loads(file.read_text())
        assert name in whole["$defs"], name
        found.append(Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": whole["$defs"]}))
    return found
