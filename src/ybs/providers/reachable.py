"""The models that can be reached now: all providers are asked at once, and none of them is waited for long."""

import asyncio
from asyncio import gather
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.host import Host
from ybs.config.own_providers import Endpoint
from ybs.config.schema import Config
from ybs.core.errors import ConfigError, YbsError
from ybs.providers.catalog import LOCAL_WINDOW, ModelFacts, answers_in_words, facts_of, over
from ybs.providers.facts import in_row, stated
from ybs.providers.http.client import HttpClient
from ybs.providers.nearby import find_servers
from ybs.providers.probe import find_props, find_rows, find_show, rows_by_name
from ybs.providers.reach import Reach, is_unused, list_models, look
from ybs.providers.registry import (
    Provider,
    chosen_name,
    chosen_provider,
    client_of,
    price_at,
    provider_names,
)
from ybs.providers.wire.loose_json import as_count
from ybs.providers.wires import adapter_of, clean_endpoint

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

    reach: Reach
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
        if config.incognito.enabled and config.incognito.local_only:
            return None
        if not everywhere and name != chosen_name(config):
            return None
    if not reach.is_ready:
        return None if is_unused(reach, config) else Reached(reach=reach)
    try:
        async with asyncio.timeout(REACH_SECONDS):
            return Reached(reach=reach, models=tuple(await _models_of(host, config, name)))
    except TimeoutError:
        return Reached(reach=reach, why=f"it did not answer within {REACH_SECONDS} seconds")
    except (YbsError, ImportError) as error:
        return Reached(reach=reach, why=str(error).split("\n", 1)[0])


async def _models_of(host: Host, config: Config, name: str) -> list[ReachedModel]:
    """Return a provider's models. Raises ConfigError and ModelError."""
    provider = chosen_provider(host, config, name)
    if provider.make is not None:
        names = await list_models(host, config, name)
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
