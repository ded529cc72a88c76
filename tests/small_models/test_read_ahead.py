"""What is looked at before a small model is asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hosts import this_host
from rows import every_row
from timing import takes_at_most
from ybs.core.call_ids import CallIds
from ybs.core.events import AssistantSaid
from ybs.core.messages import AssistantMessage, Message, Text, ToolResult, UserMessage
from ybs.core.ports import Request, ToolSpec
from ybs.security.paths.roots import Roots
from ybs.small_models.intents import intent_of
from ybs.small_models.mentions import paths_in
from ybs.small_models.read_ahead import (
    DECLARES,
    MOST_BYTES,
    MOST_COUNTED,
    MOST_LINES,
    MOST_READ_LINES,
    MOST_SURVEYED,
    ReadAhead,
    looks_ahead,
    missing_in,
)
from ybs.small_models.support import Guided
from ybs.small_models.topics import terms_in
from ybs.small_models.unseen import HidingModel, without_unseen
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


def surveyed(pattern: str, path: str = ".") -> list[Any]:
    listed = ["list_files", "**/*", path, MOST_SURVEYED]
    whole = rf"\b(?:{pattern})"
    return [listed, ["search_files", whole, path, MOST_SURVEYED, 0, True]] if pattern else [listed]


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
        ("How many files are in docs/?", [["list_files", "*", "docs", MOST_COUNTED]]),
        ("Where is MAX_SIZE set?", [searched("MAX_SIZE")]),
        ("Who calls readAll and parse_line?", [searched("readAll|parse_line")]),
        ("Which of the docs mention ports?", surveyed("port", "docs")),
        (
            "Where is the struct TidalClock declared?",
            [searched(rf"\b(?:{DECLARES})\b[^=\n]*?\b(?:TidalClock)\b")],
        ),
        ("Does anybody in docs speak Danish?", surveyed("Danish|speak", "docs")),
        ("What is the capital of France?", surveyed("France|capital")),
        ("The shop opens at nine now, please correct that.", surveyed("shop|open|nine")),
        ("What is this?", surveyed("")),
        ("Is there a link to http://a.example?", [searched("http://a\\.example")]),
        ("In colours.css replace red by blue.", [["list_files", "**/colours.css"]]),
        ("Create docs/new.md with a title.", []),
        ("Make a file motto.txt with a motto.", []),
        ("Run app.py with python3.", []),
        ("What does `python3 app.py` print?", []),
        (
            "`python3 app.py` fails. Fix AUTHORS.",
            [["read_file", "app.py"], ["read_file", "AUTHORS"]],
        ),
        ("Delete the file app.py.", []),
        ("Remove the first line of app.py.", [["read_file", "app.py"]]),
        ("What does large.txt say?", [["list_files", "**/large.txt"]]),
        ("What does link.txt say?", [["list_files", "**/link.txt"]]),
        ("Good morning. How are you?", []),
    ],
)
async def test_what_the_words_name_is_looked_at(words: str, calls: list[Any], project: Path):
    assert await calls_for([UserMessage.of(words)], written(project)) == calls


@every_row(
    "words", ["Read /etc/passwd and ../x", "What does /etc/passwd say?", "What is in . here?"]
)
async def test_nothing_outside_is_looked_at(words: str, project: Path):
    calls = await calls_for([UserMessage.of(words)], written(project))
    assert not any(argument in ("/etc/passwd", "../x") for call in calls for argument in call)


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
    assert await calls_for([], roots) == []


@every_row(
    "words, missing",
    [
        ("Make a file motto.txt that says: hello.", ["motto.txt"]),
        ("Create the files docs/plan.md and docs/usage.md.", ["docs/plan.md"]),
        ("In colours.css replace red by blue.", []),
        ("What would a new file x.txt be?", []),
        ("Create /etc/new.conf and ../up.txt", []),
    ],
)
def test_of_a_file_that_is_to_be_made_it_is_said_that_it_is_not_there(
    words: str, missing: list[str], project: Path
):
    said = list(missing_in(words, written(project)))
    assert said == [f"{path} is not there yet: write_file makes it." for path in missing]


async def looks_for(
    words: str, roots: Roots, *outputs: Sequence[str]
) -> tuple[list[Any], Sequence[Message]]:
    """Return the look that comes after looks with these outputs, and the conversation then."""
    messages: list[Message] = [UserMessage.of(words)]
    for step in outputs:
        model = ReadAhead(ScriptedModel([]), roots)
        events = [event async for event in model.stream(Request("", messages, TOOLS))]
        said = events[-1]
        assert isinstance(said, AssistantSaid)
        assert looks_ahead(said.message)
        results = [
            ToolResult(call_id=call.id, name=call.name, output=output)
            for call, output in zip(said.message.calls, step, strict=True)
        ]
        messages += [said.message, *results]
    return await calls_for(messages, roots), messages


LISTED = "AUTHORS\napp.py\ndocs/usage.md\nlarge.txt\nsrc/web/app.ts"


@pytest.mark.integration
@every_row(
    "words, listed, found, calls",
    [
        # The file in which most of the words stand, two that are as good, and a part of a large one.
        (
            "Where do we say that ports are open?",
            LISTED,
            "AUTHORS\n1:\tport\ndocs/usage.md\n1:\tOpen ports\n",
            [["read_file", "docs/usage.md"]],
        ),
        (
            "Who knows Danish?",
            LISTED,
            "AUTHORS\n1:\tDanish\napp.py\n1:\tDanish",
            [["read_file", "AUTHORS"], ["read_file", "app.py"]],
        ),
        (
            "Which colour do we like?",
            LISTED,
            "large.txt\n7:\tcolour",
            [searched(r"\b(?:colour)", "large.txt")],
        ),
        (
            "What is in the large one?",
            LISTED,
            "No matches.",
            [["read_file", "large.txt", MOST_READ_LINES]],
        ),
        # Many that are as good: a question is answered by the lines, a change needs a list.
        (
            "Who knows Danish?",
            "a/1\na/2\na/3",
            "a/1\n1:\tDanish\na/2\n1:\tDanish\na/3\n1:\tDanish",
            [searched(r"\b(?:Danish)", ".")],
        ),
        (
            "Describe our recipes.",
            "recipes/1\nrecipes/2\nrecipes/3",
            "No matches.",
            [["list_files", "*", "recipes"]],
        ),
        # Nothing: a project of two files is read where something is to be changed, for others the model is asked.
        (
            "It does not work. Please fix it.",
            "AUTHORS\napp.py",
            None,
            [["read_file", "AUTHORS"], ["read_file", "app.py"]],
        ),
        ("It does not work. Please fix it.", LISTED, None, []),
        (
            "It does not work. Please fix it.",
            "README.md\napp.py\ntest_app.py\ntests/a.py",
            None,
            [["read_file", "app.py"]],
        ),
        # Where tests fail, the code that they are named after.
        (
            "The tests fail. Find out why and fix it.",
            "README.md\napp.py\nusage.py\ntest_app.py",
            None,
            [["read_file", "app.py"]],
        ),
        (
            "The tests fail. Find out why and fix it.",
            ".x\napp.py\nlib/a.py\nlib/b.py\ntests/app_test.py",
            None,
            [["read_file", "app.py"]],
        ),
        (
            "The tests fail. Find out why and fix it.",
            "app.py\ntests/all.py",
            None,
            [["read_file", "app.py"]],
        ),
        ("Who knows Danish?", "AUTHORS\napp.py", "No matches.", []),
        (
            "Delete the usage page, nobody reads it",
            LISTED,
            "No matches.",
            [["list_files", "**/usage.md", "."]],
        ),
    ],
)
async def test_what_a_survey_has_found_is_read(
    words: str, listed: str, found: str | None, calls: list[Any], project: Path
):
    outputs = [listed] if found is None else [listed, found]
    made, _messages = await looks_for(words, written(project), outputs)
    assert made == calls


@pytest.mark.integration
async def test_a_folder_in_which_nothing_was_found_is_listed(project: Path):
    made, _ = await looks_for(
        "Which of the docs mention harbours?", written(project), ["docs/usage.md", "No matches."]
    )
    assert made == [["list_files", "*", "docs"]]


@pytest.mark.integration
async def test_what_the_project_is_is_read_in_its_readme(project: Path):
    (project / "README.md").write_text("# Harbours\n")
    roots, listed = written(project), ["README.md\napp.py"]
    for words in ("hi, what does this project do?", "What is this repository about?"):
        assert (await looks_for(words, roots, listed))[0] == [["read_file", "README.md"]]
    assert (await looks_for("What is 2 + 2?", roots, listed))[0] == []
    assert (await looks_for("What does this project do?", roots, ["app.py"]))[0] == []


@pytest.mark.integration
async def test_a_file_that_was_found_by_its_name_is_read(project: Path):
    roots, words = written(project), "What does app.ts do?"
    assert (await looks_for(words, roots, ["src/web/app.ts"]))[0] == [
        ["read_file", "src/web/app.ts"]
    ]
    assert (await looks_for(words, roots, ["src/web/app.ts\napp.ts"]))[0] == []
    assert (await looks_for(words, roots, ["No files match."]))[0] == []
    assert (await looks_for("Delete the file app.ts.", roots, ["src/web/app.ts"]))[0] == []


@pytest.mark.integration
async def test_a_name_that_stands_nowhere_as_it_was_searched_for_is_surveyed(project: Path):
    roots, words = written(project), "Where is late_fee defined?"
    assert (await looks_for(words, roots, ["No matches."]))[0] == surveyed("late_fee")
    assert (await looks_for(words, roots, ["app.py\n1:\tdef late_fee():"]))[0] == []
    vain = (["No matches."], ["src/late_fee.py", "No matches."], ["No matches."])
    assert (await looks_for(words, roots, *vain))[0] == []
    vain_and_survey = (["No matches."], ["app.py", "app.py\n3:\tlate_fee = 3"])
    assert (await looks_for(words, roots, *vain_and_survey))[0] == [["read_file", "app.py"]]


async def test_the_model_does_not_see_a_survey_nor_the_search_in_vain_before_it(project: Path):
    looks = (["No matches."], ["app.py", "app.py\n3:\tlate_fee = 3"], ["1\tlate_fee = 3"])
    roots, words = written(project), "Where is late_fee defined?"
    _, messages = await looks_for(words, roots, *looks)
    inner = ScriptedModel(["There.", "Here."])
    again = [
        *messages,
        AssistantMessage(content=(Text(text="There."),)),
        UserMessage.of("Good morning!"),
    ]
    for seen in (messages, again):
        async for _event in ReadAhead(inner, roots).stream(Request("", seen, TOOLS)):
            pass
    told = [[type(m) for m in request.messages] for request in inner.requests]
    assert told == [
        [UserMessage, AssistantMessage, ToolResult],
        [UserMessage, AssistantMessage, ToolResult, AssistantMessage, UserMessage],
    ]
    assert inner.requests[0].messages[2] is messages[-1]


async def test_what_a_look_ahead_was_refused_is_no_path(project: Path):
    roots, words = written(project), "Who knows Danish?"
    _, messages = await looks_for(words, roots, ["Not allowed: AUTHORS.", "Not allowed: Danish."])
    failed = [replace(m, is_error=True) if isinstance(m, ToolResult) else m for m in messages]
    assert await calls_for(failed, roots) == []


async def test_a_sub_agent_reads_what_its_survey_has_found(project: Path):
    """The ids of its calls begin with its name."""
    words = UserMessage.of("Where do we say that ports are open?")
    model = CallIds().naming(ReadAhead(ScriptedModel(["asked"]), written(project)), "explore-1")
    messages: list[Message] = [words]
    outputs = [[LISTED, "docs/usage.md\n1:\tOpen ports"], ["1\tOpen ports"]]
    for step in outputs:
        said = [event async for event in model.stream(Request("", messages, TOOLS))][-1]
        assert isinstance(said, AssistantSaid)
        assert [call.id.startswith("explore-1-ahead_") for call in said.message.calls] == [
            True
        ] * len(step)
        messages.append(said.message)
        for call, output in zip(said.message.calls, step, strict=True):
            messages.append(ToolResult(call_id=call.id, name=call.name, output=output))
    last = [event async for event in model.stream(Request("", messages, TOOLS))][-1]
    assert isinstance(last, AssistantSaid)
    assert last.message.text == "asked"


async def test_no_model_is_sent_a_survey_and_no_room_is_counted_for_it(project: Path):
    roots, words = written(project), "Who knows Danish?"
    _, messages = await looks_for(words, roots, [LISTED, "AUTHORS\n1:\tDanish"], ["1\tDanish"])
    inner = ScriptedModel(["Somebody."])
    async for _event in HidingModel(inner).stream(Request("", messages, TOOLS)):
        pass
    assert [m for m in messages if isinstance(m, ToolResult)][-1:] == [
        m for m in inner.requests[0].messages if isinstance(m, ToolResult)
    ]
    assert without_unseen(inner.requests[0].messages) is inner.requests[0].messages


@every_row("words", ["What is in 'caf\udce9 bar'?", "Run `cat caf\udce9 bar`."])
async def test_half_a_character_is_no_error(words: str, project: Path):
    model = ReadAhead(Guided(ScriptedModel(["asked"]), is_tiny=True), written(project))
    request = Request("", [UserMessage.of(words)], TOOLS)
    events = [event async for event in model.stream(request)]
    assert isinstance(events[-1], AssistantSaid)


def test_hundreds_of_signs_that_are_no_words_are_passed_over_at_once():
    words = "What is " + "-." * 10_000 + "` " * 5_000 + "a" * 20_000
    with takes_at_most(1):
        assert intent_of(words)
        assert paths_in(words)
        terms_in(words)


async def test_a_file_that_stands_behind_the_words_already_is_not_read_ahead(tmp_path: Path):
    roots = written(tmp_path)
    words, attached = Text(text="What does @app.py do?"), Text(text="\n\n[File app.py]\nx")
    part = Text(text="\n\n[File app.py, lines 1-2]\nx")
    assert await calls_for([UserMessage(content=(words, attached))], roots) == []
    for beside in ((), (part,)):
        found = await calls_for([UserMessage(content=(words, *beside))], roots)
        assert found == [["read_file", "app.py"]]
    both = Text(text="Compare @app.py with docs/usage.md.")
    found = await calls_for([UserMessage(content=(both, attached))], roots)
    assert found == [["read_file", "docs/usage.md"]]
