"""Servers that are asked which models they have, without a session: those on usual ports of this machine, and one that the person named."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ybs.config.addresses import is_loopback, other_user_at
from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import AuthError, ConfigError, ModelError, ProviderDown
from ybs.core.time_limits import time_limit
from ybs.providers.catalog import answers_in_words
from ybs.providers.facts import find_models, find_rows
from ybs.providers.http.client import HttpClient, Patience, host_of, port_of
from ybs.providers.http.failures import Site
from ybs.providers.registry import Provider, client_of
from ybs.providers.wire.adapter import ModelListing
from ybs.providers.wire.loose_json import as_count, as_text
from ybs.providers.wire.ollama import endpoint_in
from ybs.providers.wire.quirks import Quirks
from ybs.providers.wires import adapter_of, clean_endpoint, query_of, quirks_at

#: A server on this machine tells what it has within this time.
PATIENCE_SECONDS: Final = 0.6
OLLAMA: Final = "http://localhost:11434"
#: Usual ports, and what is most likely there: the name for people, and the provider's name.
PORTS: Final = {
    8080: ("llama.cpp", "llama-server"),
    1234: ("LM Studio", "lmstudio"),
    8000: ("vLLM", "vllm"),
}
#: What servers call themselves in their lists of models.
_MAKERS: Final = {"llamacpp": PORTS[8080], "vllm": PORTS[8000]}
_MOST_MODELS: Final = 200


class NearModel(Struct, frozen=True, kw_only=True):
    """A model that a server has; its size where the server says it."""

    name: str
    size_bytes: int | None = None


class NearServer(Struct, frozen=True, kw_only=True):
    """A server on this machine. `title` is for people, `provider` is its name in the settings; `owner` names another user whose it is."""

    title: str
    provider: str
    wire: str
    endpoint: str
    models: tuple[NearModel, ...]
    owner: str = ""


async def find_servers(environ: Mapping[str, str]) -> list[NearServer]:
    """Ask the usual ports of this machine at the same time; who does not answer in time is not there."""
    asked = [ask_ollama(ollama_endpoint(environ))]
    asked += [ask_openai(f"http://127.0.0.1:{port}/v1") for port in PORTS]
    return [server for server in await asyncio.gather(*asked) if server is not None]


def ollama_endpoint(environ: Mapping[str, str]) -> str:
    """Return where Ollama answers: OLLAMA_HOST where it names this machine, else the usual place."""
    try:
        endpoint = endpoint_in(environ)
        is_here = endpoint.startswith("http:") and is_loopback(host_of(endpoint))
    except ConfigError:
        return OLLAMA
    return endpoint if is_here else OLLAMA


async def ask_ollama(endpoint: str) -> NearServer | None:
    """Ask an Ollama on this machine for its models; None where none answers."""
    rows = await _rows(endpoint, "ollama")
    if rows is None:
        return None
    models = _models(rows, "ollama")
    return NearServer(
        title="ollama",
        provider="ollama",
        wire="ollama",
        endpoint=endpoint,
        models=models,
        owner=await owner_of(endpoint),
    )


async def ask_openai(endpoint: str) -> NearServer | None:
    """Ask an OpenAI-compatible server on this machine for its models; None where it has none."""
    rows = await _rows(endpoint, "openai") or []
    if not (models := _models(rows, "openai")):
        return None
    port = port_of(endpoint)
    unknown = (f"server on port {port}", f"local-{port}")
    usual = PORTS.get(port, unknown)
    title, provider = _MAKERS.get(as_text(rows[0].get("owned_by")).lower(), usual)
    return NearServer(
        title=title,
        provider=provider,
        wire="openai",
        endpoint=endpoint,
        models=models,
        owner=await owner_of(endpoint),
    )


async def owner_of(endpoint: str) -> str:
    """Return the name of another user of this machine whose server this is; empty where it is nobody else's, or not known."""
    return await asyncio.to_thread(other_user_at, host_of(endpoint), port_of(endpoint))


def _models(rows: list[dict[str, Any]], wire: str) -> tuple[NearModel, ...]:
    """Keep the names that can be shown, written down and talked to."""
    field = adapter_of(wire).listing.name
    models = (
        NearModel(name=as_text(row.get(field)), size_bytes=as_count(row.get("size")) or None)
        for row in rows[:_MOST_MODELS]
    )
    return tuple(model for model in models if answers_in_words(model.name))


async def _rows(endpoint: str, wire: str) -> list[dict[str, Any]] | None:
    """Ask a server for its models, without any key. Nobody beyond this machine is asked."""
    if not is_loopback(host_of(endpoint)):
        return None
    patience = Patience(connect=PATIENCE_SECONDS, first=PATIENCE_SECONDS, later=PATIENCE_SECONDS)
    client = HttpClient(Site(provider="local", endpoint=endpoint, host=endpoint), patience=patience)
    try:
        async with time_limit(PATIENCE_SECONDS):
            return await find_rows(client, adapter_of(wire).listing)
    except (ModelError, TimeoutError):
        return None
    finally:
        await client.aclose()


PROBE_SECONDS: Final = 5.0
PROBE_PATIENCE: Final = Patience(connect=PROBE_SECONDS, first=PROBE_SECONDS, later=PROBE_SECONDS)
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
        patience=PROBE_PATIENCE,
        headers=known if key else {},
        secret=key or None,
    )
    return await _listed(client, ModelListing())


async def try_key(host: Host, provider: Provider, key: str) -> ProbeResult:
    """Ask a provider for its models with a key, sent as a session would send it. Raises ConfigError."""
    client = client_of(host, replace(provider, api_key=key), Config(), patience=PROBE_PATIENCE)
    return await _listed(client, adapter_of(provider.wire).listing)


async def _listed(client: HttpClient, listing: ModelListing) -> ProbeResult:
    try:
        async with time_limit(PROBE_SECONDS):
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
