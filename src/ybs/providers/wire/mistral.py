"""Mistral's wire format: chat completions as OpenAI speaks them, but for a few habits (https://docs.mistral.ai/api)."""

from ybs.config.presets import CREDENTIALS
from ybs.providers.registry import Provider
from ybs.providers.wire.openai import OpenAIAdapter
from ybs.providers.wire.quirks import Quirks


class MistralAdapter(OpenAIAdapter):
    """Chat completions with short call ids, whose tool results an assistant message has to follow."""

    name = "mistral"
    quirks = Quirks(sends_stream_options=False, call_id_chars=9, wants_assistant_after_tool=True)


#: Mistral itself. Another address given for it is any server that speaks this format.
PROVIDER = Provider(
    name="mistral",
    wire="mistral",
    endpoint="https://api.mistral.ai/v1",
    model="mistral-medium-latest",
    key_variables=CREDENTIALS["mistral"],
    endpoint_variables=("MISTRAL_BASE_URL",),
    quirks=MistralAdapter.quirks,
)
