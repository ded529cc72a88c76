"""Input handling that channels share: joining texts, fetching files up to a size, reading settings."""

from collections.abc import Mapping
from typing import Any, TypeVar

import httpx2
import msgspec

from ybs.frontends.gateway.channel import BadSettingsError, ChannelError, UnreachableError

T = TypeVar("T")


def settings_of(section: Mapping[str, Any], kind: type[T]) -> T:
    """Read a channel's entry in the settings, as far as it is the channel's own. Raises BadSettingsError, without a value of the entry."""
    try:
        return msgspec.convert(dict(section), kind)
    except msgspec.ValidationError as error:
        raise BadSettingsError(str(error)) from None


def encodable(text: str) -> str:
    """Return a text without halves of characters, which no file or database takes."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


async def fetched(url: str, most_bytes: int, headers: Mapping[str, str] | None = None) -> bytes:
    """Return what lies at an address; `headers` go to no other place that it leads to. Raises ChannelError where it is larger, or not there."""
    data = bytearray()
    try:
        async with (
            httpx2.AsyncClient(timeout=60) as client,
            client.stream("GET", url, headers=headers or {}) as answer,
        ):
            if answer.status_code != 200:
                raise ChannelError(f"The file cannot be fetched: {answer.status_code}.")
            async for piece in answer.aiter_bytes():
                data += piece
                if len(data) > most_bytes:
                    raise too_large(most_bytes)
    except httpx2.HTTPError as error:
        raise UnreachableError("The file cannot be fetched.") from error
    return bytes(data)


def too_large(most_bytes: int) -> ChannelError:
    """Return the error of a file that is larger than allowed."""
    return ChannelError(f"The file is larger than the {most_bytes / 1_000_000:.0f} MB allowed.")
