"""The settings of the router: its models, their limits, and how it picks."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from ybs.config.network import Most, Usd

#: How an arm is picked.
PolicyName: TypeAlias = Literal["hierarchical", "discounted", "heuristic"]


class PoolLimits(Struct, frozen=True, kw_only=True):
    """What models that share a key or a server may use together, in all ybs processes of this account."""

    providers: Annotated[
        tuple[str, ...],
        Meta(description="The providers that share it. Unset: the one that the pool is named for."),
    ] = ()
    requests_per_minute: Annotated[
        Most | None, Meta(description="Requests within any 60 seconds. Unset: no limit.")
    ] = None
    tokens_per_minute: Annotated[
        Most | None, Meta(description="Tokens within any 60 seconds. Unset: no limit.")
    ] = None
    concurrency: Annotated[
        Most | None, Meta(description="Requests at the same time. Unset: no limit.")
    ] = None
    usd_per_day: Annotated[
        Usd | None, Meta(description="US dollars within one day (UTC). Unset: no limit.")
    ] = None


class CascadeSettings(Struct, frozen=True, kw_only=True):
    """What is done where the cheap model's work does not pass a check: a stronger one goes on."""

    check: Annotated[
        str,
        Meta(
            description="A command that fails where the work is not right, such as `make test`. It runs in the sandbox after a turn that changed files. Empty: no cascade."
        ),
    ] = ""
    timeout_seconds: Annotated[
        Annotated[int, Meta(ge=1, le=600)], Meta(description="How long the command may take.")
    ] = 120
    most: Annotated[
        Annotated[int, Meta(ge=1, le=5)],
        Meta(description="How often a turn may go to a stronger model."),
    ] = 1
    usd_per_success: Annotated[
        Usd,
        Meta(
            description="What a turn that succeeds is worth to you: a stronger model is asked only where its chance of success times this is more than its price."
        ),
    ] = 1.0


class RouterSettings(Struct, frozen=True, kw_only=True):
    """How a model is picked for each turn. `/model auto` and `--model auto` ask for it."""

    enabled: Annotated[
        bool,
        Meta(description="Begin every session with the router where two models or more are there."),
    ] = False
    arms: Annotated[
        tuple[str, ...],
        Meta(
            description="The models to pick from: `PROVIDER/MODEL`, or `PROVIDER` for its default. Unset: those of `llm`, of `llm.fallback` and of your own `providers`."
        ),
    ] = ()
    policy: Annotated[
        PolicyName,
        Meta(
            description="How an arm is picked: `hierarchical` and `discounted` learn from outcomes, `heuristic` goes by price, speed and what the catalog knows."
        ),
    ] = "hierarchical"
    classifier: Annotated[
        str,
        Meta(
            description="The model that sorts requests into kinds of task, as `PROVIDER/MODEL`, such as a small one on this machine; where it fails or takes over 2 seconds, the words decide. Empty: the words decide."
        ),
    ] = ""
    pools: Annotated[
        dict[str, PoolLimits],
        Meta(
            description="What models may use together, by the name of the provider or of your own."
        ),
    ] = {}
    cascade: CascadeSettings = CascadeSettings()
    seed: Annotated[
        int | None,
        Meta(description="Makes choices repeatable. Unset: every session draws its own."),
    ] = None
