"""The built-in providers and wire formats by name, so that only the one that is used gets imported."""

from importlib import import_module
from typing import Any, Final

#: Name, and where its Provider stands.
BUILT_IN: Final = {
    "ollama": "wire.ollama:PROVIDER",
    "openai": "wire.openai:PROVIDER",
    "anthropic": "wire.anthropic:PROVIDER",
    "google": "wire.google:PROVIDER",
    "mistral": "wire.mistral:PROVIDER",
    "llamacpp": "local:PROVIDER",
    "apple": "apple:PROVIDER",
    "claude-cli": "cli:PROVIDER",
}
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
