"""How servers elsewhere are reached, from the settings: the proxy, and certificates of one's own."""

from ybs.config.host import Host
from ybs.config.schema import Config
from ybs.core.errors import ConfigError
from ybs.providers.http.transport import Route


def route_of(host: Host, config: Config) -> Route:
    """Return how servers elsewhere are reached, Raises ConfigError for what cannot be."""
    proxy, ca_file = config.network.proxy, config.network.ca_file
    if proxy is not None and not proxy.startswith(("http://", "https://")):
        raise ConfigError(
            "network.proxy: this is not an address. Write it like http://proxy.example:3128"
        )
    path = host.expand(ca_file, host.home) if ca_file else None
    if path is not None and not path.is_file():
        raise ConfigError(f"network.ca_file: there is no file {path}")
    return Route(proxy=proxy, ca_file=str(path) if path else None)
