"""Serve ybs to an editor: an agent of the Agent Client Protocol, on its official SDK (`pip install agent-client-protocol`)."""

import asyncio

import acp
from acp.helpers import start_tool_call, update_agent_message_text, update_tool_call
from acp.schema import PermissionOption

from ybs.core.events import TextStreamed, ToolFinished, ToolStarted, TurnFinished
from ybs.core.ports import Answer
from ybs.session.hub import Hub
from ybs.session.stream import events_of

CHOICES = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class Agent:
    def __init__(self, hub):
        self.hub = hub

    def on_connect(self, client):
        self.client = client

    async def initialize(self, protocol_version, **_):
        return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)

    async def new_session(self, cwd, **_):
        session = self.hub.open(cwd, mode="ask").session
        session.attach(lambda question: self.ask(session.id, question))
        return acp.NewSessionResponse(session_id=session.id)

    async def prompt(self, prompt, session_id, **_):
        session, reason = self.hub.find(session_id).session, ""
        words = "".join(block.text for block in prompt if block.type == "text")
        async for envelope in events_of(session, words):
            match envelope.event:
                case TextStreamed(text=text):
                    await self.tell(session_id, update_agent_message_text(text))
                case ToolStarted(id=call, name=name):
                    await self.tell(session_id, start_tool_call(call, name))
                case ToolFinished(id=call, success=success):
                    status = "completed" if success else "failed"
                    await self.tell(session_id, update_tool_call(call, status=status))
                case TurnFinished() if envelope.is_main:
                    reason = envelope.event.reason
        return acp.PromptResponse(stop_reason={"interrupted": "cancelled"}.get(reason, "end_turn"))

    async def ask(self, session_id, question):
        call = update_tool_call(question.call.id, title=question.preview.title)
        reply = await self.client.request_permission(session_id, call, CHOICES)
        return Answer(is_allowed=getattr(reply.outcome, "option_id", "no") == "yes")

    async def tell(self, session_id, update):
        await self.client.session_update(session_id=session_id, update=update)

    async def cancel(self, session_id, **_):
        self.hub.find(session_id).session.cancel()


async def main():
    async with Hub() as hub:
        await acp.run_agent(Agent(hub))


if __name__ == "__main__":
    asyncio.run(main())
