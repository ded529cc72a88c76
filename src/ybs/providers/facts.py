"""Facts of a model from whoever tells them: the person's entries, its server, the catalog."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Final

from msgspec.structs import replace

from ybs.config.addresses import is_local
from ybs.config.schema import Config
from ybs.config.sections import ModelEntry
from ybs.core.errors import ModelError
from ybs.providers.catalog import (
    GUIDED_BILLIONS,
    LOCAL_WINDOW,
    SMALL_BILLIONS,
    ModelFacts,
    Price,
    billions_of,
    facts_of,
    over,
)
from ybs.providers.http.client import HttpClient, host_of
from ybs.providers.wire.adapter import ModelListing
from ybs.providers.wire.loose_json import as_list, as_object, as_text, at, count_at
from ybs.providers.wire.quirks import Quirks

#: Where rows of lists of models have their window and their longest answer: vLLM, OpenRouter and Together, Groq,
#: Mistral, Anthropic, Google; the last of these and OpenRouter, Groq, Anthropic, Google.
_WINDOWS: Final = (
    *("max_model_len", "context_length", "context_window", "max_context_length"),
    *("max_input_tokens", "inputTokenLimit"),
)
_OUTPUTS: Final = (
    "top_provider.max_completion_tokens",
    "max_completion_tokens",
    "outputTokenLimit",
)
#: Quirks, and the facts that say whether they hold.
_ABILITIES: Final = {
    "accepts_temperature": "accepts_temperature",
    "sees_images": "sees_images",
    "takes_tools": "calls_tools",
}


def stated(config: Config, provider: str, model: str) -> ModelFacts:
    """Return the facts in the person's `models` about a provider's model."""
    entry = config.models.get(f"{provider}/{model}") or config.models.get(model)
    if entry is None:
        return ModelFacts()
    return ModelFacts(
        window=entry.window,
        max_output=entry.max_output,
        price=_stated_price(entry),
        sees_images=entry.sees_images,
        thinks=entry.thinks,
        accepts_temperature=entry.accepts_temperature,
        calls_tools=entry.calls_tools,
    )


def known(config: Config, provider: str, model: str) -> ModelFacts:
    """Return the facts about a model before its server is asked."""
    return over(stated(config, provider, model), facts_of(model))


def fitted(quirks: Quirks, facts: ModelFacts, stated: ModelFacts | None = None) -> Quirks:
    """Return quirks without what a model is known not to do, and with what the person states that it does."""
    changes: dict[str, Any] = {}
    for quirk, fact in _ABILITIES.items():
        if getattr(facts, fact) is False:
            changes[quirk] = False
        elif getattr(stated, fact, None):
            changes[quirk] = True
    if quirks.effort_form == "level" and facts.takes_budget:
        changes["effort_form"] = "budget"
    return replace(quirks, **changes)


def guided(quirks: Quirks, facts: ModelFacts, billions: float | None) -> Quirks:
    """Return the quirks with which one of the smallest models is told by a grammar what it may write next.

    llama.cpp takes a grammar or tools, not both, so calls are then written as text.
    """
    if not facts.takes_grammar or billions is None or billions > GUIDED_BILLIONS:
        return quirks
    return replace(quirks, takes_grammar=True, takes_tools=False)


def fitting_temperature(
    asked: float | None, billions: float | None, facts: ModelFacts
) -> float | None:
    """Return the temperature to ask for; None leaves it to the server. Whoever sets one wants it.

    A small model keeps to its task only without chance; one that thinks repeats itself without any.
    """
    if asked is not None or facts.thinks or billions is None or billions > SMALL_BILLIONS:
        return asked
    return 0.0


def in_show(answer: Mapping[str, Any], most: int = LOCAL_WINDOW) -> ModelFacts:
    """Read the answer of Ollama's `/api/show`.

    The window is what the model's file sets, else what the model was made for, but no more than `most`: Ollama takes
    memory for all of it. https://docs.ollama.com/api-reference/show-model-details
    """
    can = as_list(answer.get("capabilities"))
    return ModelFacts(
        window=_window_in_show(answer, most),
        sees_images="vision" in can if can else None,
        thinks="thinking" in can if can else None,
        calls_tools="tools" in can if can else None,
    )


def in_props(answer: Mapping[str, Any]) -> ModelFacts:
    """Read the answer of llama.cpp's `/props`: the window is what the server was started with.

    Requests may name its model by any word; the name of the model's file mostly says which one it is.
    """
    sees = at(answer, "modalities.vision")
    file = PurePath(as_text(answer.get("model_path"))).name
    catalogued = facts_of(file)
    return ModelFacts(
        window=count_at(answer, "default_generation_settings.n_ctx", "n_ctx") or None,
        billions=billions_of(file),
        sees_images=sees if isinstance(sees, bool) else None,
        thinks=catalogued.thinks,
        calls_tools=catalogued.calls_tools,
        takes_grammar="default_generation_settings" in answer or None,
    )


def in_row(row: Mapping[str, Any]) -> ModelFacts:
    """Read what a list of models says of one of them, as far as the servers named above do; an alias of vLLM's has its model as `root`."""
    takes = as_list(row.get("supported_parameters"))
    sees = as_list(at(row, "architecture.input_modalities"))
    return ModelFacts(
        window=count_at(row, *_WINDOWS) or None,
        billions=billions_of(PurePath(as_text(row.get("root"))).name),
        max_output=count_at(row, *_OUTPUTS) or None,
        price=_price_in(as_object(row.get("pricing"))),
        sees_images="image" in sees if sees else None,
        thinks="reasoning" in takes if takes else None,
        accepts_temperature="temperature" in takes if takes else None,
        calls_tools="tools" in takes if takes else None,
    )


def _stated_price(entry: ModelEntry) -> Price | None:
    read, written = entry.input_price, entry.output_price
    if read is None or written is None:
        return None
    cached = read if entry.cached_price is None else entry.cached_price
    return Price(read, written, cached, entry.cache_write_price)


def _price_in(pricing: Mapping[str, Any]) -> Price | None:
    """Read dollars per token (https://openrouter.ai/docs/api-reference/list-available-models)."""
    read, written = _dollars(pricing, "prompt"), _dollars(pricing, "completion")
    if read is None or written is None:
        return None
    cached = _dollars(pricing, "input_cache_read")
    write = _dollars(pricing, "input_cache_write")
    return Price(read, written, read if cached is None else cached, write)


def _dollars(pricing: Mapping[str, Any], name: str) -> float | None:
    """Return dollars per million tokens; None for what is not a price (-1: it depends)."""
    try:
        found = float(as_text(pricing.get(name)))
    except ValueError:
        return None
    return round(found * 1_000_000, 6) if 0 <= found < 1 else None


def _window_in_show(answer: Mapping[str, Any], most: int) -> int | None:
    for line in as_text(answer.get("parameters")).splitlines():
        match line.split():
            case ["num_ctx", number] if _is_count(number):
                return int(number)
            case _:
                pass
    info = as_object(answer.get("model_info"))
    key = next((key for key in info if key.endswith(".context_length")), "")
    made_for = count_at({"window": info.get(key)}, "window")
    return min(made_for, most) if made_for else None


def _is_count(word: str) -> bool:
    return word.isdecimal() and len(word) < 10 and int(word) > 0


async def find_models(client: HttpClient, listing: ModelListing) -> list[str]:
    """Return the names of the models that a server offers, sorted. Raises ModelError."""
    return sorted(rows_by_name(await find_rows(client, listing) or [], listing))


async def find_rows(client: HttpClient, listing: ModelListing) -> list[dict[str, Any]] | None:
    """Return a server's facts about its models; None if its answer has no list. Raises ModelError."""
    rows = (await client.fetch("GET", listing.path, bare=listing.field)).get(listing.field)
    return [as_object(row) for row in as_list(rows)] if isinstance(rows, list) else None


def rows_by_name(rows: list[dict[str, Any]], listing: ModelListing) -> dict[str, dict[str, Any]]:
    """Return the rows by the names of their models."""
    named = ((as_text(row.get(listing.name)).removeprefix("models/"), row) for row in rows)
    return {name: row for name, row in named if name}


async def find_facts(
    client: HttpClient, wire: str, listing: ModelListing, model: str, most: int = LOCAL_WINDOW
) -> ModelFacts:
    """Return a server's facts about a model; none if it fails. Ollama's window is limited to `most`."""
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
    listing = ModelListing(f"{client.site.endpoint.removesuffix('/v1')}/api/v0/models")
    try:
        row = rows_by_name(await find_rows(client, listing) or [], listing).get(model, {})
    except ModelError:
        return ModelFacts()
    return ModelFacts(window=count_at(row, "loaded_context_length") or None)


async def find_show(client: HttpClient, model: str, most: int = LOCAL_WINDOW) -> ModelFacts:
    """Return Ollama's facts about a model; none if it fails."""
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
