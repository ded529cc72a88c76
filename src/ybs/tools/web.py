"""Fetch a page of the public web for a tool: bounded in size and time, and never from this machine or its network.

The address is looked up once, judged, and the connection goes to what was judged, so that a name that means another address a moment later leads nowhere.
Each redirect is judged anew.
"""

import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import httpx2
from msgspec import Struct

from ybs.config.addresses import loopback_hosts

MOST_BYTES: Final = 2_000_000
SECONDS: Final = 20.0
_MOST_REDIRECTS = 5
#: IPv6 addresses that stand for an IPv4 address, which may be any.
_WRAPPING = [ipaddress.ip_network(each) for each in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")]
_AGENT = "Mozilla/5.0 (compatible; ybs)"


class NotFetched(Exception):
    """Nothing was fetched; the text says why."""


class WebPage(Struct, frozen=True, kw_only=True):
    """What an address holds. `is_cut`: there is more than could be fetched."""

    url: str
    content_type: str
    data: bytes
    encoding: str
    is_cut: bool = False

    @property
    def text(self) -> str:
        """The content as text."""
        with suppress(LookupError):
            return self.data.decode(self.encoding, errors="replace")
        return self.data.decode(errors="replace")


def fetch(
    url: str,
    *,
    headers: dict[str, str] | None = None,
    params: dict[str, str] | None = None,
    is_trusted: bool = False,
    most_bytes: int = MOST_BYTES,
) -> WebPage:
    """Fetch an http or https address. `is_trusted`: the person named it, so it may be on this machine. Raises NotFetched."""
    target = httpx2.URL(url, params=params) if params else _url(url)
    for _ in range(_MOST_REDIRECTS + 1):
        try:
            found = _fetch_once(target, headers or {}, is_trusted=is_trusted, most_bytes=most_bytes)
        except (httpx2.HTTPError, OSError) as error:
            raise NotFetched(f"{target.host} could not be reached: {error}") from error
        if isinstance(found, WebPage):
            return found
        headers, is_trusted = {}, False  # what was meant for one server is not for the next
        target = target.join(found)
    raise NotFetched(f"{url} redirects more than {_MOST_REDIRECTS} times")


def is_public(address: str) -> bool:
    """Return whether an address is one of the public network, and means no other one."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return is_public(str(found.ipv4_mapped))
        if found.is_site_local or any(found in each for each in _WRAPPING):
            return False
    return found.is_global and not found.is_multicast


def _url(text: str) -> httpx2.URL:
    try:
        url = httpx2.URL(text.strip())
    except httpx2.InvalidURL as error:
        raise NotFetched(f"{text!r} is not an address: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise NotFetched(
            f"{text!r} is not the address of a page: it begins with http:// or https://"
        )
    return url


def _fetch_once(
    url: httpx2.URL, headers: dict[str, str], *, is_trusted: bool, most_bytes: int
) -> WebPage | str:
    """Fetch what is there, or return where it has moved."""
    url = _url(str(url))
    address = _checked(url, is_trusted=is_trusted)
    host = f"[{url.host}]" if ":" in url.host else url.host
    named = {
        "Host": host if url.port is None else f"{host}:{url.port}",
        "User-Agent": _AGENT,
        **headers,
    }
    extensions: dict[str, Any] = {"sni_hostname": url.host}
    with (
        httpx2.Client(timeout=SECONDS, trust_env=False, follow_redirects=False) as client,
        client.stream(
            "GET", url.copy_with(host=address), headers=named, extensions=extensions
        ) as answer,
    ):
        if answer.is_redirect and "location" in answer.headers:
            return str(answer.headers["location"])
        if answer.status_code >= 400:
            raise NotFetched(f"{url} answers {answer.status_code} {answer.reason_phrase}".strip())
        data = bytearray()
        for piece in answer.iter_bytes():
            data += piece
            if len(data) > most_bytes:
                break
        return WebPage(
            url=str(url),
            content_type=str(answer.headers.get("content-type", ""))
            .partition(";")[0]
            .strip()
            .lower(),
            data=bytes(data[:most_bytes]),
            encoding=answer.encoding or "utf-8",
            is_cut=len(data) > most_bytes,
        )


def _checked(url: httpx2.URL, *, is_trusted: bool) -> str:
    """Return the address to connect to. Raises NotFetched where any that the name means is not public."""
    port = url.port or (443 if url.scheme == "https" else 80)
    addresses = _addresses(url.host, port)
    bad = [each for each in addresses if not is_public(each)]
    if bad and not is_trusted:
        raise NotFetched(f"{url.host} is {bad[0]}, which is not an address of the public web")
    return addresses[0]


def _addresses(host: str, port: int) -> Sequence[str]:
    if host == "localhost":  # at the other address another user of the machine may listen
        return loopback_hosts(port)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotFetched(f"{host} is not known: {error}") from error
    return [str(each[4][0]) for each in found]
