"""How models and MCP servers elsewhere are reached, as the settings say it."""

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

NotEmpty: TypeAlias = Annotated[str, Meta(min_length=1)]
#: How many of something, and how much money; other settings have them too.
Most: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Usd: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]


class Network(Struct, frozen=True, kw_only=True):
    """How models and MCP servers that do not run on this machine are reached."""

    proxy: NotEmpty | None = None
    """The address of an HTTP proxy, `http://HOST:PORT`. Unset: that of the environment (`HTTPS_PROXY`,
    `NO_PROXY`, …)."""
    ca_file: NotEmpty | None = None
    """A file with certificates (PEM) that are trusted beside the system's. `SSL_CERT_FILE` is honoured too,
    in their place."""

    def __repr__(self) -> str:
        # A proxy's password must not reach a log by way of a representation.
        return f"Network(ca_file={self.ca_file!r})"
