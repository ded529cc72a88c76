"""The model that a session begins with, and which prompt it gets."""

from ybs.config.schema import Config
from ybs.core.errors import ConfigError
from ybs.core.ports import Model
from ybs.core.remedies import Remedy
from ybs.providers.registry import ProviderModel, chosen_name, create_model, find_provider
from ybs.security.incognito import Incognito

#: A model with a smaller window gets the short prompt, as one on this machine does.
SMALL_WINDOW = 16_384
NOTHING_CONFIGURED = "No model is configured, and the starter model is not installed."


class NothingConfigured(ConfigError):
    """No provider is chosen and the starter model is not installed."""


def open_model(config: Config) -> tuple[str, ProviderModel]:
    """Make the configured model; with nothing configured, the starter model if it is installed.

    Raises NothingConfigured when there is neither.
    """
    name = chosen_name(config)
    if name is None:
        from ybs.providers.local.models import starter_installed

        if not starter_installed():
            remedies = (Remedy("set_up"), Remedy("choose_provider"))
            raise NothingConfigured(NOTHING_CONFIGURED, remedies=remedies)
        name = "llamacpp"
    return name, create_model(config, provider=name)


def is_small(provider: str, model: Model, config: Config) -> bool:
    """Return whether the model gets the short prompt: it runs on this machine, or its window is small.

    An OpenAI-compatible server on this machine may stand for anything, so its window decides.
    """
    runs_here = provider == "llamacpp" or find_provider(provider, config).wire == "ollama"
    return runs_here or model.window < SMALL_WINDOW


def note_on(config: Config, model: Model) -> str:
    """Return what the person should know of a model that nobody chose; empty where somebody did."""
    if config.llm.provider or config.llm.endpoint:
        return ""
    return f"No model is configured: using the starter model on this machine, {model.name}."


def check_place(incognito: Incognito, provider: str, model: Model, config: Config) -> None:
    """Raise ConfigError for a model elsewhere where a session may use only those on this machine."""
    if incognito.is_on and incognito.local_only:
        from ybs.providers.whereabouts import runs_here  # few sessions ask

        is_here = runs_here(provider, model.name, config)
        incognito.check_model(provider, model.name, is_here=is_here)
