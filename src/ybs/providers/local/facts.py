"""The facts of the embedded default: its name, its model and what llama.cpp can do."""

from ybs.providers.registry import Provider
from ybs.providers.wire.quirks import Quirks

STARTER_NAME = "qwen2.5-coder-1.5b"
FACTS = Provider(
    name="llamacpp",
    wire="openai",
    endpoint="http://127.0.0.1:8080/v1",
    model=STARTER_NAME,
    needs_key=False,
    quirks=Quirks(
        sees_images=False,
        arguments_as_object=False,
        takes_grammar=True,
        extra_body={"return_progress": True},
    ),
    start_advice="start `llama-server` (or unset llm.endpoint)",
)
