"""Where a model runs: on this machine, in the same network, or anywhere else."""

from typing import Literal

from ybs.config.addresses import is_local, is_loopback
from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.providers.catalog import is_passed_on
from ybs.providers.http.client import host_of
from ybs.providers.registry import chosen_provider


def runs_here(host: Host, provider: str, model: str, config: Config) -> bool:
    """Return whether a model answers on this machine; another one in the same house does not count.

    A server here that passes words on cannot be seen, but for Ollama, which names such models:
    https://docs.ollama.com/cloud. Raises ConfigError for an unknown provider or an invalid address.
    """
    return distance(host, provider, model, config) == 0


def distance(host: Host, provider: str, model: str, config: Config) -> Literal[0, 1, 2]:
    """Return how far the words go: 0 stays on this machine, 1 in a private network. Raises ConfigError as `runs_here` does."""
    server = host_of(chosen_provider(host, config, provider).endpoint)
    if is_passed_on(model):
        return 2
    if is_loopback(server):
        return 0
    return 1 if is_local(server) else 2
