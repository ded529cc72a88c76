"""The roster: the models that the settings let the router pick from, what is known of each, and the pool that it draws on.

The router may ask what is here without anybody naming it again, so nothing is here that a project's settings alone say: not its providers, and not the
provider or model that it chooses for a session. A name in `router.arms` or `llm.fallback` of the person's own may mean a provider of the project.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from math import exp, log, log1p
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.config.host import Host
from ybs.config.layers import Loaded
from ybs.config.schema import Config
from ybs.core.errors import ConfigError
from ybs.core.remedies import Remedy
from ybs.providers.catalog import ModelFacts, Price, billions_of, window_of
from ybs.providers.facts import known, stated
from ybs.providers.registry import chosen_name, chosen_provider, distance, price_at
from ybs.router.bandit import Arm
from ybs.router.classifier import TASK_KINDS, TaskKind

#: What a person writes for the model to have the router pick.
AUTO: Final = "auto"
#: The fewest models between which there is anything to pick.
FEWEST: Final = 2
#: How much easier a kind of task is than the others, in logits: a guess that results soon outweigh.
_EASE: Final[Mapping[TaskKind, float]] = {
    "explain": 1.2,
    "docs": 1.2,
    "operate": 1.0,
    "other": 0.6,
    "plan": 0.2,
}


class Roster(Struct, frozen=True, kw_only=True):
    """The arms, the pool of each by its name, and what was wrong with entries of the settings."""

    arms: tuple[Arm, ...]
    pools: Mapping[str, str]
    problems: tuple[str, ...] = ()

    def without(self, names: Iterable[str]) -> "Roster":
        """Return the roster without these arms. Raises ConfigError where none is left."""
        left_out = set(names)
        arms = tuple(arm for arm in self.arms if arm.name not in left_out)
        if not arms:
            raise ConfigError("None of the router's models may be used here: all are further away.")
        return replace(self, arms=arms)

    def of_model(self, model: str) -> Arm | None:
        """Return the arm that a person names, as `PROVIDER/MODEL` or by the model alone."""
        return next((arm for arm in self.arms if model in (arm.name, arm.model)), None)


def roster_of(loaded: Loaded) -> Roster:
    """Return the models that the router may pick from; entries that cannot be used are left out, and named."""
    config, chosen = loaded.config, _chosen(loaded)
    arms: dict[str, Arm] = {}
    problems: list[str] = []
    for provider, model in _entries(loaded, chosen):
        own = chosen[1] if provider == chosen[0] else ""
        try:
            arm = _arm(loaded.host, config, provider, model or own)
        except ConfigError as error:
            problems.append(f"router: {provider}/{model}: {error}")
            continue
        arms.setdefault(arm.name, arm)
    pools = {name: _pool_of(config, arm.provider) for name, arm in arms.items()}
    problems += _unpriced(config, list(arms.values()), pools)
    return Roster(arms=tuple(arms.values()), pools=pools, problems=tuple(problems))


def checked_roster(loaded: Loaded) -> Roster:
    """Return the roster where there is anything to pick. Raises ConfigError."""
    roster = roster_of(loaded)
    if len(roster.arms) >= FEWEST:
        return _allowed(roster, loaded.config)
    there = f"there is one: {roster.arms[0].name}" if roster.arms else "there is none"
    raise ConfigError(
        "\n".join((f"The router needs two models to pick from, and {there}.", *roster.problems)),
        remedies=(
            Remedy("do", 'name them in router.arms, such as ["PROVIDER/MODEL", "PROVIDER/MODEL"]'),
        ),
    )


def _allowed(roster: Roster, config: Config) -> Roster:
    """Return what may be picked from in this session: perhaps only what runs on this machine."""
    if not config.incognito.only_here:
        return roster
    here = tuple(arm for arm in roster.arms if arm.is_local)
    if not here:
        raise ConfigError(
            "None of the router's models runs on this machine, and incognito.local_only allows no other.",
            remedies=(Remedy("choose_local_model"),),
        )
    return replace(roster, arms=here)


def _chosen(loaded: Loaded) -> tuple[str, str]:
    """Return the provider and the model of `llm`, each empty where the person has named none."""
    llm = loaded.config.llm
    if loaded.is_projects("llm.model"):
        return "", ""
    return chosen_name(loaded.config) or "", "" if (
        llm.model or ""
    ).lower() == AUTO else llm.model or ""


def _entries(loaded: Loaded, chosen: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield provider and model of each entry; the model is empty for the provider's own."""
    config = loaded.config
    if config.router.arms:
        for entry in config.router.arms:
            provider, _, model = entry.partition("/")
            yield provider, model
        return
    if chosen[0]:
        yield chosen
    for entry in config.llm.fallback:
        provider, _, model = entry.partition("/")
        yield provider, model
    for name, own in config.providers.items():
        if own.model:
            yield name, own.model


def _arm(host: Host, config: Config, provider: str, model: str) -> Arm:
    found = chosen_provider(host, config, provider)
    model = model or found.model
    if not model:
        raise ConfigError(f"it has no model of its own; write {provider}/MODEL")
    facts = known(config, provider, model)
    far = distance(host, provider, model, config)
    price = stated(config, provider, model).price or price_at(found, model)
    return Arm(
        name=f"{provider}/{model}",
        provider=provider,
        model=model,
        window=facts.window or window_of(facts, is_local=far < 2),
        has_tools=True,  # one that does not call them writes its calls as text
        sees_images=facts.sees_images is not False,
        is_local=far == 0,
        input_usd_per_million=price.input if price else None,
        output_usd_per_million=price.output if price else None,
        cached_usd_per_million=price.cached if price else None,
        prior=_priors(model, price),
        version=_version(facts, found.endpoint),
    )


def _priors(model: str, price: Price | None) -> dict[TaskKind, float]:
    """Guess the chances of success: dearer and larger models do better, and that matters most where tasks are hard."""
    size = billions_of(model)
    chance = 0.5
    if size is not None:
        chance = min(0.7, 0.25 + 0.09 * log1p(size))
    elif price is not None and price.output > 0:
        chance = min(0.9, 0.55 + 0.075 * log1p(price.output))
    logit = log(chance / (1 - chance))
    return {kind: 1 / (1 + exp(-logit - _EASE.get(kind, 0.0))) for kind in TASK_KINDS}


def _version(facts: ModelFacts, endpoint: str) -> str:
    """Return what changes when the catalog says something else of the model, or another server answers."""
    return sha256(msgspec.json.encode((facts, endpoint))).hexdigest()[:12]


def _pool_of(config: Config, provider: str) -> str:
    """Return the pool that a provider draws on: one of the settings that names it, else its own."""
    for name, limits in config.router.pools.items():
        if provider in (limits.providers or (name,)):
            return name
    return provider


def _unpriced(config: Config, arms: list[Arm], pools: Mapping[str, str]) -> Iterator[str]:
    for arm in arms:
        limits = config.router.pools.get(pools[arm.name])
        if limits and limits.usd_per_day is not None and arm.cost_usd(1, 0, 1) is None:
            yield (
                f"router: the price of {arm.name} is not known, so usd_per_day of the pool {pools[arm.name]} does not "
                "count it. State its price in `models`."
            )
