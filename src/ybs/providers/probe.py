"""Asking a server about itself: which models it has, and what it tells of them."""

from contextlib import suppress
from typing import Any

from ybs.config.addresses import is_local
from ybs.core.errors import ModelError
from ybs.providers.catalog import LOCAL_WINDOW, ModelFacts, over
from ybs.providers.facts import in_props, in_row, in_show
from ybs.providers.http.client import HttpClient, host_of
from ybs.providers.wire.adapter import Listing
from ybs.providers.wire.loose_json import as_list, as_object, as_text, count_at


async def find_models(client: HttpClient, listing: Listing) -> list[str]:
    """Return the names of the models that a server offers, sorted. Raises ModelError."""
    return sorted(rows_by_name(await find_rows(client, listing) or [], listing))


async def find_rows(client: HttpClient, listing: Listing) -> list[dict[str, Any]] | None:
    """Return what a server says of its models, None where its answer has no list. Raises ModelError."""
    rows = (await client.fetch("GET", listing.path, bare=listing.field)).get(listing.field)
    return [as_object(row) for row in as_list(rows)] if isinstance(rows, list) else None


def rows_by_name(rows: list[dict[str, Any]], listing: Listing) -> dict[str, dict[str, Any]]:
    """Return the rows by the names of their models."""
    named = ((as_text(row.get(listing.name)).removeprefix("models/"), row) for row in rows)
    return {name: row for name, row in named if name}


async def find_facts(
    client: HttpClient, wire: str, listing: Listing, model: str, most: int = LOCAL_WINDOW
) -> ModelFacts:
    """Return what a server tells of a model; nothing where it fails. Of Ollama's window no more than `most` is taken."""
    if wire == "ollama":
        return await find_show(client, model, most)
    told = await find_props(client) if wire == "openai" else ModelFacts()
    if told.window is None:
        with suppress(ModelError):
            rows = rows_by_name(await find_rows(client, listing) or [], listing)
            told = over(told, in_row(rows.get(model, {})))
    if told.window is None and wire == "openai":
        told = over(told, await _find_loaded(client, model))
    return told


async def _find_loaded(client: HttpClient, model: str) -> ModelFacts:
    """Return the window that LM Studio nearby has loaded a model with; nothing where it does not tell.

    https://lmstudio.ai/docs/developer/rest/endpoints
    """
    if not is_local(host_of(client.site.endpoint)):
        return ModelFacts()
    listing = Listing(f"{client.site.endpoint.removesuffix('/v1')}/api/v0/models")
    try:
        row = rows_by_name(await find_rows(client, listing) or [], listing).get(model, {})
    except ModelError:
        return ModelFacts()
    return ModelFacts(window=count_at(row, "loaded_context_length") or None)


async def find_show(client: HttpClient, model: str, most: int = LOCAL_WINDOW) -> ModelFacts:
    """Return what Ollama tells of a model; nothing where it fails."""
    try:
        return in_show(await client.fetch("POST", "/api/show", {"model": model}), most)
    except ModelError:
        return ModelFacts()


async def find_props(client: HttpClient) -> ModelFacts:
    """Return what a server nearby tells of the one model that it has, as llama.cpp's does; nothing where it does not."""
    if not is_local(host_of(client.site.endpoint)):
        return ModelFacts()
    root = client.site.endpoint.removesuffix("/v1")
    try:
        return in_props(await client.fetch("GET", f"{root}/props"))
    except ModelError:
        return ModelFacts()
