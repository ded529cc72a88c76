"""What can be reached: which providers are ready, and which models they have. Only this machine is asked unbidden."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from ybs.config.addresses import is_loopback
from ybs.config.host import Host
from ybs.config.key_store import SAVED, has_key, place_of
from ybs.config.keys import find_variable
from ybs.config.presets import PRESETS
from ybs.config.schema import Config
from ybs.core.errors import AuthError, ConfigError, ModelError, ProviderDown
from ybs.providers.catalog import answers_in_words
from ybs.providers.http.client import host_of, port_of
from ybs.providers.local.models import find_model
from ybs.providers.local.server import find_running
from ybs.providers.registry import (
    Provider,
    ProviderModel,
    chosen_name,
    chosen_provider,
    create_model,
    open_model,
)
from ybs.providers.wires import clean_endpoint

#: A server on this machine takes a connection within this time, and a provider lists its models within the other.
CONNECT_SECONDS: Final = 0.3
LIST_SECONDS: Final = 2.0
_MOST_NAMES: Final = 300

#: On this machine: its server runs, ybs can start it, ybs could with a model, the person has to start it.
#: A program that answers from elsewhere: it is installed, it is not. Elsewhere, where nobody is asked: a key is there, it is not, none is needed.
#: Or its settings make no sense.
State: TypeAlias = Literal[
    "running",
    "startable",
    "empty",
    "stopped",
    "installed",
    "absent",
    "keyed",
    "keyless",
    "unasked",
    "unusable",
]
#: The server has the model, does not have it, does not say; it is not asked; there is no server to ask.
ModelState: TypeAlias = Literal["listed", "unlisted", "unsaid", "unasked", "embedded"]


class Reach(Struct, frozen=True, kw_only=True):
    """What is known of a provider without asking anybody beyond this machine.

    `variable` holds the key (empty: the settings do), or would; `advice` says, within a sentence, how its server is started.
    """

    provider: str
    state: State
    endpoint: str = ""
    variable: str = ""
    advice: str = ""
    complaint: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether it could be used now, as far as can be seen from here."""
        return self.state in ("running", "startable", "installed", "keyed", "unasked")

    @property
    def is_here(self) -> bool:
        """Whether it answers on this machine."""
        return self.state in ("running", "startable", "empty", "stopped")


class ModelReach(Struct, frozen=True, kw_only=True):
    """What is known of a model, asked where its server runs on this machine; `complaint` says why that could not be asked."""

    name: str
    window: int
    state: ModelState
    endpoint: str
    wire: str
    complaint: str = ""


async def look(host: Host, name: str, config: Config) -> Reach:
    """Say whether a provider could be used now, and what it lacks if not. Never fails."""
    try:
        provider = chosen_provider(host, config, name)
        is_here = is_loopback(host_of(provider.endpoint))
    except (ConfigError, ImportError) as error:
        return Reach(provider=name, state="unusable", complaint=str(error).split("\n", 1)[0])
    if provider.is_installed is not None:
        return _reach(provider, "installed" if provider.is_installed(host) else "absent")
    if provider.make is not None:
        return await _look_at_embedded(host, provider, config)
    if is_here:
        state = "running" if await listens(provider.endpoint) else "stopped"
        return _reach(provider, state)
    return _look_afar(host, provider)


def is_unused(found: Reach, config: Config) -> bool:
    """Return whether this is a preset that nobody has set up, chosen or started."""
    name = found.provider
    is_preset = name in PRESETS and name not in config.providers
    return is_preset and not found.is_ready and name != chosen_name(config)


async def look_at_model(host: Host, name: str, config: Config) -> ModelReach:
    """Look whether the model that a provider would use is there. Raises ConfigError and ModelError."""
    provider = chosen_provider(host, config, name)
    model = create_model(host, config, provider=name)
    complaint = ""
    try:
        try:
            state = await _state_of(model, provider)
        except (ModelError, TimeoutError) as error:
            state = "unsaid"
            if isinstance(error, AuthError | ProviderDown):
                complaint = str(error)
            elif isinstance(error, TimeoutError):
                complaint = "the provider did not answer in time"
        return ModelReach(
            name=model.name,
            window=model.window,
            state=state,
            endpoint=_shown(clean_endpoint(provider.endpoint, provider.wire)),
            wire=provider.wire,
            complaint=complaint,
        )
    finally:
        await model.aclose()


async def models_here(host: Host, name: str, config: Config) -> list[str]:
    """List the models of a provider if it answers on this machine; nobody else is asked. Never fails."""
    found = await look(host, name, config)
    if not (found.is_here and found.is_ready):
        return []
    with suppress(ConfigError, ModelError, TimeoutError):
        return await in_time(list_models(host, config, name))
    return []


async def list_models(host: Host, config: Config, provider: str | None = None) -> list[str]:
    """Ask a provider for the names of its models. Raises ConfigError and ModelError."""
    found = chosen_provider(host, config, provider)
    if found.make is not None:
        model = found.make(host, config, None)
    else:
        model = open_model(host, found, config, model=found.model or "any")
    try:
        return await model.list_models()
    finally:
        await model.aclose()


async def in_time(names: Awaitable[list[str]]) -> list[str]:
    """Wait a short time for a list of models; keep those that can be talked to. Raises ModelError and TimeoutError."""
    async with asyncio.timeout(LIST_SECONDS):
        found = await names
    # A name with a space in it cannot be given to a command.
    return [name for name in found if answers_in_words(name) and " " not in name][:_MOST_NAMES]


async def listens(endpoint: str) -> bool:
    """Return whether something takes connections at an address of this machine."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host_of(endpoint), port_of(endpoint))
    except (OSError, TimeoutError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


async def _look_at_embedded(host: Host, provider: Provider, config: Config) -> Reach:
    """Look at the server that ybs starts by itself."""
    if (server := await find_running(host)) is not None:
        return Reach(provider=provider.name, state="running", endpoint=server.socket)
    chosen = config.llm.model if provider.name == chosen_name(config) else None
    try:
        find_model(host, chosen or provider.model, provider.model)
    except ConfigError:
        return Reach(provider=provider.name, state="empty")
    return Reach(provider=provider.name, state="startable")


def _look_afar(host: Host, provider: Provider) -> Reach:
    if provider.api_key:
        return _reach(provider, "keyed")
    if variable := find_variable(provider.key_variables, host.environ):
        return _reach(provider, "keyed", variable)
    if has_key(host, provider.name, place_of(provider.endpoint)):
        return _reach(provider, "keyed", SAVED)
    if provider.needs_key:
        return _reach(provider, "keyless", next(iter(provider.key_variables), ""))
    return _reach(provider, "unasked")


def _reach(provider: Provider, state: State, variable: str = "") -> Reach:
    return Reach(
        provider=provider.name,
        state=state,
        endpoint=_shown(provider.endpoint),
        variable=variable,
        advice=provider.start_advice,
    )


def _shown(endpoint: str) -> str:
    """Take away what may be secret in an address: a password, and what is asked with it."""
    parts = urlsplit(endpoint)
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=place, query="", fragment="").geturl()


async def _state_of(model: ProviderModel, provider: Provider) -> ModelState:
    """Ask a server on this machine for the model, and for its window. Raises ModelError and TimeoutError."""
    if provider.make is not None:
        return "embedded"
    if not is_loopback(host_of(provider.endpoint)):
        return "unasked"
    async with asyncio.timeout(LIST_SECONDS):
        names = await model.list_models()
        if not names and provider.wire != "ollama":
            return "unsaid"
        if not {model.name, f"{model.name}:latest"} & {*names}:
            return "unlisted"
        await model.detect_window()
    return "listed"
