"""Skills and kinds of plugins have the plugin's name before their own, so that those of one name stay beside each other."""

from pathlib import Path

import pytest

from conductor_cast import Cast, delegated, opened, results
from hosts import this_host
from tools.skills.folders import OWN, skill
from trusting import put
from ybs.cli import main
from ybs.commands.open import SlashCommands
from ybs.commands.registry import command_at, commands_of
from ybs.core.messages import ToolResult, UserMessage
from ybs.session.session import Session
from ybs.testing import ScriptedModel, call

pytestmark = pytest.mark.integration


def added(tmp_path: Path, name: str, *, kinds: int = 1) -> Path:
    """Add a plugin with the skill `vat` and kinds of sub-agents, the first one in a folder within the folder."""
    folder = tmp_path / name
    skill(folder / "skills", "vat", f"VAT by {name}: ${{CLAUDE_PLUGIN_ROOT}}/rates.md")
    put(folder, "rates.md", f"rates of {name}")
    for number in range(kinds):
        place = "agents/deep/auditor" if number == 0 else f"agents/auditor-{number}"
        description = f"Audits by {name}, number {number}. " + "It does it with care. " * 15
        text = f"---\nname: {Path(place).name}\ndescription: {description}\n---\nAudit by {name}."
        put(folder, f"{place}.md", text)
    put(folder, "agents/README.md", "Not a kind.")
    assert main(["plugin", "add", str(folder), "--yes"]) == 0
    return this_host().config_folder / "plugins" / name


async def test_skills_of_one_name_stay_beside_each_other(project: Path, home: Path, tmp_path: Path):
    one, two = added(tmp_path, "one"), added(tmp_path, "two")
    skill(home / OWN, "vat", "My VAT.")
    model = ScriptedModel(
        [
            call("skill", name="two:vat"),
            call("read_file", path=str(two / "rates.md")),
            call("skill", name="vat"),
            "Done.",
            "Yes.",
            "Yes.",
        ]
    )
    session = Session.open(project, host=this_host(), model=model, commands=SlashCommands())
    async with session:
        assert [*session.environment.skills.by_name] == ["vat", "one:vat", "two:vat"]
        assert not session.environment.skills.unusable
        await session.send("Go on.")
        outputs = [
            each.output for each in model.requests[-1].messages if isinstance(each, ToolResult)
        ]
        assert outputs[0].startswith(f"VAT by two: {two}/rates.md")
        assert "rates of two" in outputs[1]
        assert outputs[2].startswith("My VAT.")
        named = [each.names for each in commands_of(session) if "vat" in each.names[-1]]
        assert named == [("vat",), ("one:vat",), ("two:vat",)]
        await session.handle("/one:vat")
        said = [each.words for each in model.requests[-1].messages if isinstance(each, UserMessage)]
        assert said[-1].startswith(f"VAT by one: {one}/rates.md")


async def test_a_skill_is_found_without_the_plugins_name(project: Path, tmp_path: Path):
    added(tmp_path, "one")
    session = Session.open(project, host=this_host(), model=ScriptedModel([]), commands=SlashCommands())  # fmt: skip
    async with session:
        skill = session.environment.skills.find("vat")
        assert skill is not None
        assert skill.name == "one:vat"
        command = command_at("/vat", session)
        assert command is not None
        assert command.names == ("vat", "one:vat")


async def test_all_kinds_are_known_however_many_there_are(project: Path, tmp_path: Path):
    added(tmp_path, "one", kinds=20)
    added(tmp_path, "two", kinds=20)
    cast = Cast(
        [delegated({"task": "look", "kind": "two:auditor"}, {"task": "see", "kind": "AUDITOR"}),
         delegated({"task": "hear", "kind": "audit number 13"}), "done"],
        look=["Seen by two."],
        see=["Seen by one."],
    )  # fmt: skip
    session, events = opened(project, cast.model)
    async with session:
        await session.send("go")
    (spec,) = [each for each in cast.requests["main"][0].tools if each.name == "delegate"]
    names = [f"{plugin}:auditor{f'-{n}' * bool(n)}" for plugin in ("one", "two") for n in range(20)]
    told = [line.removeprefix("- ").rpartition(": ")[0] for line in spec.description.splitlines()]
    assert sorted(told[1:]) == sorted(names)
    assert len(spec.description) < 3_500
    assert cast.requests["look"][0].system.endswith("Audit by two.")
    assert cast.requests["see"][0].system.endswith("Audit by one.")
    first, second = results(events)
    assert first.output.startswith("[auditor-1: done")
    assert "- one:auditor-13: Audits by one, number 13." in second.output


async def test_a_rule_holds_for_every_name_of_a_kind(project: Path, tmp_path: Path):
    added(tmp_path, "one")
    asked = [delegated({"task": "look", "kind": kind}) for kind in ("auditor", "one:auditor", "general-purpose")]  # fmt: skip
    cast = Cast([*asked, "done"], look=["Seen."])
    session, events = opened(
        project, cast.model, deny=["delegate(one:auditor)", "delegate(general)"]
    )
    async with session:
        await session.send("go")
    assert [each.is_refused for each in results(events)] == [True] * 3
    assert not cast.requests["look"]
