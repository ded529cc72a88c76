"""The embedded default: a small model on this machine, served by llama.cpp in a process of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.config.schema import Config
from ybs.providers.local.facts import FACTS, STARTER_NAME

if TYPE_CHECKING:
    from ybs.providers.local.model import LlamaCppModel

__all__ = ["PROVIDER", "STARTER_NAME"]


def _make(config: Config, model: str | None, environ: Mapping[str, str]) -> "LlamaCppModel":
    from ybs.providers.local.model import LlamaCppModel  # not for a list of providers

    return LlamaCppModel(config, model or STARTER_NAME, environ)


PROVIDER = replace(FACTS, make=_make)
