"""Requests that share their beginning."""

from msgspec import Raw

from ybs.agent.small_models.hints import CHANGED
from ybs.agent.small_models.support import SharedPrefix
from ybs.core.messages import AssistantMessage, Text, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.testing import ScriptedModel

RULES = "Be brief."


def brief(words: str) -> str:
    return "Use tox." if "test" in words else ""


async def asked(*requests: Request) -> list[Request]:
    model = ScriptedModel(["ok"] * len(requests))
    shared = SharedPrefix(model, RULES, brief)
    for request in requests:
        assert [event async for event in shared.stream(request)]
    return model.requests


def said(words: str, *, origin: str = "person") -> UserMessage:
    return UserMessage.of(words, origin=origin)  # pyright: ignore[reportArgumentType] - a row of words


def texts(request: Request) -> list[str]:
    return [message.text for message in request.messages if not hasattr(message, "output")]


async def test_what_differs_between_sessions_goes_with_the_first_words():
    one, two = await asked(
        Request(f"{RULES}\n\nFolder: /a", [said("hello")]),
        Request(f"{RULES}\n\nFolder: /b", [said("run the tests")]),
    )
    assert one.system == two.system == RULES
    assert texts(one) == ["Folder: /a\n\nhello"]
    assert texts(two) == ["Folder: /b\n\nUse tox.\n\nrun the tests"]


async def test_what_was_sent_stays_and_later_words_get_what_is_about_them():
    answer = AssistantMessage(content=(Text(text="ok"),))
    first, later = said("hello"), said("test it")
    one, two = await asked(
        Request(f"{RULES}\n\nFolder: /a", [first]),
        Request(f"{RULES}\n\nFolder: /a", [first, answer, later, said("test!", origin="guard")]),
    )
    assert list(two.messages[:1]) == list(one.messages)
    assert two.messages[0] is one.messages[0]
    assert texts(two)[1:] == ["ok", "Use tox.\n\ntest it", "test!"]


async def test_a_prompt_of_ones_own_is_left_alone():
    own = Request("You are a poet.", [said("hello")])
    assert (await asked(own))[0] == Request(own.system, (said("hello"),))


async def test_a_conversation_that_begins_with_a_summary_has_the_facts_there():
    (one,) = await asked(Request(f"{RULES}\n\nFolder: /a", [said("So far.", origin="summary")]))
    assert texts(one) == ["Folder: /a\n\nSo far."]


async def test_a_note_stands_behind_the_persons_words_alone():
    model = ScriptedModel(["ok"])
    shared = SharedPrefix(model, RULES, brief, lambda words: f"{len(words)} letters")
    request = Request(RULES, [said("hello"), said("go on", origin="guard")])
    assert [event async for event in shared.stream(request)]
    assert texts(model.requests[0]) == ["hello\n(5 letters)", "go on"]


async def test_a_model_that_loses_its_task_is_told_it_again_behind_what_it_finds():
    model = ScriptedModel(["ok"])
    shared = SharedPrefix(model, RULES, brief, repeats=True)
    spec = ToolSpec(name="edit_file", description="", parameters=Raw(b"{}"), effect="edit")
    found = ToolResult(call_id="1", name="read_file", output="tea\n")
    edited = ToolResult(call_id="2", name="edit_file", output="Edited.")
    request = Request(RULES, [said("Which tea?"), found, edited], [spec])
    assert [event async for event in shared.stream(request)]
    results = [each.output for each in model.requests[0].messages if isinstance(each, ToolResult)]
    assert results == ["tea\nYou were asked: Which tea?", f"Edited.\n({CHANGED})"]
