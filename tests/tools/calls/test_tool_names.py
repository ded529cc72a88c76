"""Tool names as models really write them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from rows import every_row
from ybs.config.schema import Config
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Question
from ybs.security.policy.confirm import Gate
from ybs.security.policy.policy import Policy
from ybs.tools.calls.tool_names import find, near, short, unknown
from ybs.tools.toolbox import LocalToolbox


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


NAMES = ("read_file", "write_file", "edit_file", "list_files", "search_files", "run_shell")
TOOLS: Any = {name: Named(name) for name in (*NAMES, "delete_file", "readTwice", "read_twice")}


@every_row(
    ("written", "meant"),
    [
        ("readFile", "read_file"),
        ("Read_File", "read_file"),
        ("read-file", "read_file"),
        ("functions.read_file", "read_file"),
        ("default_api.readFile", "read_file"),
        (" read_file ", "read_file"),
        ("read_file<|channel|>json", "read_file"),
        ("read_file()", "read_file"),
        ("bash", "run_shell"),
        ("Bash", "run_shell"),
        ("grep", "search_files"),
        ("ls", "list_files"),
        ("glob", "list_files"),
        ("cat", "read_file"),
        ("view", "read_file"),
        ("str_replace", "edit_file"),
        ("create_file", "write_file"),
    ],
)
def test_other_spellings_and_other_agents_names_are_understood(written: str, meant: str):
    found = find(written, TOOLS)
    assert found is not None
    assert found.tool.name == meant
    assert meant in found.note


@every_row(
    "written", ["", "ReadTwice", "xyzzy", "files.read_file", "files.edit_file", "read", "日本"]
)
def test_what_is_unclear_is_not_understood(written: str):
    tools = {name: tool for name, tool in TOOLS.items() if name != "read_file"}
    assert find(written, tools) is None


def test_a_tools_own_name_wins_over_what_it_could_also_mean():
    tools: Any = {"bash": Named("bash"), "run_shell": Named("run_shell"), "Grep": Named("Grep")}
    assert find("bash", tools) == find("bash", {"bash": tools["bash"]})
    found = find("grep", tools | {"search_files": Named("search_files")})
    assert found is not None
    assert found.tool.name == "Grep"


def test_an_answer_about_an_unknown_tool_stays_short():
    many: Any = {f"server_{number}_{'x' * 50}": Named("x") for number in range(500)}
    assert len(unknown("y" * 1_000_000, many)) < 2_000
    assert len(short("y" * 1_000_000)) < 200
    assert "Did you mean edit_file?" in unknown("replace", TOOLS)


def test_at_most_two_names_that_come_near_are_told():
    names = ["job_one", "job_two", "job_six"]
    assert unknown("job_on", names).count(" or ") == 1
    assert len(near("job_on", names)) == 2
    assert near("raed_file", NAMES)[0] == "read_file"
    assert near("qqqq", NAMES) == []
    assert near("READ-FILE", NAMES) == ["read_file"]
    assert near("bash", NAMES) == ["run_shell"]


async def run(bench: Any, name: str, **arguments: Any) -> Any:
    return await bench.send(
        ToolCall(id="1", name=name, arguments=Raw(msgspec.json.encode(arguments)))
    )


async def test_an_alias_that_reads_runs_with_a_note(bench: Any, project: Path):
    (project / "a").write_text("one\n")
    answered = await run(bench, "cat", file_path="a")
    assert answered.output.startswith("1\tone")
    assert "there is no tool 'cat'; it was taken for read_file" in answered.output
    assert answered.result.name == "cat"


async def test_an_alias_that_writes_runs_only_if_its_arguments_are_exact(bench: Any, project: Path):
    refused = await run(bench, "create_file", file_path="a", content="x")
    assert refused.result.is_error
    assert "Did you mean write_file?" in refused.output
    assert not (project / "a").exists()
    answered = await run(bench, "create_file", path="a", content="x")
    assert not answered.result.is_error
    assert "it was taken for write_file" in answered.output
    assert (project / "a").read_text() == "x"


async def test_another_spelling_that_writes_runs_with_repaired_arguments(bench: Any, project: Path):
    answered = await run(bench, "functions.writeFile", filePath="a", content="x")
    assert not answered.result.is_error
    assert (project / "a").read_text() == "x"


@pytest.mark.parametrize("name", ["create_file", "WriteFile"])
async def test_rules_and_questions_are_about_the_tool_that_runs(name: str, make_bench: Any):
    questions: list[Question] = []

    async def no(question: Question) -> Answer:
        questions.append(question)
        return Answer(is_allowed=False)

    bench = make_bench(mode="ask", confirm=no)
    answered = await run(bench, name, path="a", content="x")
    assert answered.result.is_refused
    assert questions[0].call.name == "write_file"
    assert questions[0].grant == "write_file(**)"


async def test_a_deny_rule_holds_for_every_name_of_a_tool(bench: Any, project: Path):
    gate = Gate(Policy(Config().safety, deny=("run_shell",), allow=("bash", "run_shell")))
    box = LocalToolbox(bench.tools, gate)
    for name in ("bash", "runShell", "functions.run_shell"):
        call = ToolCall(id="1", name=name, arguments=Raw(b'{"command":"true"}'))
        result = await box.run(call, lambda event: None)
        assert result.is_refused
        assert "rule run_shell given at the start" in result.output


async def test_a_question_shows_the_arguments_as_they_were_understood(make_bench: Any):
    questions: list[Question] = []

    async def no(question: Question) -> Answer:
        questions.append(question)
        return Answer(is_allowed=False)

    bench = make_bench(mode="ask", confirm=no)
    await run(bench, "run_shell", cmd="touch a", timeout="5")
    assert msgspec.json.decode(questions[0].call.arguments)["command"] == "touch a"


def test_reading_is_judged_by_the_tool_that_runs(bench: Any):
    def reads(name: str) -> bool:
        return bench.toolbox.is_read_only(ToolCall(id="1", name=name))

    assert all(map(reads, ("cat", "grep", "readFile", "functions.list_files")))
    assert not any(map(reads, ("bash", "create_file", "editFile", "xyzzy")))
