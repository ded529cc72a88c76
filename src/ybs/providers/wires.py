"""The wire formats by their names: built in, or installed (`ybs.wires`)."""

from urllib.parse import urlsplit

from msgspec.structs import replace

from ybs.config.presets import preset_at
from ybs.core.errors import ConfigError
from ybs.providers.builtin import WIRES, import_built_in
from ybs.providers.http.client import host_of
from ybs.providers.wire.adapter import Adapter, with_path
from ybs.providers.wire.quirks import Quirks


def clean_endpoint(endpoint: str, wire: str) -> str:
    """Bring an address into the form that the adapter's path is joined to.

    It may be given with or without a version, a slash at its end, or the path of the chat call; its query is left out.
    Raises ConfigError for what is not an http address, and for an unknown wire format.
    """
    preset = preset_at(host_of(endpoint))
    place = endpoint.split("?", 1)[0].rstrip("/")
    if preset and wire == "openai":
        place = with_path(place, urlsplit(preset.endpoint).path)
    return adapter_of(wire).base(place)


def query_of(endpoint: str) -> str:
    """Return the query of an address, such as Azure's `api-version=…`; it may be secret and is in no message."""
    return urlsplit(endpoint).query


def adapter_of(wire: str) -> Adapter:
    """Return a new instance of what speaks a wire format, built in or installed (`ybs.wires`). Raises ConfigError for an unknown one."""
    if (place := WIRES.get(wire)) is not None:
        return import_built_in(place)()
    from ybs.config.installed import installed  # built-in ones are found by a table

    offered = {each.name: each for each in installed() if each.group == "ybs.wires"}
    if wire not in offered:
        raise ConfigError(
            f"There is no wire format {wire!r}. The wire formats are: {', '.join((*WIRES, *offered))}"
        )
    return offered[wire].load()()


def quirks_at(endpoint: str, quirks: Quirks) -> Quirks:
    """Return a format's quirks as the server at this address has them. Raises ConfigError for what is not an address."""
    preset = preset_at(host_of(endpoint))
    return replace(quirks, **preset.quirks) if preset else quirks
