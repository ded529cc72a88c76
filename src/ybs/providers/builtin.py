"""The built-in wire formats by name, so that only the one that is used gets imported, as of the providers in `config.presets`."""

from importlib import import_module
from typing import Any, Final

#: Name of a wire format, and where its Adapter stands.
WIRES: Final = {
    "openai": "wire.openai:OpenAIAdapter",
    "openai-responses": "wire.responses:ResponsesAdapter",
    "anthropic": "wire.anthropic:AnthropicAdapter",
    "google": "wire.google:GoogleAdapter",
    "mistral": "wire.mistral:MistralAdapter",
    "ollama": "wire.ollama:OllamaAdapter",
}


def import_built_in(place: str) -> Any:
    """Return the entry of a table."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"ybs.providers.{module}"), name)
