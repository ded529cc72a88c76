"""Where a model runs: on this machine, or anywhere else."""

from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.providers.http.client import host_of, is_loopback
from ybs.providers.registry import chosen_provider


def runs_here(host: Host, provider: str, model: str, config: Config) -> bool:
    """Return whether a model answers on this machine; another one in the same house does not count.

    A server here that passes words on cannot be seen, but for Ollama, which names such models:
    https://docs.ollama.com/cloud. Raises ConfigError for an unknown provider or an address that is none.
    """
    endpoint = chosen_provider(host, config, provider).endpoint
    return is_loopback(host_of(endpoint)) and not _is_passed_on(model)


def _is_passed_on(model: str) -> bool:
    tag = model.lower().rpartition(":")[2]
    return tag == "cloud" or tag.endswith("-cloud")
