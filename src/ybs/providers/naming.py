"""What a provider is called where a person reads it."""

from ybs.config.schema import Config
from ybs.providers.http.client import unnamed_place
from ybs.providers.registry import chosen_name


def shown_name(name: str, config: Config) -> str:
    """Return a provider's name, or the address of an OpenAI-compatible server that is not OpenAI's."""
    own = config.providers.get(name)
    is_moved = name == chosen_name(config) and config.llm.endpoint
    endpoint = config.llm.endpoint if is_moved else own.endpoint if own is not None else ""
    return (endpoint and unnamed_place(name, endpoint)) or name
