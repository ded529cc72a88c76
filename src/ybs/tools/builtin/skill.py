"""skill: the instructions of a skill, which the model reads when it needs them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

from msgspec import Struct

from ybs.core.errors import ToolError
from ybs.core.ports import Effect, Preview, ToolOutput
from ybs.security.policy.case import Subject
from ybs.tools.builtin.base import BuiltInTool
from ybs.tools.builtin.delegate import Delegates, call_of, task_of
from ybs.tools.listing import listing, unknown
from ybs.tools.skills import Skill, Skills, named
from ybs.tools.workspace import Workspace


class SkillArguments(Struct, frozen=True, kw_only=True):
    """What skill takes."""

    name: str
    arguments: str = ""


class SkillTool(BuiltInTool):
    """Hands out the instructions, and has tools read the skill's folder from then on. Where a skill asks for it, a sub-agent follows them."""

    name: str = "skill"
    effect: Effect = "read"
    arguments: ClassVar[type[Struct]] = SkillArguments
    #: A sub-agent has its own limits, which end it.
    longest_seconds: Final = 86_400.0

    def __init__(
        self,
        workspace: Workspace,
        skills: Skills,
        open_folder: Callable[[Path], None],
        agents: Delegates | None = None,
    ) -> None:
        """`open_folder` lets tools read a folder; `agents` start sub-agents."""
        super().__init__(workspace)
        self._skills, self._open_folder, self._agents = skills, open_folder, agents

    @property
    def description(self) -> str:
        """The names and descriptions of the skills, within a budget."""
        return f"{super().description}\n{listing(self._skills.offered)}"

    def subject(self, arguments: SkillArguments) -> Subject:
        """Say that there is nothing to judge: the person has put the skills there, or trusts them."""
        del arguments
        return Subject(is_plain=True)

    def preview(self, arguments: SkillArguments) -> Preview:
        """Show the name."""
        return Preview(title=f"Load the skill {self._named(arguments.name).name}")

    async def run(self, arguments: SkillArguments, print_live: Callable[[str], None]) -> ToolOutput:
        """Read it, or have a sub-agent follow it."""
        skill = self._named(arguments.name)
        most = self.workspace.max_output_chars
        text = await asyncio.to_thread(skill.instructions, arguments.arguments, most_chars=most)
        if not skill.in_project:
            self._open_folder(skill.opened)
        if skill.fork is None or self._agents is None:
            return ToolOutput(output=text, summary=skill.name)
        task = task_of(text, skill.fork, is_own=skill.is_own)
        return await self._agents.delegate((task,), call_of(print_live))

    def _named(self, name: str) -> Skill:
        offered = self._skills.offered
        if (skill := named(offered, name)) is None:
            raise ToolError(unknown("skill", name, offered))
        return skill
