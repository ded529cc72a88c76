"""skill: the instructions of a skill, which the model reads when it needs them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.policy.policy import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.skills.finding import Skills
from ybs.tools.skills.listing import fitting, listing
from ybs.tools.skills.skill import Skill
from ybs.tools.workspace import Workspace


class Arguments(Struct, frozen=True, kw_only=True):
    """What skill takes."""

    name: str


class SkillTool(BuiltInTool):
    """Hands out the instructions, and has tools read the skill's folder from then on."""

    name: str = "skill"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = Arguments

    def __init__(
        self, workspace: Workspace, skills: Skills, open_folder: Callable[[Path], None]
    ) -> None:
        """`open_folder` lets tools read a folder."""
        super().__init__(workspace)
        self._skills, self._open_folder = skills, open_folder

    @property
    def description(self) -> str:
        """The names and descriptions of the skills, within a budget."""
        return f"{super().description}\n{listing(self._skills.offered)}"

    def subject(self, arguments: Arguments) -> Subject:
        """Say that there is nothing to judge: the person has put the skills there, or trusts them."""
        del arguments
        return Subject(is_plain=True)

    def preview(self, arguments: Arguments) -> Preview:
        """Show the name."""
        return Preview(title=f"Load the skill {self._named(arguments.name).name}")

    async def run(self, arguments: Arguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Read it."""
        del print_live
        skill = self._named(arguments.name)
        most = self.workspace.max_output_chars
        text = await asyncio.to_thread(skill.instructions, most_chars=most)
        if not skill.in_project:
            self._open_folder(skill.folder)
        return ToolOutput(output=text, summary=skill.name)

    def _named(self, name: str) -> Skill:
        skills = {skill.name: skill for skill in self._skills.offered}
        wanted = name.strip().lower().replace("_", "-")
        if wanted in skills:
            return skills[wanted]
        found = fitting(name, list(skills.values()))
        fits = "\n".join(f"- {each.name}: {each.description}" for each in found)
        raise ToolError(
            f"There is no skill {name!r}. "
            + (f"These may fit:\n{fits}" if found else "None fits these words.")
        )
