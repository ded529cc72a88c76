"""The models of sub-agents: the main agent's, or another one that the person has named.

A name that is not the person's (a model's in `delegate`, that of a project's or plugin's file) sends words nowhere that the person did not
address: it chooses among the models of the main agent's provider and what stands in the person's settings (`_named_in`), no further away
than the main agent's model. Everything else is refused: a provider's usual port may be another user's, and its key was set for something else.
"""

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from ybs.agent.model_choice import (
    AUTO,
    IN_PROCESS,
    asks_for_router,
    check_place,
    next_model,
    routed,
    routed_for_sub_agent,
)
from ybs.conductor.home import Home
from ybs.config.front_matter import INHERITED
from ybs.config.schema import Config
from ybs.core.errors import YbsError
from ybs.providers.registry import ProviderModel, chosen_name, provider_names

if TYPE_CHECKING:
    from ybs.router.classifier import Features
    from ybs.router.model import RoutedModel


class ChosenModel(Struct, frozen=True):
    """A model and its provider's name."""

    provider: str
    model: ProviderModel


class Models:
    """Finds models by their names and keeps them for the next sub-agent."""

    def __init__(self, home: Home) -> None:
        self._home, self._environment = home, home.place.environment
        self._made: dict[tuple[str, str], ProviderModel] = {}
        self._asked: list[ProviderModel] = []
        self._asking = asyncio.Lock()

    async def find(self, name: str, *, is_persons: bool) -> ChosenModel:
        """Return the model of a name: `MODEL`, `PROVIDER` or `PROVIDER/MODEL`; without one the main agent's.

        `is_persons`: the person has named it, in their own settings, files or words. Raises YbsError.
        """
        main = self._home.agent
        is_routed = routed(AUTO, main.model) is not None
        config = self._environment.config
        provider, model = split(name, config, main.provider)
        if asks_for_router(None, model) or (is_routed and name in INHERITED):
            picking = self._routed(is_persons=is_persons)
            return ChosenModel(picking.provider, picking)
        if name in INHERITED:
            return ChosenModel(main.provider, main.model)
        if not is_persons:
            provider, model = self._addressed(name, provider, model)
        if (provider, model) == (main.provider, main.model.name) and not is_routed:
            return ChosenModel(main.provider, main.model)
        made = self._made.get((provider, model))
        if made is None:
            loaded, own = self._environment.loaded, self._home.own_model
            made = next_model(
                loaded, own, provider=provider, model=model or None, is_persons=is_persons
            )
            self._made[provider, model] = made
        check_place(self._environment.host, self._environment.incognito, provider, made, config)
        if not is_persons:
            self._check_distance(name, provider, made.name)
        async with self._asking:
            if made not in self._asked:
                self._asked.append(made)
                await made.detect_window()
        return ChosenModel(provider, made)

    async def several(
        self, count: int, features: "Features", *, is_persons: bool
    ) -> list["RoutedModel"]:
        """Let the router choose so many models for one task, each another one, the best first; there may be fewer. Raises YbsError."""
        router = self._routed(is_persons=is_persons)
        found: list[RoutedModel] = []
        while len(found) < count:
            beside = frozenset(each.arm.name for each in found)
            if (model := await router.for_attempt(features, beside)) is None:
                break
            found.append(model)
        return found

    def _routed(self, *, is_persons: bool) -> "RoutedModel":
        """Let the router choose; each sub-agent has a choice of its own. Raises YbsError."""
        main, loaded = self._home.agent, self._environment.loaded
        model = routed_for_sub_agent(loaded, main.provider, main.model, is_persons=is_persons)
        self._made[AUTO, str(len(self._made))] = model
        return model

    def _addressed(self, name: str, provider: str, model: str) -> tuple[str, str]:
        """Return where a name that is not the person's leads. Raises YbsError where the person has not named that."""
        main, named = self._home.agent, _named_in(self._environment.config)
        if {provider, f"{provider}/{model}"} & {main.provider, IN_PROCESS, *named}:
            return provider, model
        if model and "/" in main.model.name:  # models there are called so: `anthropic/claude-…`
            return main.provider, name
        known = ", ".join(sorted({main.provider, *named} - {"", AUTO}))
        raise YbsError(
            f"{name} is refused: the person has not named it. A sub-agent can have a model of these: {known} "
            f"(`{main.provider}/{name}` is a model there that is called so); without `model` it has the session's own. "
            "The person allows another one by naming it in the setting agents.models."
        )

    def _check_distance(self, name: str, provider: str, model: str) -> None:
        from ybs.providers.registry import distance  # few sub-agents have a model of their own

        main, environment = self._home.agent, self._environment
        if provider == IN_PROCESS:
            return
        host, config = environment.host, environment.config
        is_known = (
            main.provider != IN_PROCESS
        )  # of what a program hands in nobody knows where it is
        own = distance(host, main.provider, main.model.name, config) if is_known else 0
        if distance(host, provider, model, config) > own:
            where = "on this machine" if own == 0 else "in this network"
            raise YbsError(
                f"{name} is refused: the session's model answers {where} and {name} does not. "
                "The person allows it by naming it in the setting agents.models."
            )

    async def aclose(self) -> None:
        """Close the models that were made here."""
        made, self._made = self._made, {}
        for model in made.values():
            await model.aclose()


def _named_in(config: Config) -> set[str]:
    """Return what the settings name: providers, of which any model may be had, and single models as `PROVIDER/MODEL`."""
    several = (config.providers, config.cli_agents, config.llm.fallback, config.router.arms)
    single = (chosen_name(config) or "", config.router.classifier, *config.agents.models.values())
    return {*single, *(name for names in several for name in names)}


def split(name: str, config: Config, provider: str) -> tuple[str, str]:
    """Return provider and model of a name; a model without a provider is one of `provider`'s, and an empty one is the provider's own."""
    first, _, rest = name.partition("/")
    if first in (*provider_names(config), IN_PROCESS):
        return first, rest
    return provider, name
