"""The embedded default: a small model on this machine, served by llama.cpp in a process of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ybs.config.schema import Config
from ybs.providers.registry import Provider
from ybs.providers.wire.quirks import Quirks

if TYPE_CHECKING:
    from ybs.providers.local.model import LlamaCppModel


def _make(config: Config, model: str | None, environ: Mapping[str, str]) -> "LlamaCppModel":
    from ybs.providers.local.model import LlamaCppModel  # imports this module's PROVIDER

    return LlamaCppModel(config, model or STARTER_NAME, environ)


STARTER_NAME = "qwen2.5-coder-1.5b"
PROVIDER = Provider(
    name="llamacpp",
    wire="openai",
    endpoint="http://127.0.0.1:8080/v1",
    model=STARTER_NAME,
    needs_key=False,
    quirks=Quirks(sees_images=False, arguments_as_object=False),
    start_advice="start `llama-server` (or unset llm.endpoint)",
    make=_make,
)
