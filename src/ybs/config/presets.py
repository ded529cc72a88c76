"""The built-in providers: data, and nothing else.

Some have a module; the others, the presets, need no more than an address, the variable of a key and a few quirks.
These speak OpenAI's chat completions. None has a model of its own: the server is asked which it has.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

#: Name, and where in `ybs.providers` its Provider stands, so that only the one that is used gets imported.
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


class Preset(Struct, frozen=True, kw_only=True):
    """A provider. `quirks` hold for its host and those below it, and for those of `hosts`, whatever a provider there is called.

    `address_variable` holds the address of one that has another for everybody; `endpoint` then says only how it looks.
    """

    endpoint: str
    key_variable: str
    hosts: tuple[str, ...] = ()
    quirks: dict[str, Any] = {}
    address_variable: str = ""
    #: Half a sentence for one on this machine, which needs no key.
    start_advice: str = ""


#: The variables, patterns among them, that hold the keys and logins of the other providers, and of agents that are programs: what starts or
#: reaches one takes them from here, and no project's server or tool gets them.
CREDENTIALS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "mistral": ("MISTRAL_API_KEY",),
    "ollama": ("OLLAMA_API_KEY",),
    "agent claude": (
        *("ANTHROPIC_*", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_*", "CLAUDE_CODE_SKIP_*"),
    ),
    "agent codex": ("OPENAI_*", "CODEX_API_KEY"),
    "agent gemini": ("GEMINI_*", "GOOGLE_API_KEY"),
    "agent opencode": (
        *("OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"),
    ),
}
#: Those of clouds that agents reach their models by; a server may have its own use for them, so they are keys only where the settings name an agent.
CLOUDS: Final = (*("AWS_*", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUD_ML_REGION", "GOOGLE_CLOUD_*"),)

PRESETS: Final = {
    # https://openrouter.ai/docs/api-reference/overview
    "openrouter": Preset(
        endpoint="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        quirks={"effort_form": "object"},
    ),
    # https://api-docs.deepseek.com/guides/thinking_mode: thinking before calls is to be sent back
    "deepseek": Preset(
        endpoint="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        quirks={"reasoning_sent_as": "reasoning_content"},
    ),
    # https://console.groq.com/docs/openai
    "groq": Preset(endpoint="https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"),
    # https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle: a model is a deployment's name
    "azure": Preset(
        endpoint="https://NAME.openai.azure.com/openai/v1",
        key_variable="AZURE_OPENAI_API_KEY",
        address_variable="AZURE_OPENAI_ENDPOINT",
        hosts=("openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"),
        quirks={"key_header": "api-key"},
    ),
    # https://docs.together.ai/docs/openai-api-compatibility
    "together": Preset(endpoint="https://api.together.xyz/v1", key_variable="TOGETHER_API_KEY"),
    # https://docs.fireworks.ai/tools-sdks/openai-compatibility
    "fireworks": Preset(
        endpoint="https://api.fireworks.ai/inference/v1", key_variable="FIREWORKS_API_KEY"
    ),
    # https://lmstudio.ai/docs/developer/openai-compat
    "lmstudio": Preset(
        endpoint="http://127.0.0.1:1234/v1",
        key_variable="LM_API_TOKEN",
        start_advice="start it with `lms server start`",
    ),
    # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
    "vllm": Preset(
        endpoint="http://127.0.0.1:8000/v1",
        key_variable="VLLM_API_KEY",
        start_advice="start it with `vllm serve MODEL`",
    ),
}


def preset_at(host: str) -> Preset | None:
    """Return the preset whose servers have this host name; none for those on this machine."""
    for preset in PRESETS.values():
        own = preset.hosts or (preset.endpoint.split("/")[2],)
        if any(host == each or host.endswith(f".{each}") for each in own):
            return preset
    return None
