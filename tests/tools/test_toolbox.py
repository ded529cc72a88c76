"""The toolbox: it finds, checks, confirms, runs and cuts, and never raises."""

import asyncio
import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from msgspec import Raw, Struct

from hosts import this_host
from rows import every_row
from ybs.config.schema import BuiltinToolSettings, Config, SafetySettings, ToolsSettings
from ybs.core.errors import Refused, ToolError
from ybs.core.events import ConfirmationAsked, Noticed, ToolPrinted
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Effect, Preview, Question, ToolOutput
from ybs.core.schema import schema_of
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.tools.registry import builtin_tools
from ybs.tools.toolbox import LocalToolbox
from ybs.trust.project_rules import ProjectRules

NAMES = [
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search_files",
    "run_shell",
    "delete_file",
]


class NoArguments(Struct):
    pass


class Odd:
    """A tool of somebody else: it does what the test says."""

    name: str = "odd"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = NoArguments
    parameters = schema_of(NoArguments)
    description = "Odd."

    def __init__(self, act: Callable[[], ToolOutput]) -> None:
        self.act = act

    def preview(self, arguments: Any) -> Preview:
        return Preview(title="odd")

    async def run(self, arguments: Any, print_live: Callable[[str], None]) -> ToolOutput:
        print_live("live")
        return self.act()


async def run_odd(act: Callable[[], ToolOutput], **options: Any):
    events: list[Any] = []
    toolbox = LocalToolbox([Odd(act)], Gate(Policy(SafetySettings())), **options)
    return await toolbox.run(ToolCall(id="7", name="odd"), events.append), events


def raising(error: BaseException) -> Callable[[], ToolOutput]:
    def act() -> ToolOutput:
        raise error

    return act


def size_of(toolbox: LocalToolbox) -> int:
    specs = [
        {"name": s.name, "description": s.description, "parameters": s.parameters}
        for s in toolbox.specs()
    ]
    return len(msgspec.json.encode(specs))


def test_the_seven_tools_come_in_a_stable_order_and_are_small(bench: Any):
    assert [spec.name for spec in bench.toolbox.specs() if spec.name in NAMES] == NAMES
    assert bench.toolbox.specs() is bench.toolbox.specs()
    assert size_of(bench.toolbox) <= 3600


def test_the_schemas_have_the_names_and_defaults_of_the_specification(bench: Any):
    schemas = {spec.name: msgspec.json.decode(spec.parameters) for spec in bench.toolbox.specs()}
    empty = {
        "boolean": False,
        "string": "",
    }  # of an argument that is not required: it goes without saying
    defaults = {
        name: {
            field: None
            if field in schema["required"]
            else line.get("default", empty.get(line["type"]))
            for field, line in schema["properties"].items()
        }
        for name, schema in schemas.items()
        if name in NAMES
    }
    specified: dict[str, dict[str, Any]] = {
        "read_file": {"path": None, "offset": 1, "limit": 500},
        "write_file": {"path": None, "content": None},
        "edit_file": {"path": None, "old_text": None, "new_text": None, "replace_all": False},
        "list_files": {"pattern": None, "path": ".", "max_results": 100},
        "search_files": {
            "pattern": None,
            "path": ".",
            "file_pattern": "",
            "context_lines": 2,
            "max_results": 50,
        },
        "run_shell": {"command": None, "working_dir": "", "timeout": 60},
        "delete_file": {"path": None},
    }
    for name, fields in specified.items():
        assert fields.items() <= defaults[name].items(), name
    required = [schemas[name]["required"] for name in NAMES]
    assert required == [
        ["path"],
        ["path", "content"],
        ["path", "old_text", "new_text"],
        ["pattern"],
        ["pattern"],
        ["command"],
        ["path"],
    ]


def test_the_short_form_is_small_and_without_the_rare(make_bench: Any):
    toolbox = make_bench(is_short=True).toolbox
    names = [spec.name for spec in toolbox.specs()]
    assert names == NAMES, (
        "a tool that small models can do without belongs to RARE in tools/registry.py"
    )
    assert size_of(toolbox) <= 1500
    assert b"max_results" not in msgspec.json.encode([spec.parameters for spec in toolbox.specs()])


def test_the_short_form_of_another_tool_is_its_usual_one():
    toolbox = LocalToolbox((), Gate(Policy(SafetySettings())))
    toolbox.offer([Odd(raising(ToolError("x")))], is_short=True)
    assert toolbox.specs()[0].description == "Odd."


def test_a_tool_that_is_switched_off_is_not_there(make_bench: Any):
    builtin = {"run_shell": BuiltinToolSettings(enabled=False), "list_files": BuiltinToolSettings()}
    bench = make_bench(config=Config(tools=ToolsSettings(builtin=builtin)))
    assert "run_shell" not in [spec.name for spec in bench.toolbox.specs()]
    assert "list_files" in [spec.name for spec in bench.toolbox.specs()]


def test_only_reading_tools_are_read_only(bench: Any):
    read_only = [name for name in NAMES if bench.toolbox.is_read_only(ToolCall(id="1", name=name))]
    assert read_only == ["read_file", "list_files", "search_files"]
    assert not bench.toolbox.is_read_only(ToolCall(id="1", name="unknown"))


async def test_an_unknown_tool_is_an_error_with_the_near_names(bench: Any):
    assert "Did you mean read_file" in await bench.fails("reed_file")
    output = await bench.fails("xyzzy")
    assert "Did you mean" not in output
    assert "search_files" in output


async def test_no_tools_at_all_is_said():
    toolbox = LocalToolbox([], Gate(Policy(SafetySettings())))
    result = await toolbox.run(ToolCall(id="1", name="x"), lambda event: None)
    assert "none" in result.output


@every_row("error, is_refused", [(ToolError("no such thing"), False), (Refused("not there"), True)])
async def test_a_tools_own_error_is_a_result_and_a_refusal_where_it_says_so(error, is_refused):
    result, _ = await run_odd(raising(error))
    assert (result.output, result.is_error, result.is_refused) == (str(error), True, is_refused)
    assert msgspec.json.decode(result.display) == {"success": False, "error": str(error)}


async def test_a_bug_in_a_tool_is_a_result_and_is_logged(monkeypatch: pytest.MonkeyPatch):
    logged = io.StringIO()
    monkeypatch.setattr(logging.getLogger("ybs"), "handlers", [logging.StreamHandler(logged)])
    result, _ = await run_odd(raising(ZeroDivisionError("by zero")))
    assert result.is_error
    assert "ZeroDivisionError: by zero" in result.output
    assert "Traceback" in logged.getvalue()


async def test_a_display_that_cannot_be_encoded_is_a_bug_too():
    result, _ = await run_odd(lambda: ToolOutput(output="x", display=object()))
    assert "TypeError" in result.output


@pytest.mark.integration
async def test_a_result_has_all_that_the_tool_said_and_its_time():
    output = ToolOutput(output="text", summary="sum", display={"a": 1}, is_error=True)
    result, events = await run_odd(lambda: output)
    assert (result.call_id, result.name, result.output, result.summary) == (
        "7",
        "odd",
        "text",
        "sum",
    )
    assert result.is_error
    assert bytes(result.display) == b'{"a":1}'
    assert 0 < result.duration_seconds < 5
    assert events == [ToolPrinted(id="7", text="live")]


async def test_a_long_result_is_cut_in_the_middle():
    result, _ = await run_odd(lambda: ToolOutput(output="a" * 50_000 + "z"), max_output_chars=1000)
    assert len(result.output) <= 1000
    assert result.output.startswith("a")
    assert result.output.endswith("z")
    assert "left out" in result.output


async def test_remarks_about_the_arguments_reach_the_model_even_if_the_result_is_cut(
    make_bench: Any, project: Path
):
    (project / "a.txt").write_text("line\n" * 1000)
    bench = make_bench(max_output_chars=500)
    answered = await bench.ok("read_file", path="a.txt", colour="red")
    assert "'colour' is not an argument of read_file" in answered.output
    assert len(answered.output) <= 500


async def test_a_refusal_is_marked_and_gives_the_persons_reason(make_bench: Any, project: Path):
    async def no(question: Question) -> Answer:
        return Answer(is_allowed=False, reason="not now")

    bench = make_bench(mode="ask", confirm=no)
    answered = await bench.call("write_file", path="a", content="x")
    assert answered.result.is_refused
    assert answered.result.is_error
    assert answered.output == "Refused: not now"
    assert not (project / "a").exists()


async def test_the_question_holds_the_difference(make_bench: Any, project: Path):
    questions: list[Question] = []

    async def yes(question: Question) -> Answer:
        questions.append(question)
        return Answer(is_allowed=True)

    (project / "a").write_text("old\n")
    bench = make_bench(mode="ask", confirm=yes)
    answered = await bench.ok("write_file", path="a", content="new\n")
    assert questions[0].preview.title == "Overwrite a (+1 -1)"
    assert questions[0].preview.body == "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new"
    assert questions[0].preview.paths == (str(project / "a"),)
    assert questions[0].grant == "write_file(**)"
    assert isinstance(answered.events[0], ConfirmationAsked)


async def test_no_name_reads_as_words_of_the_question(make_bench: Any, project: Path):
    titles: list[str] = []

    async def no(question: Question) -> Answer:
        titles.append(question.preview.title)
        return Answer(is_allowed=False)

    name = "notes.txt in a copy that ybs throws away"
    (project / name).write_text("old\n")
    bench = make_bench(mode="ask", confirm=no)
    await bench.call("write_file", path=name, content="new\n")
    await bench.call("delete_file", path=name)
    assert titles == [f"Overwrite '{name}' (+1 -1)", f"Delete '{name}'"]


async def test_a_call_that_cannot_work_is_not_asked_about(make_bench: Any, project: Path):
    bench = make_bench(mode="ask")  # nobody to ask: asking would refuse
    assert "does not exist" in await bench.fails("edit_file", path="a", old_text="x", new_text="y")
    assert "outside the folders that ybs may work in" in await bench.fails(
        "write_file", path="../a", content="x"
    )
    assert "does not exist" in await bench.fails("delete_file", path="a")
    assert "empty" in await bench.fails("run_shell", command=" ")


async def test_a_dry_run_checks_and_shows_but_does_nothing(make_bench: Any, project: Path):
    bench = make_bench(dry_run=True, mode="ask")
    answered = await bench.ok("write_file", path="a", content="x\n")
    assert answered.output.startswith(
        "Not executed (dry run). It would: Create a (+1 -0)\n--- /dev/null"
    )
    assert not (project / "a").exists()
    (project / "b").write_text("b")
    assert (
        await bench.ok("read_file", path="b")
    ).output == "Not executed (dry run). It would: Read b"
    assert "do not fit" in await bench.fails("write_file", path="a")


async def test_a_tool_without_a_subject_is_judged_by_its_name(project: Path):
    class Writer(Odd):
        effect: Effect = "write"

    toolbox = LocalToolbox([Writer(lambda: ToolOutput(output="x"))], Gate(Policy(SafetySettings())))
    result = await toolbox.run(ToolCall(id="1", name="odd"), lambda event: None)
    assert result.is_refused


async def test_an_edit_asks_only_until_the_file_was_read(make_bench: Any, project: Path):
    (project / "a").write_text("one\n")
    bench = make_bench(mode="ask")
    answered = await bench.call("edit_file", path="a", old_text="one", new_text="two")
    assert answered.result.is_refused
    await bench.ok("read_file", path="a")
    await bench.ok("edit_file", path="a", old_text="one", new_text="two")


@pytest.mark.integration
async def test_calls_side_by_side_do_not_mix(bench: Any, project: Path):
    for name in "abcdef":
        (project / name).write_text(name * 3)
    answers = await asyncio.gather(*(bench.ok("read_file", path=name) for name in "abcdef"))
    assert [answer.output for answer in answers] == [f"1\t{name * 3}" for name in "abcdef"]


def test_the_registry_gives_the_shell_its_configured_time(bench: Any):
    tools = ToolsSettings(builtin={"run_shell": BuiltinToolSettings(timeout_seconds=5)})
    shell: Any = builtin_tools(Config(tools=tools), bench.workspace)[5]
    assert shell.default_seconds == 5
    assert Raw(bench.toolbox.specs()[0].parameters)


async def test_remarks_cannot_make_a_result_longer_than_allowed(make_bench: Any, project: Path):
    (project / "a").write_text("xx " * 170)
    names = {f"{number}{'x' * 100_000}": 1 for number in range(9)}
    answered = await make_bench(max_output_chars=600).ok("read_file", path="a", **names)
    assert len(answered.output) <= 600
    assert answered.output.startswith("1\txx")


async def test_a_kept_rule_that_does_not_count_is_told_of_once_though_nobody_is_asked(project):
    ProjectRules(this_host(), project).add("allow", "odd(")
    policy = Policy(SafetySettings(), project=ProjectRules(this_host(), project))
    toolbox, events = LocalToolbox([Odd(lambda: ToolOutput(output="x"))], Gate(policy)), list[Any]()
    for number in "12":
        result = await toolbox.run(ToolCall(id=number, name="odd"), events.append)
        assert (result.output, result.is_error) == ("x", False)
        (told,) = [event.text for event in events if isinstance(event, Noticed)]
        assert "A rule that is kept for this project is ignored" in told
