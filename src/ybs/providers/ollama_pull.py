"""Have an Ollama server download a model.

https://github.com/ollama/ollama/blob/main/docs/api.md#pull-a-model
"""

from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from ybs.core.errors import ProviderDown
from ybs.core.remedies import Remedy
from ybs.providers.http.client import HttpClient, Patience
from ybs.providers.http.failures import NotServed
from ybs.providers.wire.loose_json import as_text, count_at

#: What Ollama's registry answers to a name that it does not have.
_UNKNOWN: Final = "file does not exist"
#: Between two lines a layer may be checked, which takes long for a large one.
PATIENCE: Final = Patience(connect=5.0, first=120.0, later=600.0)


async def pull(client: HttpClient, model: str, progress: Callable[[int, int, str], None]) -> None:
    """Download a model and close the client; `progress` takes the bytes that are there, those that there will be, and what is done.

    Raises ModelError: the server is not there, does not know the model, or broke off. It keeps what has come.
    """
    provider = client.site.provider
    layers: dict[str, tuple[int, int]] = {}
    status = ""
    try:
        frames = client.stream("/api/pull", {"model": model, "stream": True}, framing="ndjson")
        async with aclosing(frames) as lines:
            async for line in lines:
                status = as_text(line.get("status"))
                if total := count_at(line, "total"):
                    layers[as_text(line.get("digest"))] = (count_at(line, "completed") or 0, total)
                done, whole = (
                    sum(column) for column in zip(*layers.values() or ((0, 0),), strict=True)
                )
                is_layer = bool(line.get("digest")) and status.startswith("pulling")
                progress(done, whole, "fetching" if is_layer else status)
    except ProviderDown as error:
        if _UNKNOWN not in str(error):
            raise
        raise NotServed(
            f"{provider} knows no model {model!r} to download.",
            remedies=(Remedy("do", "check its name, which is like qwen3:8b"),),
        ) from error
    finally:
        await client.aclose()
    if status != "success":
        raise ProviderDown(
            f"{provider} ended the download of {model} without saying that it succeeded (last: {status or 'nothing'})."
        )
