"""The embedded default: a small model on this machine, served by llama.cpp in a process of its own."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.providers.local.facts import FACTS, STARTER_NAME

if TYPE_CHECKING:
    from ybs.providers.local.model import LlamaCppModel

__all__ = ["PROVIDER", "STARTER_NAME"]


def _make(host: Host, config: Config, model: str | None) -> "LlamaCppModel":
    from ybs.providers.local.model import LlamaCppModel  # not for a list of providers

    return LlamaCppModel(host, config, model or STARTER_NAME)


PROVIDER = replace(FACTS, make=_make)
