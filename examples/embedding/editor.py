"""Serve ybs to an editor: an agent of the Agent Client Protocol, on its official SDK (`pip install agent-client-protocol`)."""

import asyncio

import acp

from ybs.core.events import TextStreamed, ToolFinished, ToolStarted, TurnFinished
from ybs.core.ports import Answer
from ybs.session.hub import Hub
from ybs.session.stream import events_of

KINDS = {"yes": "allow_once", "no": "reject_once"}
CHOICES = [acp.schema.PermissionOption(option_id=k, name=k, kind=v) for k, v in KINDS.items()]


class Agent:
    def __init__(self, hub):
        self.hub = hub

    def on_connect(self, client):
        self.tell, self.request = client.session_update, client.request_permission

    async def initialize(self, protocol_version, **_):
        return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)

    async def new_session(self, cwd, **_):
        session = self.hub.open(cwd, mode="ask").session
        session.attach(lambda question: self.ask(session.id, question))
        return acp.NewSessionResponse(session_id=session.id)

    async def prompt(self, prompt, session_id, **_):
        words, stopped = "".join(each.text for each in prompt if each.type == "text"), "end_turn"
        async for envelope in events_of(self.hub.find(session_id).session, words):
            match envelope.event:
                case TextStreamed(text=text):
                    await self.tell(session_id, acp.update_agent_message_text(text))
                case ToolStarted(id=call, title=title):
                    await self.tell(session_id, acp.start_tool_call(call, title))
                case ToolFinished(id=call, success=success):
                    status = "completed" if success else "failed"
                    await self.tell(session_id, acp.update_tool_call(call, status=status))
                case TurnFinished(reason="interrupted") if envelope.is_main:
                    stopped = "cancelled"
        return acp.PromptResponse(stop_reason=stopped)

    async def ask(self, session_id, question):
        call = acp.update_tool_call(question.call.id, title=question.preview.title)
        reply = await self.request(session_id, call, CHOICES)
        return Answer(is_allowed=getattr(reply.outcome, "option_id", "no") == "yes")

    async def cancel(self, session_id, **_):
        self.hub.find(session_id).session.cancel()


async def main():
    async with Hub() as hub:
        await acp.run_agent(Agent(hub))


asyncio.run(main())
