"""Kinds of sub-agents: their purpose, their tools and limits, and their prompt.

What a name of a tool means, with `*` or without, the rules of the policy say: no kind has a reading of its own.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Final

from msgspec import Struct

from ybs.conductor.budget import Budget
from ybs.config.sections import AcpAgent
from ybs.security.policy.bound import BoundMode
from ybs.security.policy.rules import Rule

#: What only reads.
READING: Final = ("read_file", "list_files", "search_files", "repo_map", "skill")


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of sub-agents. `tools` are the most that it may have (None: all of its parent's), `without` those that it may not; `mode` narrows what they may do.

    `name` is `PLUGIN:NAME` for one of a plugin. `prompt` is what it is told of its part. `place` is its file; empty of a built-in one. `is_own`: it is one of the person's own,
    so that the model it names may be anywhere. `acp`: an agent of this kind is another program, which has tools and a model of its own.
    """

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    mode: BoundMode | None = None
    model: str = ""
    budget: Budget = Budget()
    place: str = ""
    is_own: bool = False
    acp: AcpAgent | None = None

    def only_tools(self, wanted: Container[str]) -> Container[str] | None:
        """Return the names of the allowed tools, restricted to `wanted`; None where all are allowed."""
        return None if self.tools is None and not (wanted or self.without) else _Only(self, wanted)

    @property
    def may_change(self) -> bool:
        """Whether an agent of this kind may change something."""
        is_reading = self.mode in ("read-only", "plan")
        return not is_reading and (self.tools is None or not set(self.tools) <= set(READING))


class _Only(Container[str]):
    def __init__(self, kind: Kind, wanted: Container[str]) -> None:
        self._kind, self._wanted = kind, wanted

    def __contains__(self, name: object) -> bool:
        kind, wanted = self._kind, self._wanted
        if not isinstance(name, str) or (wanted and name not in wanted):
            return False
        return (kind.tools is None or means(kind.tools, name)) and not means(kind.without, name)


def means(names: Iterable[str], tool: str) -> bool:
    """Return whether one of these names of a kind is the tool's."""
    return any(Rule(each).names(tool) for each in names)


EXPLORE: Final = Kind(
    name="explore",
    description="finds things out in the project; changes nothing",
    prompt=(
        "You find things out and change nothing. Search before you read, read what matters, and stop when you can answer. "
        "Answer in a few lines: what you found, with file:line for each claim, and what you did not find. Quote code only where its wording matters."
    ),
    tools=READING,
    mode="read-only",
)
REVIEW: Final = Kind(
    name="review",
    description="looks for mistakes in code or changes; changes nothing",
    prompt=(
        "You review and change nothing. Look at what your task names (`git diff` shows what has changed), and at the code around it. "
        "Report only what is wrong, the worst first: file:line, what goes wrong and when, and what would fix it. Check each claim in the code before you make it. "
        "Say so where you found nothing."
    ),
    tools=(*READING, "run_shell", "git"),
    mode="read-only",
)
TEST: Final = Kind(
    name="test",
    description="runs tests or other checks and says what fails and why",
    prompt=(
        "You run checks and say what they show; you do not repair anything. Answer with the command, how many passed and failed, and for each failure its name, "
        "the message that matters, and the cause with file:line where you can see it."
    ),
    tools=(*READING, "run_shell", "shell_job", "git"),
)
GENERAL: Final = Kind(
    name="general",
    description="does any task with all tools",
    prompt=(
        "You do the task to its end and no more than the task. Answer with what you did, the files that you changed, how you checked it, and what is left open."
    ),
)
BUILT_IN: Final = {kind.name: kind for kind in (EXPLORE, REVIEW, TEST, GENERAL)}
#: What skills and commands that were written for Claude Code call the kinds that it has by itself.
_ALIASES: Final = {"general-purpose": "general", "plan": "explore"}
#: What no project's kind may be called.
RESERVED: Final = frozenset((*BUILT_IN, *_ALIASES))


def kind_named(kinds: Mapping[str, Kind], name: str) -> Kind | None:
    """Return the kind of this name; one of a plugin has its name without the plugin's as well, where no other kind has it."""
    wanted = name.strip().lower()
    for each in (wanted, _ALIASES.get(wanted, "")):
        if each in kinds:
            return kinds[each]
    return next((kind for full, kind in kinds.items() if full.endswith(f":{wanted}")), None)
