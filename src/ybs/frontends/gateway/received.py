"""Input handling that channels share: joining texts, fetching files up to a size, reading settings."""

import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from ybs.core.decoding import decodable
from ybs.frontends.gateway.channel import BadSettingsError, ChannelError, UnreachableError
from ybs.providers.http.client import get, timed_chunks
from ybs.providers.http.transport import CutOff, Unreachable

T = TypeVar("T")
_SECONDS = 60.0


def settings_of(section: Mapping[str, Any], kind: type[T]) -> T:
    """Read a channel's entry in the settings, as far as it is the channel's own. Raises BadSettingsError, without a value of the entry."""
    try:
        return msgspec.convert(dict(section), decodable(kind))
    except msgspec.ValidationError as error:
        raise BadSettingsError(str(error)) from None


def encodable(text: str) -> str:
    """Return a text without halves of characters, which no file or database takes."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


async def fetched(
    url: str,
    most_bytes: int,
    headers: Mapping[str, str] | None = None,
    *,
    hosts: Sequence[str],
) -> bytes:
    """Return what lies at an address; `headers` go to no other place that it leads to. Raises ChannelError where it is larger, or not there.

    `hosts` are the platform's: their names (those below them too), and addresses of the settings. Nothing is asked for elsewhere.
    """
    if not any(is_at(url, each) for each in hosts):
        raise ChannelError("The file lies somewhere else than on the platform.")
    data = bytearray()
    try:
        async with get(url, headers or {}, seconds=_SECONDS) as answer:
            if answer.status != 200:
                raise ChannelError(f"The file cannot be fetched: {answer.status}.")
            async with aclosing(timed_chunks(answer, _SECONDS)) as pieces:
                async for piece in pieces:
                    data += piece
                    if len(data) > most_bytes:
                        raise too_large(most_bytes)
    except (Unreachable, CutOff) as error:
        raise UnreachableError("The file cannot be fetched.") from error
    return bytes(data)


def is_at(url: str, host: str) -> bool:
    """Return whether an address is of a host: of a name, by HTTPS alone, or of the origin of another address."""
    try:
        asked, known = urlsplit(url), urlsplit(host)
        if known.netloc:
            return (asked.scheme, asked.netloc) == (known.scheme, known.netloc)
        is_name = asked.scheme == "https" and re.fullmatch(r"[\w.-]+", asked.netloc, re.ASCII)
        return bool(is_name) and f".{asked.netloc}".endswith(f".{host}")
    except ValueError:
        return False


def part_of_path(text: str, pattern: str = r"[\w.=-]{1,255}") -> str:
    """Return an id of the platform as one part of an address. Raises ChannelError for one that is not made as ids are."""
    if not re.fullmatch(pattern, text, re.ASCII) or set(text) == {"."}:
        raise ChannelError("The address of the file is invalid.")
    return quote(text, safe="")


def too_large(most_bytes: int) -> ChannelError:
    """Return the error of a file that is larger than allowed."""
    return ChannelError(f"The file is larger than the {most_bytes / 1_000_000:.0f} MB allowed.")
