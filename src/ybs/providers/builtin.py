"""The built-in providers and wire formats by name, so that only the one that is used gets imported."""

from typing import Final

#: Name, and where its Provider stands.
BUILT_IN: Final = {
    "ollama": "wire.ollama:PROVIDER",
    "openai": "wire.openai:PROVIDER",
    "anthropic": "wire.anthropic:PROVIDER",
    "google": "wire.openai:GOOGLE",
    "mistral": "wire.openai:MISTRAL",
    "llamacpp": "local:PROVIDER",
}
#: Names that are settled and whose provider is still to come.
TO_COME: Final = ("apple", "claude-cli")
ADAPTERS: Final[dict[str, str]] = {
    "openai": "wire.openai:OpenAIAdapter",
    "ollama": "wire.ollama:OllamaAdapter",
    "anthropic": "wire.anthropic:AnthropicAdapter",
}
