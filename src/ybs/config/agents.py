"""Sub-agents, as the settings say it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ybs.config.network import Most, NotEmpty, Usd


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
