"""What is looked at before a small model is asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hosts import this_host
from rows import every_row
from ybs.agent.read_ahead import (
    DECLARES,
    MOST_BYTES,
    MOST_ENTRIES,
    MOST_LINES,
    ReadAhead,
    missing_in,
    new_words,
)
from ybs.core.events import AssistantSaid
from ybs.core.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.security.paths.roots import Roots
from ybs.testing import ScriptedModel

NAMES = ("read_file", "list_files", "search_files")
TOOLS = [ToolSpec(name=name, description="", parameters=msgspec.Raw(b"{}")) for name in NAMES]


def written(project: Path) -> Roots:
    for name in ("app.py", "docs/usage.md", "AUTHORS", "src/web/app.ts"):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    (project / "large.txt").write_text("x" * (MOST_BYTES + 1))
    if not (project / "link.txt").is_symlink():
        (project / "link.txt").symlink_to("/etc/passwd")
    return Roots(this_host(), project)


async def calls_for(messages: Sequence[Message], roots: Roots, tools: Any = TOOLS) -> list[Any]:
    model = ReadAhead(ScriptedModel(["asked"]), roots)
    events = [event async for event in model.stream(Request("", messages, tools))]
    last = events[-1]
    assert isinstance(last, AssistantSaid)
    calls = last.message.calls
    assert bool(calls) == (last.message.text != "asked")
    return [[call.name, *msgspec.json.decode(call.arguments).values()] for call in calls]


def searched(pattern: str, path: str = ".") -> list[Any]:
    return ["search_files", pattern, path, MOST_LINES, 1, True]


@pytest.mark.integration
@every_row(
    "words, calls",
    [
        ("What does app.py do?", [["read_file", "app.py"]]),
        (
            "Who is in AUTHORS, and see docs/usage.md.",
            [["read_file", "AUTHORS"], ["read_file", "docs/usage.md"]],
        ),
        (
            "Compare app.py, AUTHORS and docs/usage.md",
            [["read_file", "app.py"], ["read_file", "AUTHORS"]],
        ),
        ("What lies in the folder docs?", [["list_files", "*", "docs"]]),
        ("Where is MAX_SIZE set?", [searched("MAX_SIZE")]),
        (
            "Who calls readAll and parse_line?",
            [searched("readAll|parse_line")],
        ),
        ("Which of the docs mention ports?", [searched("port", "docs")]),
        (
            "Where is the struct TidalClock declared?",
            [searched(rf"\b(?:{DECLARES})\s+(?:TidalClock)\b")],
        ),
        ("Add docs/new.md with a title.", []),
        ("Does anybody in docs speak Danish?", [searched("Danish", "docs")]),
        ("What is the capital of France?", []),
        ("How tall is a giraffe?", []),
        ("How do I read a file in Python?", []),
        ("Which file names a.mail.example?", [searched(r"a\.mail\.example")]),
        ("Is there a link to http://a.example?", [searched("http://a\\.example")]),
        ("Is there a FIXME?", [searched("FIXME")]),
        ("In colours.css replace red by blue.", [["list_files", "**/colours.css"]]),
        ("Make a file motto.txt with a motto.", []),
        ("Run app.py with python3.", []),
        ("What does `python3 app.py` print?", []),
        (
            "`python3 app.py` fails. Fix AUTHORS.",
            [["read_file", "app.py"], ["read_file", "AUTHORS"]],
        ),
        ("Delete app.py.", []),
        ("AUTHORS is old, throw it away.", []),
        ("Get rid of the file `docs/usage.md`", []),
        ("Remove the first line of app.py.", [["read_file", "app.py"]]),
        ("What does large.txt say?", [["list_files", "**/large.txt"]]),
        ("What does link.txt say?", [["list_files", "**/link.txt"]]),
        ("Read /etc/passwd and ../x", []),
        ("Good morning. How are you?", []),
        ("Use SQL.", []),
        ("What is in . here", []),
    ],
)
async def test_what_the_words_name_is_looked_at(words: str, calls: list[Any], project: Path):
    assert await calls_for([UserMessage.of(words)], written(project)) == calls


async def test_only_tools_on_offer_are_called(project: Path):
    said = [UserMessage.of("What does app.py do?")]
    assert await calls_for(said, written(project), TOOLS[1:]) == []


async def test_a_look_ahead_is_the_first_step_of_a_turn_and_no_other(project: Path):
    roots, first = written(project), UserMessage.of("What does app.py do?")
    hint = UserMessage.of("The map.", origin="context")
    assert await calls_for([first, hint], roots) == [["read_file", "app.py"]]
    answer = AssistantMessage(content=(Text(text="Nothing."),))
    assert await calls_for([first, answer, UserMessage.of("Go on!", origin="guard")], roots) == []
    assert await calls_for([first, answer, UserMessage.of("And AUTHORS?")], roots) == [
        ["read_file", "AUTHORS"]
    ]
    assert new_words([]) == ""


@every_row(
    "words, missing",
    [
        ("Make a file motto.txt that says: hello.", ["motto.txt"]),
        ("Write docs/plan.md and docs/usage.md anew.", ["docs/plan.md"]),
        ("In colours.css replace red by blue.", []),
        ("What would a new file x.txt be?", []),
        ("Write /etc/new.conf and ../up.txt", []),
    ],
)
def test_of_a_file_that_is_to_be_made_it_is_said_that_it_is_not_there(
    words: str, missing: list[str], project: Path
):
    said = list(missing_in(words, written(project)))
    assert said == [f"{path} is not there yet: write_file makes it." for path in missing]


async def test_a_folder_in_which_nothing_was_found_is_listed(tmp_path: Path):
    roots = written(tmp_path)
    asked = [UserMessage.of("Which of the docs mention harbours or ports?")]
    model = ReadAhead(ScriptedModel([]), roots)
    events = [event async for event in model.stream(Request("", asked, TOOLS))]
    last = events[-1]
    assert isinstance(last, AssistantSaid)

    def with_result(output: str) -> list[Message]:
        id_ = last.message.calls[0].id
        return [*asked, last.message, ToolResult(call_id=id_, name="search_files", output=output)]

    assert last.message.calls[0].id.startswith("ahead_harbour")
    assert await calls_for(with_result("No matches."), roots) == [searched("port", "docs")]
    asked = [UserMessage.of("Which of the docs mention harbours?")]
    assert await calls_for(with_result("No matches."), roots) == [["list_files", "*", "docs"]]
    assert await calls_for(with_result("docs/usage.md:1: port"), roots) == []
    for number in range(MOST_ENTRIES):
        (tmp_path / f"docs/{number}.md").touch()
    assert await calls_for(with_result("No matches."), roots) == []
    (tmp_path / "docs").rename(tmp_path / "gone")
    assert await calls_for(with_result("No matches."), roots) == []


async def test_the_model_does_not_see_searches_in_vain_that_another_look_followed(tmp_path: Path):
    def look(number: int, output: str) -> list[Message]:
        call = ToolCall(id=f"ahead_{number}", name="search_files", arguments=msgspec.Raw(b"{}"))
        said = AssistantMessage(content=(call,), stop_reason="tool_calls")
        return [said, ToolResult(call_id=call.id, name="search_files", output=output)]

    asked = UserMessage.of("Which of the docs mention harbours or ports?")
    none, found = look(1, "No matches."), look(2, "a.md:1: port")
    last_in_vain = look(3, "No matches.")
    inner = ScriptedModel(["Yes.", "No."])
    for looks in ([*none, *found], [*none, *last_in_vain]):
        request = Request("", [asked, *looks], [])
        async for _event in ReadAhead(inner, written(tmp_path)).stream(request):
            pass
    sent = [list(request.messages) for request in inner.requests]
    assert sent == [[asked, *found], [asked, *last_in_vain]]
