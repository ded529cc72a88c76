"""Ollama as a provider, and where it answers, as its own programs read it from the environment."""

from collections.abc import Mapping
from typing import Final

from ybs.core.errors import ConfigError
from ybs.providers.http.client import host_of
from ybs.providers.registry import Provider
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
