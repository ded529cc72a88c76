"""Read an address as all programs do, classify it (this machine, a home network, elsewhere), find its origin, to which keys are bound, the proxy before it, and show it."""

import os
import re
import sys
from binascii import b2a_base64
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from ybs.core.lazy import lazy

_HOST = lazy(r"[\w.:%-]+")
#: What the system may read as an IPv4 address in another spelling (`0127.0.0.1`, `127.1`, `2130706433`), as browsers tell it.
_ENDS_IN_NUMBER = lazy(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")
#: One of the four numbers of an IPv4 address, in its one spelling.
_SPELLED = lazy(r"25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9]")


def parts_of(address: str, *, is_own: bool) -> SplitResult:
    """Split an http address of the settings in which everybody sees the same server. One of the person's own may hold a login.

    Raises ValueError that goes on after the words "the address".
    """
    if not address.isprintable() or not {*" \\#"}.isdisjoint(address):
        raise ValueError("has a space, a #, a backslash or a control character in it")
    try:
        parts = urlsplit(address)
        host = parts.hostname if parts.port != 0 and parts.scheme in _PORTS else None
    except ValueError:  # it says what stands there, and a password may
        parts = host = None
    if not (parts and host) or not _HOST().fullmatch(host):
        raise ValueError("does not begin with http:// or https:// and the name of a server")
    if not is_own and ("@" in parts.netloc or not host.isascii() or _is_unclear_number(host)):
        raise ValueError("has a login, or letters or numbers that pass for others, before its path")
    return parts


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
        if parts.netloc and "\\" not in parts.netloc:
            place = parts.netloc.rpartition("@")[2]
            return parts._replace(netloc=place, query="", fragment="").geturl()
    except ValueError:  # where its parts end is anybody's guess
        pass
    head, *asked = re.split(r"[?#]", address, maxsplit=1)
    return (
        "..."
        if "@" in "".join(asked) or "\\" in head
        else re.sub(r"(?s)\A(\w+://)?.*@", r"\1", head)
    )


def login_of(address: str) -> str:
    """Return the login in an address as the `Authorization` header says it, or nothing. So no transport looks for it, or picks another way to the server for its sake."""
    login = urlsplit(address).netloc.rpartition("@")[0]
    name, _, password = map(unquote, login.partition(":"))
    sent = b2a_base64(f"{name}:{password}".encode(), newline=False).decode()
    return f"Basic {sent}" if login else ""


_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine."""
    if host in {"localhost", "::1"}:
        return True
    return _numbers(host)[:1] == [127] or host == "0.0.0.0"  # noqa: S104 - compared only


def proxy_for(address: str, environ: Mapping[str, str], named: str | None = None) -> str | None:
    """Return the proxy on the way to an address: the `named` one, else that of the environment, none for this machine.

    Models and MCP servers are reached by it, and not by what a library makes of the variables. In lower case one counts first.
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    if is_loopback(host):
        return None
    if named:
        return named
    said = {name.lower(): environ[name] for name in sorted(environ) if _is_of_proxies(name)}
    if not any(said.values()) and sys.platform == "darwin":
        return _proxy_of_mac(parts)
    if _goes_past(host, parts.port, said.get("no_proxy", "")):
        return None
    found = said.get(f"{parts.scheme}_proxy") or said.get("all_proxy")
    return f"http://{found}" if found and "://" not in found else found


def _is_of_proxies(name: str) -> bool:
    return name.lower().endswith("_proxy")


def _proxy_of_mac(parts: SplitResult) -> str | None:
    """Return the proxy that macOS's settings name."""
    from urllib.request import getproxies, proxy_bypass  # slow to load

    return None if proxy_bypass(parts.netloc.rpartition("@")[2]) else getproxies().get(parts.scheme)


def _goes_past(host: str, port: int | None, no_proxy: str) -> bool:
    """Return whether `NO_PROXY` names a host: itself, with its port, a domain that it is in, or a network."""
    for word in no_proxy.lower().replace(",", " ").split():
        name = word.lstrip("*").lstrip(".")
        if not name or f".{host}".endswith(f".{name}") or f".{host}:{port}".endswith(f".{name}"):
            return True
        if _is_within(host, word):
            return True
    return False


def _is_within(host: str, network: str) -> bool:
    from ipaddress import ip_address, ip_network  # slow to load; few have NO_PROXY

    try:
        return ip_address(host) in ip_network(network.strip("[]"), strict=False)
    except ValueError:  # one of them is a name
        return False


#: The tables in which Linux says who listens where.
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_MAPPED, _ALL, _ALL6 = "0" * 16 + "FFFF0000", "0" * 8, "0" * 32
#: What `localhost` means, with how those write the addresses at which a server answers there, also as IPv4 in IPv6: the first that somebody listens at.
_LOCALHOST = {
    "127.0.0.1": (("0100007F", f"{_MAPPED}0100007F", _ALL, f"{_MAPPED}{_ALL}"), (_ALL6,)),
    "::1": (("0" * 24 + "01000000", _ALL6),),
}
_LISTENS = "0A"


def loopback_hosts(port: int) -> list[str]:
    """Return the addresses to try for `localhost`, first one at which a server of this user or of root listens. It reads files.

    At the other one another user of the machine may listen, who would be sent keys and words.
    """
    trusted = {os.getuid(), 0}
    return sorted(
        _LOCALHOST,
        key=lambda host: not trusted.issuperset(_listening(_LOCALHOST[host][:1], port) or {-1}),
    )


#: Accounts of people, as far as systemd and Debian number them: not those of the system, of services and `nobody`.
_PEOPLE = range(1_000, 60_000), range(65_536, 2**32 - 1)


def other_user_at(host: str, port: int) -> str:
    """Return the name of another person who uses this machine and whose server listens there; empty where there is none, or the system does not say. It reads files."""
    place = loopback_hosts(port)[0] if host == "localhost" else host
    others = [
        user
        for user in _listening(_answering_at(place), port)
        if user != os.getuid() and any(user in r for r in _PEOPLE)
    ]
    return _name_of(min(others)) if others else ""


def _name_of(user: int) -> str:
    from pwd import getpwuid  # few servers are another user's

    try:
        return getpwuid(user).pw_name
    except KeyError:
        return str(user)


def _answering_at(host: str) -> tuple[tuple[str, ...], ...]:
    """Return how the tables write what answers at an address of this machine: those of which the first that is listened at counts."""
    numbers = _numbers(host)
    if host in _LOCALHOST or not any(numbers):  # who connects to 0.0.0.0 is at 127.0.0.1
        return _LOCALHOST.get(host, _LOCALHOST["127.0.0.1"])
    own = bytes(reversed(numbers)).hex().upper()
    return (own, f"{_MAPPED}{own}", _ALL, f"{_MAPPED}{_ALL}"), (_ALL6,)


def _listening(places: Iterable[Iterable[str]], port: int) -> set[int]:
    """Return the users whose servers listen at the first of the places at which any does, as far as the system tells."""
    rows = [line.split() for table in _TABLES for line in _lines_of(table)]
    for addresses in places:
        wanted = {f"{address}:{port:04X}" for address in addresses}
        if users := {int(row[7]) for row in rows if row[3] == _LISTENS and row[1] in wanted}:
            return users
    return set()


def _lines_of(table: str) -> list[str]:
    try:
        return Path(table).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return []


def is_passed_on(model: str) -> bool:
    """Return whether Ollama passes a model's words on to its cloud, as the name says (https://docs.ollama.com/cloud)."""
    tag = model.lower().partition("[")[0].rpartition(":")[2]
    return tag == "cloud" or tag.endswith("-cloud")


def is_local(host: str) -> bool:
    """Return whether the host is this machine or in a private network."""
    if is_loopback(host) or host.endswith((".local", ".lan", ".internal")):
        return True
    if ":" in host:
        first = host.partition(":")[0]
        return len(first) == 4 and first.startswith(("fc", "fd", "fe80"))
    match _numbers(host):
        case [10, *_] | [192, 168, *_] | [169, 254, *_]:
            return True
        case [172, second, *_]:
            return 16 <= second < 32
        case _:
            return "." not in host.strip(".") and not _is_unclear_number(host)


def _is_unclear_number(host: str) -> bool:
    return bool(_ENDS_IN_NUMBER().fullmatch(host)) and not _numbers(host)


def _numbers(host: str) -> list[int]:
    """Return the four numbers of an IPv4 address in its one spelling, or none: `010` is 8 to the system."""
    parts = host.split(".")
    is_address = len(parts) == 4 and all(map(_SPELLED().fullmatch, parts))
    return [int(part) for part in parts] if is_address else []
