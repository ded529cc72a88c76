"""The settings of sub-agents."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from ybs.config.network import Most, NotEmpty, Usd

#: Agents whose programs, logins and variables ybs knows.
AcpPreset: TypeAlias = Literal["claude", "codex", "gemini", "opencode"]


class AcpAgent(Struct, frozen=True, kw_only=True):
    """A kind of sub-agent that is another agent, a program that speaks the Agent Client Protocol."""

    preset: Annotated[
        AcpPreset | None,
        Meta(
            description="An agent that ybs knows; of it the program, the login and the variables are those that stand nowhere else. Unset: the one of the kind's own name, if there is one."
        ),
    ] = None
    command: Annotated[
        tuple[str, ...], Meta(description='The program and its options, such as `["codex-acp"]`.')
    ] = ()
    args: Annotated[tuple[str, ...], Meta(description="More options.")] = ()
    model: Annotated[
        str,
        Meta(
            description="The model that it uses, by the agent's own name for it. Unset: the one that it has chosen."
        ),
    ] = ""
    env: Annotated[dict[str, str], Meta(description="Variables that it is given.")] = {}
    environment: Annotated[
        tuple[str, ...],
        Meta(
            description="Variables of yours that it may see, such as `OPENAI_*`. It sees no others."
        ),
    ] = ()
    login: Annotated[
        tuple[str, ...],
        Meta(
            description="Files of your home folder that hold its login, which it may read and change."
        ),
    ] = ()
    read_only: Annotated[
        bool, Meta(description="Only show it the project, instead of a copy to work in.")
    ] = False
    description: Annotated[str, Meta(description="What it is for, as the model is told.")] = ""
    sandbox: Annotated[
        bool,
        Meta(
            description="Run it in ybs's sandbox. Without, it can do all that you can; what it asks for is still asked."
        ),
    ] = True

    def __repr__(self) -> str:
        # A variable may hold a key, which must not reach a log by way of a representation.
        return f"AcpAgent(preset={self.preset!r}, command={self.command!r})"


class Agents(Struct, frozen=True, kw_only=True):
    """Agents that work for the one that you talk with: when they are offered, and what each may use."""

    offer: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Tell the model of the tool `delegate`: `auto` in projects of over about 200 files and where there are kinds of agents of your own."
        ),
    ] = "auto"
    max_parallel: Annotated[
        Annotated[int, Meta(ge=1, le=100)], Meta(description="How many work at the same time.")
    ] = 10
    max_steps: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)],
        Meta(description="The most requests that one may send; they count as the turn's."),
    ] = 50
    max_tokens: Annotated[
        Most | None,
        Meta(description="The most tokens that one may use, read and written. Unset: no limit."),
    ] = None
    max_cost_usd: Annotated[
        Usd | None,
        Meta(description="The most that one may cost. Unset: what the session may."),
    ] = None
    max_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=1_000_000)] | None,
        Meta(description="The longest that one may work. Unset: as long as the turn may."),
    ] = 900.0
    models: Annotated[
        dict[str, NotEmpty],
        Meta(
            description="The models that kinds of agents have, by kind: `MODEL`, `PROVIDER` or `PROVIDER/MODEL`. What stands here may be further away than the session's own model."
        ),
    ] = {}
    acp: Annotated[
        dict[str, AcpAgent],
        Meta(
            description="Kinds that are other agents (Agent Client Protocol), by name: `{}` stands for the preset of that name. Only in your own settings."
        ),
    ] = {}
