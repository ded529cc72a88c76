"""Sub-agents, as the settings say it."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from ybs.config.network import Most, NotEmpty, Usd

#: Agents whose programs, logins and variables ybs knows.
AcpPreset: TypeAlias = Literal["claude", "codex", "gemini", "opencode"]


class AcpAgent(Struct, frozen=True, kw_only=True):
    """A kind of sub-agent that is another agent, a program that speaks the Agent Client Protocol."""

    preset: AcpPreset | None = None
    """An agent that ybs knows; of it the program, the login and the variables are those that stand nowhere
    else. Unset: the one of the kind's own name, if there is one."""
    command: tuple[str, ...] = ()
    """The program and its options, such as `["codex-acp"]`."""
    args: tuple[str, ...] = ()
    """More options."""
    model: str = ""
    """The model that it uses, by the agent's own name for it. Unset: the one that it has chosen."""
    env: dict[str, str] = {}
    """Variables that it is given."""
    environment: tuple[str, ...] = ()
    """Variables of yours that it may see, such as `OPENAI_*`. It sees no others."""
    login: tuple[str, ...] = ()
    """Files of your home folder that hold its login, which it may read and change."""
    read_only: bool = False
    """Only show it the project, instead of a copy to work in."""
    description: str = ""
    """What it is for, as the model is told."""
    sandbox: bool = True
    """Run it in ybs's sandbox. Without, it can do all that you can; what it asks for is still asked."""

    def __repr__(self) -> str:
        # A variable may hold a key, which must not reach a log by way of a representation.
        return f"AcpAgent(preset={self.preset!r}, command={self.command!r})"


class Agents(Struct, frozen=True, kw_only=True):
    """Agents that work for the one that you talk with: when they are offered, and what each may use."""

    offer: Literal["auto", "always", "never"] = "auto"
    """Tell the model of the tool `delegate`: `auto` in projects of over about 200 files and where there are
    kinds of agents of your own."""
    max_parallel: Annotated[int, Meta(ge=1, le=100)] = 10
    """How many work at the same time."""
    max_steps: Annotated[int, Meta(ge=1, le=1_000_000)] = 50
    """The most requests that one may send; they count as the turn's."""
    max_tokens: Most | None = None
    """The most tokens that one may use, read and written. Unset: no limit."""
    max_cost_usd: Usd | None = None
    """The most that one may cost. Unset: what the session may."""
    max_seconds: Annotated[float, Meta(gt=0, le=1_000_000)] | None = 900.0
    """The longest that one may work. Unset: as long as the turn may."""
    models: dict[str, NotEmpty] = {}
    """The models that kinds of agents have, by kind: `MODEL`, `PROVIDER` or `PROVIDER/MODEL`. What stands
    here may be further away than the session's own model."""
    acp: dict[str, AcpAgent] = {}
    """Kinds that are other agents (Agent Client Protocol), by name: `{}` stands for the preset of that name.
    Only in your own settings."""
