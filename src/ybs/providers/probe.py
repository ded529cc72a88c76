"""Asking a server about itself: which models it has, and how large its window is."""

from typing import Any

from ybs.core.errors import ModelError
from ybs.providers.catalog import LOCAL_WINDOW
from ybs.providers.http.client import HttpClient
from ybs.providers.wire.adapter import Listing
from ybs.providers.wire.loose_json import as_list, as_object, as_text, at, count_at


async def find_models(client: HttpClient, listing: Listing) -> list[str]:
    """Return the names of the models that a server offers, sorted. Raises ModelError."""
    rows = await find_rows(client, listing) or ()
    names = (as_text(row.get(listing.name)) for row in rows)
    return sorted({each.removeprefix("models/") for each in names if each})


async def find_rows(client: HttpClient, listing: Listing) -> list[dict[str, Any]] | None:
    """Return what a server says of its models, None where its answer has no list. Raises ModelError."""
    rows = (await client.fetch("GET", listing.path)).get(listing.field)
    return [as_object(row) for row in as_list(rows)] if isinstance(rows, list) else None


async def find_window(
    client: HttpClient, wire: str, model: str, most: int = LOCAL_WINDOW
) -> int | None:
    """Return the window that a local server gives the model, or None where it does not say.

    Ollama: what the model's file sets, else what the model was made for, but no more than `most`:
    its memory is taken for every request. llama.cpp: what the server was started with.
    """
    try:
        if wire == "ollama":
            return window_in_show(await client.fetch("POST", "/api/show", {"model": model}), most)
        root = client.site.endpoint.removesuffix("/v1")
        props = await client.fetch("GET", f"{root}/props")
        return count_at(props, "default_generation_settings.n_ctx", "n_ctx") or None
    except ModelError:
        return None


def window_in_show(answer: dict[str, object], most: int = LOCAL_WINDOW) -> int | None:
    """Read the window out of the answer of Ollama's `/api/show`."""
    for line in as_text(answer.get("parameters")).splitlines():
        match line.split():
            case ["num_ctx", number] if _is_count(number):
                return int(number)
            case _:
                pass
    info = as_object(at(answer, "model_info"))
    key = next((key for key in info if key.endswith(".context_length")), "")
    made_for = count_at({"window": info.get(key)}, "window")
    return min(made_for, most) if made_for else None


def _is_count(word: str) -> bool:
    return word.isdecimal() and len(word) < 10 and int(word) > 0
