"""The router, as the settings say it: which models it may pick, what they may use, and how it picks."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from ybs.config.network import Most, Usd

#: How an arm is picked.
PolicyName: TypeAlias = Literal["hierarchical", "discounted", "heuristic"]


class PoolLimits(Struct, frozen=True, kw_only=True):
    """What models that share a key or a server may use together, in all ybs processes of this account."""

    providers: tuple[str, ...] = ()
    """The providers that share it. Unset: the one that the pool is named for."""
    requests_per_minute: Most | None = None
    """Requests within any 60 seconds. Unset: no limit."""
    tokens_per_minute: Most | None = None
    """Tokens within any 60 seconds. Unset: no limit."""
    concurrency: Most | None = None
    """Requests at the same time. Unset: no limit."""
    usd_per_day: Usd | None = None
    """US dollars within one day (UTC). Unset: no limit."""


class Cascade(Struct, frozen=True, kw_only=True):
    """What is done where the cheap model's work does not pass a check: a stronger one goes on."""

    check: str = ""
    """A command that fails where the work is not right, such as `make test`. It runs in the sandbox after a
    turn that changed files. Empty: no cascade."""
    timeout_seconds: Annotated[int, Meta(ge=1, le=600)] = 120
    """How long the command may take."""
    most: Annotated[int, Meta(ge=1, le=5)] = 1
    """How often a turn may go to a stronger model."""
    usd_per_success: Usd = 1.0
    """What a turn that succeeds is worth to you: a stronger model is asked only where its chance of success
    times this is more than its price."""


class Router(Struct, frozen=True, kw_only=True):
    """How a model is picked for each turn. `/model auto` and `--model auto` ask for it."""

    enabled: bool = False
    """Begin every session with the router where two models or more are there."""
    arms: tuple[str, ...] = ()
    """The models to pick from: `PROVIDER/MODEL`, or `PROVIDER` for its default. Unset: those of `llm`, of
    `llm.fallback` and of your own `providers`."""
    policy: PolicyName = "hierarchical"
    """How an arm is picked: `hierarchical` and `discounted` learn from outcomes, `heuristic` goes by price,
    speed and what the catalog knows."""
    classifier: str = ""
    """The model that sorts requests into kinds of task, as `PROVIDER/MODEL`, such as a small one on this
    machine; where it fails or takes over 2 seconds, the words decide. Empty: the words decide."""
    pools: dict[str, PoolLimits] = {}
    """What models may use together, by the name of the provider or of your own."""
    cascade: Cascade = Cascade()
    seed: int | None = None
    """Makes choices repeatable. Unset: every session draws its own."""
