"""Classify an address (this machine, a home network, elsewhere), find its origin, to which keys are bound, and show it."""

import re
from urllib.parse import urlsplit


def origin_of(address: str) -> str:
    """Return scheme, host and port of an address in one spelling, as `https://example.com:8443`; the scheme's own port is left out.

    Raises ValueError for what is not an http address.
    """
    parts = urlsplit(address)
    host = (parts.hostname or "").removesuffix(".")
    if parts.scheme not in {"http", "https"} or not host:
        raise ValueError("it is not an http address")
    port = parts.port if parts.port is not None else _PORTS[parts.scheme]
    place = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{place}" + f":{port}" * (port != _PORTS[parts.scheme])


def shown_address(address: str) -> str:
    """Return an address, valid or not, without what may be secret in it: a password, and what is asked with it."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises ValueError for one that is not a number
        if parts.netloc:
            place = parts.netloc.rpartition("@")[2]
            return parts._replace(netloc=place, query="", fragment="").geturl()
    except ValueError:  # where its parts end is anybody's guess
        pass
    head, *asked = re.split(r"[?#]", address, maxsplit=1)
    return "..." if "@" in "".join(asked) else re.sub(r"(?s)\A(\w+://)?.*@", r"\1", head)


_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine."""
    if host in {"localhost", "::1"}:
        return True
    return _numbers(host)[:1] == [127] or host == "0.0.0.0"  # noqa: S104 - compared only


def is_local(host: str) -> bool:
    """Return whether the host is this machine or in a private network."""
    if is_loopback(host) or host.endswith((".local", ".lan", ".internal")):
        return True
    if ":" in host:
        return host.startswith(("fc", "fd", "fe80"))
    match _numbers(host):
        case [10, *_] | [192, 168, *_] | [169, 254, *_]:
            return True
        case [172, second, *_]:
            return 16 <= second < 32
        case _:
            return "." not in host.strip(".")


def _numbers(host: str) -> list[int]:
    """Return the four numbers of an IPv4 address, or none."""
    parts = host.split(".")
    is_address = len(parts) == 4 and all(part.isdecimal() for part in parts)
    return [int(part) for part in parts] if is_address else []
