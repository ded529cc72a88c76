"""Many tools of others: found when they are needed, and no burden before."""

import json
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from ybs.core.messages import ToolCall
from ybs.core.ports import ToolSpec
from ybs.testing import ScriptedToolbox
from ybs.tools.composite import NAME, DeferredToolbox, fitting

SCHEMA = Raw(json.dumps({"type": "object", "properties": {"path": {"description": "x" * 60}}}).encode())  # fmt: skip


class Many(ScriptedToolbox):
    """Tools that are called so, each with a schema."""

    def __init__(self, names: list[str]) -> None:
        super().__init__({name: f"{name} ran" for name in names})
        self.names_now = names
        self._made: list[ToolSpec] = []

    def specs(self) -> list[ToolSpec]:
        if [spec.name for spec in self._made] != self.names_now:
            self._made = [
                ToolSpec(name=name, description=f"Do {name.replace('_', ' ')}s.", parameters=SCHEMA)
                for name in self.names_now
            ]
        return self._made


async def run(toolbox: DeferredToolbox, name: str, **arguments: Any) -> str:
    call = ToolCall(id="1", name=name, arguments=Raw(json.dumps(arguments).encode()))
    return (await toolbox.run(call, lambda _: None)).output


def offered(toolbox: DeferredToolbox) -> list[str]:
    return [spec.name for spec in toolbox.specs()]


async def test_a_few_are_offered_as_they_are():
    toolbox = DeferredToolbox([Many(["one", "two"])])
    assert offered(toolbox) == ["one", "two"]
    assert toolbox.specs() is toolbox.specs()
    assert not toolbox.knows(NAME)
    assert await run(toolbox, "two") == "two ran"


async def test_of_many_those_that_were_found_are_offered_from_then_on():
    many = Many([f"tool_{number}" for number in range(60)] + ["send_mail", "read_mail"])
    toolbox = DeferredToolbox([many])
    before = toolbox.specs()
    assert offered(toolbox) == [NAME]
    assert "tool_0, tool_1," in before[0].description
    assert toolbox.is_read_only(ToolCall(id="1", name=NAME, arguments=Raw(b"{}")))
    said = await run(toolbox, NAME, query="mails")
    assert said.startswith('send_mail: Do send mails.\n{"type": "object"')
    assert offered(toolbox) == [NAME, "send_mail", "read_mail"]
    assert toolbox.specs()[0] == before[0]
    assert await run(toolbox, "tool_7") == "tool_7 ran"  # known all the same
    assert offered(toolbox) == [NAME, "send_mail", "read_mail", "tool_7"]
    many.names_now = ["tool_7", *(f"other_{number}" for number in range(60))]
    assert offered(toolbox) == [NAME, "tool_7"]


async def test_what_makes_no_sense_is_said():
    toolbox = DeferredToolbox([Many([f"tool_{number}" for number in range(60)])])
    assert "takes a query" in await run(toolbox, NAME, words="x")
    assert await run(toolbox, NAME, query="weather") == (
        "No tool fits. Their names stand in the description of find_tool."
    )
    assert "tool_61" in await run(toolbox, "tool_61")


def test_a_name_counts_more_than_a_description():
    made = {"grep": "Search the issues.", "list_issues": "List them.", "closeIssue": "Close one."}
    tools = [
        ToolSpec(name=name, description=text, parameters=SCHEMA) for name, text in made.items()
    ]
    assert [spec.name for spec in fitting("issue", tools)] == ["list_issues", "closeIssue", "grep"]
    assert [spec.name for spec in fitting("call grep please", tools)] == ["grep"]
    assert fitting("", [replace(tools[0], name="x")]) == []


def test_the_names_of_very_many_are_cut():
    toolbox = DeferredToolbox(
        [Many([f"a_tool_with_a_long_name_{number}" for number in range(500)])]
    )
    (finder,) = toolbox.specs()
    assert len(finder.description) < 3_200
    assert finder.description.endswith("… (call it with words to find others)")
