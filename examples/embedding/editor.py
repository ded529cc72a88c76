"""Serve ybs to an editor: an agent of the Agent Client Protocol, on its official SDK (`pip install agent-client-protocol`)."""

import asyncio

from acp import (
    PROTOCOL_VERSION,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    helpers,
    run_agent,
)
from acp.schema import PermissionOption

from ybs.core.events import StateChanged, TextStreamed, ToolFinished, ToolStarted, TurnFinished
from ybs.core.ports import Answer
from ybs.session.hub import Hub
from ybs.session.stream import events_of

CHOICES = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class Agent:
    def __init__(self, hub):
        self.hub, self.asking = hub, {}

    def on_connect(self, client):
        self.client = client

    async def initialize(self, protocol_version, **_):
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, cwd, **_):
        return NewSessionResponse(session_id=self.hub.open(cwd, mode="ask").session.id)

    async def prompt(self, prompt, session_id, **_):
        session, reason = self.hub.find(session_id).session, "end_turn"
        words = "".join(block.text for block in prompt if block.type == "text")
        async for envelope in events_of(session, words, follows=True):
            await self.show(session, event := envelope.event)
            if isinstance(event, TurnFinished) and event.reason == "interrupted":
                reason = "cancelled"
        return PromptResponse(stop_reason=reason)

    async def show(self, session, event):
        match event:
            case TextStreamed(text=text):
                await self.tell(session, helpers.update_agent_message_text(text))
            case ToolStarted(id=call, name=name):
                await self.tell(session, helpers.start_tool_call(call, name))
            case ToolFinished(id=call, success=success):
                status = "completed" if success else "failed"
                await self.tell(session, helpers.update_tool_call(call, status=status))
            case StateChanged(questions=questions):
                for question in questions:
                    if (key := (session.id, question.id)) not in self.asking:
                        self.asking[key] = asyncio.create_task(self.ask(session, question))

    async def ask(self, session, question):
        call = helpers.update_tool_call(question.id, title=question.title)
        reply = await self.client.request_permission(session.id, call, CHOICES)
        is_allowed = getattr(reply.outcome, "option_id", "no") == "yes"
        session.questions.answer(question.id, Answer(is_allowed=is_allowed))

    async def tell(self, session, update):
        await self.client.session_update(session_id=session.id, update=update)

    async def cancel(self, session_id, **_):
        self.hub.find(session_id).session.cancel()


async def main():
    async with Hub() as hub:
        await run_agent(Agent(hub))


if __name__ == "__main__":
    asyncio.run(main())
