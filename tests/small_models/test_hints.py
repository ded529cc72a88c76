"""What stands behind the results that a small model reads."""

from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from rows import every_row
from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Effect, Request, ToolSpec
from ybs.small_models.hints import (
    ABSENT,
    ACT,
    ANSWER,
    ASKED,
    CHANGED,
    FAILED,
    LINES,
    MISSING,
    RAN,
    REFUSED,
    ROWS,
    RUN_AGAIN,
    RUN_FAILED,
    RUN_INSTEAD,
    RUN_NOW,
    WITH,
    asked_again,
    hint_after,
)
from ybs.small_models.support import SharedPrefix
from ybs.testing import ScriptedModel


@every_row(
    "effect, is_due, has_failed, flags, hint",
    [
        ("read", False, False, {}, ANSWER),
        ("read", True, False, {}, ACT),
        ("execute", True, False, {}, RAN),
        ("execute", True, True, {"is_error": True}, RUN_FAILED),
        ("execute", False, False, {"is_error": True}, FAILED),
        ("edit", True, False, {}, CHANGED),
        ("edit", True, True, {}, RUN_AGAIN),
        ("delete", False, False, {}, CHANGED),
        ("read", True, False, {"is_error": True}, FAILED),
        ("edit", True, False, {"is_error": True, "is_refused": True}, REFUSED),
    ],
)
def test_the_hint_fits_the_result(
    effect: Effect, is_due: bool, has_failed: bool, flags: dict[str, bool], hint: str
):
    result = ToolResult(call_id="1", name="x", output="", **flags)
    assert hint_after(result, effect, is_due=is_due, has_failed=has_failed) == hint


def test_a_command_whose_program_was_not_found_is_to_be_run_as_its_result_says():
    said = "[exit code 127, 0.1 s]\n[python is not on this machine; python3 is.]"
    result = ToolResult(call_id="1", name="run_shell", output=said, is_error=True)
    for is_due in (False, True):
        assert hint_after(result, "execute", is_due=is_due, has_failed=False) == RUN_INSTEAD
    assert hint_after(result, "read", is_due=False, has_failed=False) == FAILED


def tool(name: str, effect: Any) -> ToolSpec:
    return ToolSpec(name=name, description="", parameters=Raw(b"{}"), effect=effect)


async def test_a_change_that_was_asked_for_is_due_until_it_is_made():
    model = ScriptedModel(["ok", "ok"])
    shared = SharedPrefix(model, "Rules.", lambda _words: "")
    names = ("look", "change", "look")
    results = [ToolResult(call_id=str(n), name=name, output="x\n") for n, name in enumerate(names)]
    messages = [UserMessage.of("Set it to 5."), *results]
    request = Request("Rules.", messages, [tool("look", "read"), tool("change", "edit")])
    for _ in range(2):
        assert [event async for event in shared.stream(request)]
    one, two = (each.messages for each in model.requests)
    assert [m.output for m in one if isinstance(m, ToolResult)] == [
        f"x\n({ACT})",
        f"x\n({CHANGED})",
        f"x\n({ANSWER})",
    ]
    assert all(first is second for first, second in zip(one, two, strict=True))


async def test_what_failed_is_run_again_after_an_edit_until_it_works():
    model = ScriptedModel(["ok"])
    shared = SharedPrefix(model, "Rules.", lambda _words: "")
    steps = [("run", True), ("change", False), ("run", False), ("change", False)]
    results = [
        ToolResult(call_id=str(n), name=name, output="x", is_error=is_error)
        for n, (name, is_error) in enumerate(steps)
    ]
    tools = [tool("run", "execute"), tool("change", "edit")]
    request = Request("Rules.", [UserMessage.of("Fix it."), *results], tools)
    assert [event async for event in shared.stream(request)]
    outputs = [m.output for m in model.requests[0].messages if isinstance(m, ToolResult)]
    assert outputs == [f"x\n({hint})" for hint in (RUN_FAILED, RUN_AGAIN, RAN, CHANGED)]


@every_row("repeats, hint", [(False, RUN_NOW.format("make all")), (True, CHANGED)])
async def test_a_command_that_was_named_is_run_after_a_change(repeats: bool, hint: str):
    model = ScriptedModel(["ok"])
    shared = SharedPrefix(model, "Rules.", lambda _words: "", repeats=repeats)
    changed = ToolResult(call_id="1", name="change", output="x")
    words = UserMessage.of("Repair it and run `make all`.")
    request = Request("Rules.", [words, changed], [tool("change", "edit")])
    assert [event async for event in shared.stream(request)]
    last = model.requests[0].messages[-1]
    assert isinstance(last, ToolResult)
    assert last.output == f"x\n({hint})"


@every_row(
    "words, steps, hints",
    [
        (
            "Rename add to plus in a.py and in ./src/b.py, then run `make all`.",
            ("a.py", "/p/src/b.py", "", "a.py", "a.py"),
            (CHANGED, RUN_NOW.format("make all"), RAN, CHANGED, CHANGED),
        ),
        (
            "Fix add in a.py so that tests/test_a.py passes, and run `make all`.",
            ("", "./a.py", "b.py", "", "a.py"),
            (RAN, *[RUN_NOW.format("make all")] * 2, RAN, CHANGED),
        ),
    ],
)
async def test_a_command_is_run_after_the_last_change_that_was_asked_for_and_once(
    words: str, steps: tuple[str, ...], hints: tuple[str, ...]
):
    model = ScriptedModel(["ok"])
    shared = SharedPrefix(model, "Rules.", lambda _words: "")
    messages: list[Message] = [UserMessage.of(words)]
    for number, path in enumerate(steps):  # without a path a command is run
        name, key = ("change" if path else "run"), str(number)
        call = ToolCall(id=key, name=name, arguments=Raw(msgspec.json.encode({"path": path})))
        messages += [
            AssistantMessage(content=(call,)),
            ToolResult(call_id=key, name=name, output="x"),
        ]
    tools = [tool("run", "execute"), tool("change", "edit")]
    assert [event async for event in shared.stream(Request("Rules.", messages, tools))]
    outputs = [m.output for m in model.requests[0].messages if isinstance(m, ToolResult)]
    assert outputs == [f"x\n({hint})" for hint in hints]


@every_row(
    "words, name, output, more",
    [
        ("How many?", "read_file", "1\tmoon,planet\n2\tIo,Jupiter\n3\t", " " + ROWS.format(1)),
        ("How many?", "read_file", "1\tmilk\n2\t\n3\teggs, two", " " + LINES.format(2)),
        ("Count the teapots", "read_file", "1\tTeapot a\n2\tend", " " + WITH.format(1, "teapot")),
        ("How many?", "search_files", "a:1: b", ""),
        ("How many lines?", "read_file", "1\tmoon,planet\n2\tIo,Jupiter", " " + LINES.format(2)),
        ("What does a harp cost?", "read_file", "1\tflute,3", " " + ABSENT.format("harp or cost")),
        ("Who wrote this?", "read_file", "1\tIngrid", ""),
        ("What is the age of Marta?", "read_file", "1\tLeon 5", " " + ABSENT.format("Marta")),
        ("What does a harp cost?", "read_file", "1\tHarps: 3", ""),
        ("What does a harp cost?", "search_files", "flute", ""),
    ],
)
def test_the_task_is_told_again_with_what_a_small_model_overlooks(
    words: str, name: str, output: str, more: str
):
    result = ToolResult(call_id="1", name=name, output=output)
    assert asked_again(words, result) == ASKED.format(words) + more
    failed = replace(result, is_error=True)
    assert asked_again(words, failed) == ASKED.format(words)


def test_a_file_that_is_not_there_is_said_to_be_missing():
    none = ToolResult(call_id="1", name="list_files", output="No files match.")
    assert asked_again("Set the volume in x.ini to 3.", none) == MISSING


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
