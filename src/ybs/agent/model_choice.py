"""The model that a session begins with and goes on with, and which prompt it gets."""

from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeGuard

from ybs.config.host import Host
from ybs.config.layers import Loaded
from ybs.config.schema import Config, PromptForm
from ybs.core.errors import ConfigError
from ybs.core.ports import Model
from ybs.core.remedies import Remedy
from ybs.providers.catalog import SMALL_BILLIONS, billions_of
from ybs.providers.registry import (
    InProcessModel,
    ProviderModel,
    chosen_name,
    create_model,
    find_provider,
)
from ybs.providers.remote import RemoteModel
from ybs.security.incognito import Incognito

if TYPE_CHECKING:
    from ybs.router.model import RoutedModel

#: A model with a smaller window gets the short prompt.
SMALL_WINDOW = 16_384
#: So does a small one anywhere, and one of at most so many billion parameters on this machine.
MIDDLE_BILLIONS = 15.0
#: Stands in the place of a provider's name for a model that a Python program hands in.
IN_PROCESS: Final = "in-process"
#: Stands in the place of a model's name, and of a provider's, for the router, which picks a model for each turn.
AUTO: Final = "auto"


class NothingConfigured(ConfigError):
    """No provider is chosen and the starter model is not installed."""

    def __init__(self) -> None:
        remedies = (Remedy("set_up"), Remedy("choose_provider"))
        super().__init__(
            "No model is configured yet, and the starter model is not installed.", remedies=remedies
        )


def open_model(loaded: Loaded, own: Model | None = None) -> tuple[str, ProviderModel]:
    """Return the provider's name and the model: `own`, the model handed in, or the configured one, or a routed one.

    With nothing configured it is the starter model if it is installed. Raises NothingConfigured when there is none.
    """
    host, config = loaded.host, loaded.config
    if own is not None:
        return IN_PROCESS, InProcessModel(own, config.llm.max_tokens)
    if asks_for_router(config.llm.provider, config.llm.model):
        return AUTO, routed_model(loaded)
    if config.router.enabled:
        with suppress(ConfigError):  # there are not enough models to pick from
            return AUTO, routed_model(loaded)
    name = chosen_name(config)
    if name is None:
        from ybs.providers.local.models import starter_installed

        if not starter_installed(host):
            raise NothingConfigured
        name = "llamacpp"
    return name, _with_fallbacks(host, config, name, create_model(host, config, provider=name))


def lacks_model(host: Host, config: Config) -> bool:
    """Return whether no model is chosen by the settings and the starter model is not installed."""
    from ybs.providers.local.models import starter_installed

    llm = config.llm
    is_named = chosen_name(config) or config.router.enabled or asks_for_router("", llm.model)
    return not is_named and not starter_installed(host)


def asks_for_router(provider: str | None, model: str | None) -> bool:
    """Return whether these names are those of the router."""
    return AUTO in ((provider or "").lower(), (model or "").lower())


def routed_model(loaded: Loaded) -> "RoutedModel":
    """Return a model that picks one of several for each turn. Raises ConfigError where there are not enough of them."""
    from ybs.router.model import RoutedModel  # few route
    from ybs.router.roster import checked_roster
    from ybs.router.routing import Routing

    roster = checked_roster(loaded)
    return RoutedModel(Routing(loaded.host, loaded.config, roster, profile=loaded.profile))


def routed_for_sub_agent(
    loaded: Loaded, provider: str, main: ProviderModel, *, is_persons: bool
) -> "RoutedModel":
    """Return a model that picks one of several for a sub-agent of a session whose model is `main`, at `provider`.

    It shares what the session's own router knows, if it has one. Else, unless the person asked for it (`is_persons`), nothing is
    picked that is further away than `main`. `begin` picks for a task, else the first request does; who is given it closes it. Raises ConfigError.
    """
    from ybs.providers.registry import distance
    from ybs.router.model import RoutedModel
    from ybs.router.roster import checked_roster
    from ybs.router.routing import Routing

    if isinstance(main, RoutedModel):
        return main.for_another_agent()
    host, config = loaded.host, loaded.config
    roster = checked_roster(loaded)
    if not is_persons:
        own = 0 if provider == IN_PROCESS else distance(host, provider, main.name, config)
        roster = roster.without(
            arm.name for arm in roster.arms if distance(host, arm.provider, arm.model, config) > own
        )
    return RoutedModel(Routing(host, config, roster, profile=loaded.profile))


def routed(provider: str, model: ProviderModel) -> "RoutedModel | None":
    """Return the model where it is a routed one."""
    if provider != AUTO:
        return None
    from ybs.router.model import RoutedModel

    return model if isinstance(model, RoutedModel) else None


def next_model(
    loaded: Loaded,
    own: Model | None,
    *,
    provider: str,
    model: str | None,
    is_persons: bool = False,
) -> ProviderModel:
    """Return the model that a session goes on with; `own` is the model that was handed in when it was opened.

    `is_persons`: the person has named `model`, see `create_model`. Raises ConfigError, and AuthError where a key is missing.
    """
    host, config = loaded.host, loaded.config
    if asks_for_router(provider, model):
        return routed_model(loaded)
    if own is None or provider != IN_PROCESS:
        new = create_model(host, config, provider=provider, model=model, is_persons=is_persons)
        return _with_fallbacks(host, config, provider, new)
    if model not in (None, own.name):
        raise ConfigError(
            f"{model!r} cannot be chosen: the program that opened this session offers only {own.name}.",
            remedies=(Remedy("change_provider"),),
        )
    return open_model(loaded, own)[1]


def _with_fallbacks(
    host: Host, config: Config, provider: str, model: ProviderModel
) -> ProviderModel:
    if not config.llm.fallback:
        return model
    from ybs.providers.fallback import with_fallbacks  # few have one

    return with_fallbacks(host, config, provider, model)


def is_small(
    host: Host, provider: str, model: Model, config: Config, form: PromptForm | None = None
) -> bool:
    """Return whether the model gets the short prompt and fewer tools: `form`, or else `llm.prompt`, may say so.

    By itself it is a matter of the model: its window, its size where the name gives it, and whether it runs on this
    machine, where reading a prompt takes long. Ollama and the managed server run what they have here; any other server on
    this machine may pass on to anything, so there a model whose size is not known gets the whole prompt.
    """
    asked = form or config.llm.prompt
    if asked != "auto":
        return asked == "short"
    size = size_of(model)
    if model.window < SMALL_WINDOW or (size is not None and size <= SMALL_BILLIONS):
        return True
    if isinstance(model, InProcessModel):
        return False
    if provider == "llamacpp" or find_provider(provider, config).wire == "ollama":
        return size is None or size <= MIDDLE_BILLIONS
    if size is None or size > MIDDLE_BILLIONS:
        return False
    from ybs.providers.registry import runs_here  # few models are of this size

    return runs_here(host, provider, model.name, config)


def size_of(model: Model) -> float | None:
    """Return the model's parameters in billions, where its name or its server has told them."""
    return model.billions if isinstance(model, RemoteModel) else billions_of(model.name)


def may_turn_out_small(
    model: Model, host: Host, provider: str, config: Config, form: PromptForm | None = None
) -> TypeGuard[RemoteModel]:
    """Return whether only its server knows how large a model is, or how a small one may be helped.

    A known name without a size counts as any other: llama.cpp's server answers to all of them, and others have aliases.
    """
    if (form or config.llm.prompt) != "auto" or not isinstance(model, RemoteModel):
        return False
    if not model.may_tell_more:
        return False
    from ybs.providers.registry import runs_here  # most names say it

    return runs_here(host, provider, model.name, config)


def is_chosen(config: Config) -> bool:
    """Return whether the settings say which model is used; the starter model is where they do not."""
    return bool(config.llm.provider or config.llm.endpoint or config.router.arms)


def note_on(config: Config, model: Model) -> str:
    """Return a note for the person about a default model; empty if they chose it."""
    if is_chosen(config) or isinstance(model, InProcessModel):
        return ""
    return f"No model is configured, so ybs uses the starter model on this machine, {model.name}."


def check_place(
    host: Host, incognito: Incognito, provider: str, model: Model, config: Config
) -> None:
    """Raise ConfigError for a model elsewhere where a session may use only those on this machine.

    A model that was handed in is refused there too: what it connects to cannot be seen.
    """
    if incognito.only_here and provider != AUTO:
        if isinstance(model, InProcessModel):
            raise ConfigError(
                f"It is not known where {model.name} runs, and incognito.local_only allows only models on this machine.",
                remedies=(Remedy("choose_local_model"),),
            )
        from ybs.providers.registry import runs_here  # few sessions ask

        is_here = runs_here(host, provider, model.name, config)
        incognito.check_model(provider, model.name, is_here=is_here)
