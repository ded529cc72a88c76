"""Why an answer ended: only what is known to be good is success, in every wire format and every frontend."""

from typing import Any

import pytest

from rows import every_row
from scripted import Frames, OpenAIServer
from ybs import Session
from ybs.core.agent import Agent
from ybs.core.conversation import Conversation
from ybs.core.events import AssistantSaid, Event, TurnFinished
from ybs.core.messages import AssistantMessage, Text, ToolCall, UserMessage
from ybs.frontends.headless.run import exit_code
from ybs.guards.recovery import Recovery
from ybs.providers.wire.anthropic import AnthropicAdapter
from ybs.providers.wire.assemble import Assembly
from ybs.providers.wire.google import GoogleAdapter
from ybs.providers.wire.ollama import OllamaAdapter
from ybs.providers.wire.openai import OpenAIAdapter
from ybs.providers.wire.responses import ResponsesAdapter
from ybs.testing import ScriptedModel, ScriptedToolbox, answer

CALL = {"id": "c1", "index": 0, "function": {"name": "look", "arguments": "{}"}}


def message_of(adapter: Any, *frames: dict[str, Any]) -> AssistantMessage:
    draft = Assembly("m", adapter.name)
    for frame in frames:
        list(adapter.decode(frame, draft))
    return draft.message()


def choice(delta: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason, **more}]}


def google(reason: str, **more: Any) -> dict[str, Any]:
    content = {"parts": [{"text": "I will"}]}
    return {"candidates": [{"content": content, "finishReason": reason, **more}]}


@every_row(
    ("adapter", "frame", "reason", "detail"),
    [
        (OpenAIAdapter(), choice({"content": "I"}, "error"), "failed", "error"),
        (OpenAIAdapter(), choice({"content": "I"}, "abort"), "failed", "abort"),
        (OpenAIAdapter(), choice({"content": "I"}, "content_filter"), "refusal", "content_filter"),
        (OpenAIAdapter(), choice({"content": "I"}, "sensitive"), "refusal", "sensitive"),  # GLM
        (
            OpenAIAdapter(),
            choice({}, "insufficient_system_resource"),
            "failed",
            "insufficient_system_resource",
        ),
        (GoogleAdapter(), google("UNEXPECTED_TOOL_CALL"), "failed", "UNEXPECTED_TOOL_CALL"),
        (
            OpenAIAdapter(),
            choice({"content": "I"}, "error", error={"code": 502, "message": "upstream gone"}),
            "failed",
            "error: upstream gone",
        ),
        # OpenRouter says `stop` of an answer that never came, and the truth beside it (pi#8511).
        (
            OpenAIAdapter(),
            choice({"content": ""}, "stop", native_finish_reason="network_error"),
            "failed",
            "network_error",
        ),
        (
            OpenAIAdapter(),
            choice({"content": "hi"}, "stop", native_finish_reason="a_new_word"),
            "end",
            "",
        ),
        (
            GoogleAdapter(),
            google("MALFORMED_FUNCTION_CALL", finishMessage="Function call is empty"),
            "failed",
            "MALFORMED_FUNCTION_CALL: Function call is empty",
        ),
        (GoogleAdapter(), google("IMAGE_SAFETY"), "refusal", "IMAGE_SAFETY"),
        (
            GoogleAdapter(),
            {"promptFeedback": {"blockReason": "OTHER"}},
            "refusal",
            "refusal: OTHER",
        ),
        (
            AnthropicAdapter(),
            {"type": "message_delta", "delta": {"stop_reason": "compacted"}},
            "failed",
            "compacted",
        ),
        (OllamaAdapter(), {"done": True, "done_reason": "error"}, "failed", "error"),
        (
            ResponsesAdapter(),
            {"type": "response.completed", "response": {"status": "cancelled"}},
            "failed",
            "cancelled",
        ),
        (
            ResponsesAdapter(),
            {
                "type": "response.incomplete",
                "response": {"status": "incomplete", "incomplete_details": {"reason": "new"}},
            },
            "failed",
            "new",
        ),
        (
            ResponsesAdapter(),
            {"type": "response.incomplete", "response": {"status": "incomplete"}},
            "length",
            "",
        ),
    ],
)
def test_a_reason_that_is_not_known_to_be_good_is_a_failure(adapter, frame, reason, detail):
    message = message_of(adapter, frame)
    assert (message.stop_reason, message.stop_detail) == (reason, detail)


def test_the_calls_of_an_answer_that_failed_are_not_run():
    message = message_of(OpenAIAdapter(), choice({"tool_calls": [CALL]}), choice({}, "error"))
    assert (message.calls, message.has_failed) == ((), True)


def test_a_call_that_google_calls_malformed_is_not_run_even_where_it_can_be_read():
    call = {"parts": [{"functionCall": {"name": "look", "args": {}}}]}  # hermes-agent#83886
    message = message_of(GoogleAdapter(), google("MALFORMED_FUNCTION_CALL", content=call))
    assert (message.calls, message.has_failed) == ((), True)


def test_the_servers_word_is_short_and_has_no_control_characters():
    message = message_of(OpenAIAdapter(), choice({"content": "x"}, "\x1b[2J" + "e" * 1000))
    assert message.stop_detail.startswith("[2Jee")
    assert len(message.stop_detail) == 200


async def run(said: AssistantMessage, *more: Any) -> tuple[TurnFinished, list[Event], Agent]:
    events: list[Event] = []
    model, tools = ScriptedModel([said, *more]), ScriptedToolbox({"look": "seen"})
    agent = Agent(model, tools, events.append, Conversation("system"), [Recovery()])
    return await agent.run(UserMessage.of("go")), events, agent


@every_row(
    ("reason", "text", "words", "code"),
    [
        ("refusal", "I", "refused by", 4),
        ("refusal", "", "refused by", 4),  # and nothing is asked for again
        ("failed", "I", "ended it with abort", 75),
        ("failed", "", "ended it with abort", 75),
    ],
)
async def test_such_an_answer_ends_the_turn_with_a_word_and_an_exit_code(reason, text, words, code):
    said = AssistantMessage(
        content=(Text(text=text),) if text else (), stop_reason=reason, stop_detail="abort"
    )
    finished, events, agent = await run(said)
    assert (finished.reason, exit_code(finished, is_blocked=False)) == ("error", code)
    assert words in finished.message
    assert "abort" in finished.message
    assert [m.text for m in agent.conversation.messages] == ["go", text] if text else ["go"]
    assert [e.stop_reason for e in events if isinstance(e, AssistantSaid)] == [reason]


async def test_calls_of_a_model_that_failed_are_closed_unrun():
    call = ToolCall(id="c1", name="look")
    said = AssistantMessage(content=(call,), stop_reason="failed", stop_detail="abort")
    finished, _, agent = await run(said, "hello")
    assert finished.reason == "error"
    await agent.run(UserMessage.of("again"))
    assert agent.toolbox.calls == []


async def test_the_reason_and_its_word_survive_a_transcript():
    said = AssistantMessage(
        content=(Text(text="I"),), stop_reason="failed", stop_detail="abort", model="m"
    )
    assert AssistantSaid.of(said).message == said


@pytest.mark.integration
async def test_a_session_tells_the_servers_word(tmp_path):
    frames = [choice({"content": "I wi"}), choice({}, "abort")]
    async with OpenAIServer([Frames.of(*frames), answer("fine")]) as server:
        opened = Session.open(tmp_path, provider="openai", endpoint=server.url, model="any")
        async with opened as session:
            outcome = await session.send("go")
            assert (outcome.finished.reason, outcome.finished.is_temporary) == ("error", True)
            assert "ended it with abort" in outcome.finished.message
            assert (await session.send("again")).text == "fine"
