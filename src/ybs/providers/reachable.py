"""The models that can be reached now: all providers are asked at once, and none of them is waited for long."""

import asyncio
from asyncio import gather
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.addresses import is_loopback, shown_address
from ybs.config.host import Host
from ybs.config.key_store import SAVED, find_variable, has_key, place_of
from ybs.config.presets import PRESETS
from ybs.config.schema import Config
from ybs.config.sections import Endpoint
from ybs.core.errors import AuthError, ConfigError, ModelError, ProviderDown, YbsError
from ybs.core.time_limits import time_limit
from ybs.providers.catalog import LOCAL_WINDOW, ModelFacts, answers_in_words, facts_of, over
from ybs.providers.facts import find_props, find_rows, find_show, in_row, rows_by_name, stated
from ybs.providers.http.client import HttpClient, host_of, port_of
from ybs.providers.local.models import find_model
from ybs.providers.local.server import find_running
from ybs.providers.nearby import find_servers, owner_of
from ybs.providers.registry import (
    Provider,
    ProviderModel,
    chosen_name,
    chosen_provider,
    client_of,
    create_model,
    open_model,
    price_at,
    provider_names,
    without_keys,
)
from ybs.providers.wire.loose_json import as_count
from ybs.providers.wires import adapter_of, clean_endpoint

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


class Reachability(Struct, frozen=True, kw_only=True):
    """What is known of a provider without asking anybody beyond this machine.

    `variable` holds the key (empty: the settings do), or would; `advice` says, within a sentence, how its server is started;
    `owner` names another user of this machine whose server it is. `is_keyless`: that, or nobody chose it, and any program may have
    its usual port; for a list it is sent no key.
    """

    provider: str
    state: State
    endpoint: str = ""
    variable: str = ""
    advice: str = ""
    complaint: str = ""
    owner: str = ""
    is_keyless: bool = False

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


async def look(host: Host, name: str, config: Config) -> Reachability:
    """Say whether a provider could be used now, and what it lacks if not. Never fails."""
    try:
        provider = chosen_provider(host, config, name)
        is_here = is_loopback(host_of(provider.endpoint))
    except (ConfigError, ImportError) as error:
        return Reachability(provider=name, state="unusable", complaint=str(error).split("\n", 1)[0])
    if provider.is_installed is not None:
        return _reach(provider, "installed" if provider.is_installed(host) else "absent")
    if provider.make is not None:
        return await _look_at_embedded(host, provider, config)
    if is_here:
        if not await listens(provider.endpoint):
            return _reach(provider, "stopped")
        owner = await owner_of(provider.endpoint)
        is_own = name == chosen_name(config) or name in config.providers or provider.is_moved
        is_keyless = bool(owner) or not is_own
        return replace(_reach(provider, "running"), owner=owner, is_keyless=is_keyless)
    return _look_afar(host, provider)


def is_unused(found: Reachability, config: Config) -> bool:
    """Return whether this is a preset that nobody has set up, chosen or started."""
    name = found.provider
    is_preset = name in PRESETS and name not in config.providers
    return is_preset and not found.is_ready and name != chosen_name(config)


async def look_at_model(host: Host, name: str, config: Config) -> ModelReach:
    """Look whether the model that a provider would use is there. Raises ConfigError and ModelError."""
    provider = _provider_at(await look(host, name, config), host, config)
    model = create_model(host, config, provider=name)
    if provider.is_keyless:
        model = open_model(host, provider, config, model=model.name)
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
            endpoint=shown_address(clean_endpoint(provider.endpoint, provider.wire)),
            wire=provider.wire,
            complaint=complaint,
        )
    finally:
        await model.aclose()


async def models_here(host: Host, found: Reachability, config: Config) -> list[str]:
    """List the models of a provider if it answers on this machine; nobody else is asked. Never fails."""
    if not (found.is_here and found.is_ready):
        return []
    with suppress(ConfigError, ModelError, TimeoutError):
        return await in_time(_listed(host, config, _provider_at(found, host, config)))
    return []


async def list_models(
    host: Host, config: Config, provider: str | None = None, *, is_keyless: bool = False
) -> list[str]:
    """Ask a provider that the person chose for the names of its models. Raises ConfigError and ModelError."""
    found = chosen_provider(host, config, provider)
    return await _listed(host, config, without_keys(found) if is_keyless else found)


def _provider_at(found: Reachability, host: Host, config: Config) -> Provider:
    """Return a provider as it is asked for a list. Raises ConfigError."""
    provider = chosen_provider(host, config, found.provider)
    return without_keys(provider) if found.is_keyless else provider


async def _listed(host: Host, config: Config, found: Provider) -> list[str]:
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
    async with time_limit(LIST_SECONDS):
        found = await names
    # A name with a space in it cannot be given to a command.
    return [name for name in found if answers_in_words(name) and " " not in name][:_MOST_NAMES]


async def listens(endpoint: str) -> bool:
    """Return whether something takes connections at an address of this machine."""
    try:
        async with time_limit(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host_of(endpoint), port_of(endpoint))
    except (OSError, TimeoutError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


async def _look_at_embedded(host: Host, provider: Provider, config: Config) -> Reachability:
    """Look at the server that ybs starts by itself."""
    if (server := await find_running(host)) is not None:
        return Reachability(provider=provider.name, state="running", endpoint=server.socket)
    chosen = config.llm.model if provider.name == chosen_name(config) else None
    try:
        find_model(host, chosen or provider.model, provider.model)
    except ConfigError:
        return Reachability(provider=provider.name, state="empty")
    return Reachability(provider=provider.name, state="startable")


def _look_afar(host: Host, provider: Provider) -> Reachability:
    if provider.api_key:
        return _reach(provider, "keyed")
    variable = find_variable(provider.key_variables, host.environ)
    is_saved = has_key(host, provider.name, place_of(provider.endpoint))
    if variable and not (is_saved and provider.is_moved):
        return _reach(provider, "keyed", variable)
    if is_saved:
        return _reach(provider, "keyed", SAVED)
    if provider.needs_key:
        return _reach(provider, "keyless", next(iter(provider.key_variables), ""))
    return _reach(provider, "unasked")


def _reach(provider: Provider, state: State, variable: str = "") -> Reachability:
    return Reachability(
        provider=provider.name,
        state=state,
        endpoint=shown_address(provider.endpoint),
        variable=variable,
        advice=provider.start_advice,
    )


async def _state_of(model: ProviderModel, provider: Provider) -> ModelState:
    """Ask a server on this machine for the model, and for its window. Raises ModelError and TimeoutError."""
    if provider.make is not None:
        return "embedded"
    if not is_loopback(host_of(provider.endpoint)):
        return "unasked"
    async with time_limit(LIST_SECONDS):
        names = await model.list_models()
        if not names and provider.wire != "ollama":
            return "unsaid"
        if not {model.name, f"{model.name}:latest"} & {*names}:
            return "unlisted"
        await model.detect_window()
    return "listed"


#: With the start and the end of the program it takes less than two seconds.
REACH_SECONDS: Final = 1.2
#: So many of Ollama's models are asked about one by one.
_MOST_SHOWN: Final = 40


class ReachedModel(Struct, frozen=True, kw_only=True):
    """A model that answers now, with what is known of it; its size where the server says that."""

    name: str
    facts: ModelFacts
    size_bytes: int | None = None


class Reached(Struct, frozen=True, kw_only=True):
    """A provider with its models, or with the reason why it has none: `reach` says what it lacks, `why` what it answered."""

    reach: Reachability
    models: tuple[ReachedModel, ...] = ()
    why: str = ""


async def find_reachable(host: Host, config: Config, *, everywhere: bool) -> list[Reached]:
    """Ask the providers on this machine and the chosen one for their models, or all of them. Never fails.

    Those elsewhere that have no key are not asked, and none where only this machine may be used.
    """
    asked = (_reached(host, config, name, everywhere=everywhere) for name in provider_names(config))
    found, unnamed = await gather(gather(*asked), _unnamed(host, config))
    return [*(each for each in found if each is not None), *unnamed]


async def _reached(host: Host, config: Config, name: str, *, everywhere: bool) -> Reached | None:
    """Ask one provider; None for one elsewhere that is not to be asked."""
    reach = await look(host, name, config)
    if not reach.is_here:
        if config.incognito.only_here:
            return None
        if not everywhere and name != chosen_name(config):
            return None
    if not reach.is_ready:
        return None if is_unused(reach, config) else Reached(reach=reach)
    try:
        async with time_limit(REACH_SECONDS):
            return Reached(reach=reach, models=tuple(await _models_of(host, config, reach)))
    except TimeoutError:
        return Reached(reach=reach, why=f"it did not answer within {REACH_SECONDS} seconds")
    except (YbsError, ImportError) as error:
        return Reached(reach=reach, why=str(error).split("\n", 1)[0])


async def _models_of(host: Host, config: Config, reach: Reachability) -> list[ReachedModel]:
    """Return a provider's models. Raises ConfigError and ModelError."""
    provider = _provider_at(reach, host, config)
    if provider.make is not None:
        names = await _listed(host, config, provider)
        return [_reached_model(config, provider, each, ModelFacts(), {}) for each in names]
    client = client_of(host, provider, config)
    try:
        await client.warm_up()  # in a thread where it takes long, so that nobody else waits
        return await _asked(config, provider, client)
    finally:
        await client.aclose()


async def _asked(config: Config, provider: Provider, client: HttpClient) -> list[ReachedModel]:
    """Ask a provider's server for its models and what it tells of them. Raises ModelError."""
    listing = adapter_of(provider.wire).listing
    found = rows_by_name(await find_rows(client, listing) or [], listing)
    rows = {name: row for name, row in sorted(found.items()) if answers_in_words(name)}
    told = {name: in_row(row) for name, row in rows.items()}
    if provider.wire == "ollama":
        most = config.context.max_tokens or LOCAL_WINDOW
        names = list(rows)[:_MOST_SHOWN]
        shown = await gather(*(find_show(client, each, most) for each in names))
        told |= dict(zip(names, shown, strict=True))
    elif provider.wire == "openai" and (props := await find_props(client)) != ModelFacts():
        told = {name: over(props, facts) for name, facts in told.items()}
    return [_reached_model(config, provider, name, told[name], row) for name, row in rows.items()]


def _reached_model(
    config: Config, provider: Provider, name: str, told: ModelFacts, row: dict[str, Any]
) -> ReachedModel:
    own = stated(config, provider.name, name)
    price = own.price or told.price or price_at(provider, name)
    facts = replace(over(own, told, facts_of(name)), price=price)
    return ReachedModel(name=name, facts=facts, size_bytes=as_count(row.get("size")) or None)


async def _unnamed(host: Host, config: Config) -> list[Reached]:
    """Ask the usual ports of this machine for servers that no provider is set up for."""
    known: set[str] = set()
    for name in provider_names(config):
        with suppress(ConfigError, ImportError):
            provider = chosen_provider(host, config, name)
            known.add(clean_endpoint(provider.endpoint, provider.wire))
    found = [each for each in await find_servers(host.environ) if each.endpoint not in known]
    settings = {each.provider: Endpoint(endpoint=each.endpoint) for each in found}
    with_them = replace(config, providers={**settings, **config.providers})
    asked = [_reached(host, with_them, name, everywhere=False) for name in settings]
    return [each for each in await gather(*asked) if each is not None]
