"""Probe a server: whether it answers, whether it needs a key, and its models."""

import asyncio
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import AuthError, ModelError, ProviderDown
from ybs.providers.catalog import answers_in_words
from ybs.providers.facts import find_models
from ybs.providers.http.client import HttpClient, Patience
from ybs.providers.http.failures import Site
from ybs.providers.registry import Provider, client_of
from ybs.providers.wire.adapter import ModelListing
from ybs.providers.wire.quirks import Quirks
from ybs.providers.wires import adapter_of, clean_endpoint, query_of, quirks_at

PATIENCE_SECONDS: Final = 5.0
PATIENCE: Final = Patience(connect=PATIENCE_SECONDS, first=PATIENCE_SECONDS, later=PATIENCE_SECONDS)
#: `locked`: it answers 401 or 403; `odd`: it answers with something else than a list of models.
State: TypeAlias = Literal["open", "locked", "odd", "silent"]


class ProbeResult(Struct, frozen=True):
    """What a server answered: the names of its models, or why there are none."""

    state: State
    models: tuple[str, ...] = ()
    why: str = ""


async def probe(endpoint: str, key: str = "") -> ProbeResult:
    """Ask an OpenAI-compatible server for its models, with a key where there is one. Raises ConfigError for what is not an address."""
    address = clean_endpoint(endpoint, "openai")
    host = address.partition("://")[2].partition("/")[0].rpartition("@")[2]
    header = quirks_at(address, Quirks()).key_header
    known = {header: key} if header else {"authorization": f"Bearer {key}"}
    client = HttpClient(
        Site(provider="the server", endpoint=address, host=host, query=query_of(endpoint)),
        patience=PATIENCE,
        headers=known if key else {},
        secret=key or None,
    )
    return await _listed(client, ModelListing())


async def try_key(host: Host, provider: Provider, key: str) -> ProbeResult:
    """Ask a provider for its models with a key, sent as a session would send it. Raises ConfigError."""
    client = client_of(host, replace(provider, api_key=key), Config(), patience=PATIENCE)
    return await _listed(client, adapter_of(provider.wire).listing)


async def _listed(client: HttpClient, listing: ModelListing) -> ProbeResult:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            found = await find_models(client, listing)
    except AuthError as error:
        return ProbeResult("locked", why=str(error))
    except (ProviderDown, TimeoutError) as error:
        return ProbeResult("silent", why=str(error))
    except ModelError as error:
        return ProbeResult("odd", why=str(error))
    finally:
        await client.aclose()
    return ProbeResult("open", tuple(name for name in found if answers_in_words(name)))
