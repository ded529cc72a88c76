"""Ollama as a provider, and where it answers, as its own programs read it from the environment."""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Final

from ybs.core.errors import ConfigError, ProviderDown
from ybs.core.remedies import Remedy
from ybs.providers.http.client import HttpClient, Patience, host_of
from ybs.providers.http.failures import NotServed
from ybs.providers.registry import Provider
from ybs.providers.wire.loose_json import as_text, count_at
from ybs.providers.wire.ollama import OllamaAdapter

#: The port that Ollama listens on where nobody says another.
PORT: Final = 11434


def endpoint_in(environ: Mapping[str, str]) -> str:
    """Return the address that OLLAMA_HOST names; empty where it names none.

    Raises ConfigError for one that cannot be read: words must not go to another server instead.
    https://github.com/ollama/ollama/blob/main/envconfig/config.go
    """
    named = environ.get("OLLAMA_HOST", "").strip().strip("'\"").rstrip("/")
    if not named:
        return ""
    scheme, _, rest = named.rpartition("://")
    host, colon, port = rest.rpartition(":")
    if not colon or rest.endswith("]"):
        host, port = rest, {"http": "80", "https": "443"}.get(scheme, str(PORT))
    host = "127.0.0.1" if host in ("", "0.0.0.0") else host  # noqa: S104 - what it listens on, not where it is
    endpoint = f"{scheme or 'http'}://{host}:{port}"
    try:
        host_of(endpoint)
    except ConfigError as error:
        raise ConfigError(
            f"The variable OLLAMA_HOST is not an address: {named!r}. Set it like 127.0.0.1:{PORT}, or unset it."
        ) from error
    return endpoint


#: Ollama on this machine, or where OLLAMA_HOST says.
PROVIDER = Provider(
    name="ollama",
    wire="ollama",
    endpoint=f"http://localhost:{PORT}",
    locate=endpoint_in,
    model="qwen3:14b",
    key_variables=("OLLAMA_API_KEY",),
    needs_key=False,
    quirks=OllamaAdapter.quirks,
    start_advice="start it with `ollama serve`",
    model_advice="fetch it with `ollama pull {model}`",
)


#: What Ollama's registry answers to a name that it does not have.
_UNKNOWN: Final = "file does not exist"
#: Between two lines a layer may be checked, which takes long for a large one.
PATIENCE: Final = Patience(connect=5.0, first=120.0, later=600.0)


async def pull(client: HttpClient, model: str, progress: Callable[[int, int, str], None]) -> None:
    """Have Ollama download a model, and close the client; `progress` takes the bytes that are there, those that there will be, and what is done.

    https://github.com/ollama/ollama/blob/main/docs/api.md#pull-a-model

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
