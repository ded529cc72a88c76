"""Rules for files, as the file tools meet them: what denies or asks means a file in every spelling, what allows by its path alone."""

from pathlib import Path
from typing import Any

import pytest

from rows import every_row
from tools.conftest import Bench, MakeBench
from ybs.config.schema import Config, Mode, SafetySettings
from ybs.core.hooks import CallHook, CallToJudge, CallVerdict
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Preview, Question

pytestmark = pytest.mark.integration

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {}),
    ("write_file", {"content": "new"}),
    ("edit_file", {"old_text": "live", "new_text": "new"}),
    ("delete_file", {}),
    ("list_files", {"pattern": "*"}),
    ("search_files", {"pattern": "live"}),
]


@pytest.fixture
def ruled(make_bench: MakeBench, project: Path):
    (project / "releases/5").mkdir(parents=True)
    (project / "releases/5/settings").write_text("live")
    (project / "current").symlink_to("releases/5")

    def make(mode: Mode = "bypass", **rules: tuple[str, ...]) -> Bench:
        return make_bench(config=Config(safety=SafetySettings(**rules)), mode=mode)

    return make


@every_row(
    "pattern",
    [
        "releases",
        "releases/",
        "current/**",
        "~/x/releases/**",
        "{}/releases",
        "{}/current/settings",
    ],
)
@pytest.mark.parametrize("asked", ["current/settings", "releases/4/../5/settings"])
async def test_a_rule_that_denies_holds_every_file_tool(
    ruled: Any, project: Path, home: Path, pattern: str, asked: str
):
    (home / "x").unlink(missing_ok=True)
    (home / "x").symlink_to(project)
    pattern = pattern.replace("{}", str(project))
    bench = ruled(deny=tuple(f"{name}({pattern})" for name, _ in CALLS))
    for name, more in CALLS:
        answered = await bench.call(name, path=asked, **more)
        assert answered.result.is_refused, (name, answered.output)
        assert f"{name}({pattern}) of safety.deny forbids this call" in answered.output
    assert (project / "releases/5/settings").read_text() == "live"
    (home / "x").unlink()


async def test_a_link_that_is_deleted_is_meant_itself(ruled: Any, project: Path):
    (project / "link").symlink_to("releases/5/settings")
    bench = ruled(deny=("delete_file(releases)", "write_file(releases)"))
    assert (await bench.call("write_file", path="link", content="x")).result.is_refused
    await bench.ok("delete_file", path="link")
    assert (project / "releases/5/settings").read_text() == "live"


async def test_a_rule_that_asks_means_every_spelling_and_nothing_else(ruled: Any, project: Path):
    asked: list[Question] = []

    async def confirm(question: Question) -> Answer:
        asked.append(question)
        return Answer(is_allowed=True)

    bench = ruled("auto", ask=("write_file(current)",))
    bench.gate.confirm = confirm
    for path in ("current/a", "releases/5/b", "a", "releases/6/c"):
        await bench.ok("write_file", path=path, content="x")
    assert [each.preview.paths for each in asked] == [
        (f"{project}/releases/5/a",),
        (f"{project}/releases/5/b",),
    ]


async def test_a_rule_that_allows_goes_by_the_path_alone(ruled: Any):
    for rule, is_allowed in (
        ("releases/**", True),
        ("current/**", False),
        ("releases", False),
        ("~/x/**", False),
    ):
        bench = ruled("ask", allow=(f"write_file({rule})",))
        answered = await bench.call("write_file", path="current/settings", content="live")
        assert answered.result.is_refused is not is_allowed, rule


class Swap(CallHook):
    """It has the link lead elsewhere after the tool has looked at it."""

    def __init__(self, link: Path, target: str) -> None:
        self.link, self.target, self.told = link, target, Preview(title="")

    async def judge(self, case: CallToJudge) -> CallVerdict:
        self.told = case.preview
        self.link.unlink()
        self.link.symlink_to(self.target)
        return CallVerdict()

    async def look_at(self, call: ToolCall, result: ToolResult) -> ToolResult:
        return result


async def test_a_judge_is_told_the_path_that_the_tool_uses(make_bench: MakeBench, project: Path):
    for folder in ("a", "b"):
        (project / folder).mkdir()
        (project / folder / "x").write_text("old")
    for name, more in CALLS:
        link = project / "link"
        link.unlink(missing_ok=True)
        link.symlink_to("a")
        swap = Swap(link, "b")
        bench = make_bench(hooks=[swap])
        (project / "a/x").write_text("live")
        await bench.ok("read_file", path="a/x")
        link.unlink()
        link.symlink_to("a")
        await bench.call(name, path="link/x", **more)
        assert swap.told.paths == (f"{project}/a/x",), name
        assert (project / "b/x").read_text() == "old", name
