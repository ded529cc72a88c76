"""Keys of providers that the person gave to ybs, and logins at MCP servers: in the system's keyring where that works, else in a private file.

A key belongs to one provider at one origin (scheme, host and port) and is sent to no other. A login is an object in JSON, in which `tokens` are the secrets. The keyring needs the package `keyring` (extra `keyring`); the
file then only says that a key is there.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ybs.config import private_file
from ybs.config.addresses import origin_of
from ybs.config.host import Host
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError

SHOWN_CHARACTERS = 4
SHORTEST_SHOWN = 16


def find_variable(names: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the first of these variables that is set, or nothing."""
    return next((name for name in names if environ.get(name, "").strip()), "")


def find_key(names: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return the value of the first of these variables that is set, without white space around it."""
    return environ.get(find_variable(names, environ), "").strip() or None


def mask(secret: str) -> str:
    """Return stars, and of a long secret the last four characters, so that it can be told apart."""
    tail = secret[-SHOWN_CHARACTERS:] if len(secret) >= SHORTEST_SHOWN else ""
    return "****" + (tail if tail.isalnum() and tail.isascii() else "")


#: Under this name the keyring holds the keys.
SERVICE = "ybs"
#: Where a key that was saved comes from, in words.
SAVED = "saved"
#: Stands in the file for a key that the keyring holds.
IN_KEYRING = ""
_MOST_BYTES = 4_000_000
#: The keys and tokens of logins that came from the keyring, for every vault of this process to mask; it only grows.
fetched: list[str] = []


class _Login(Struct):
    tokens: dict[str, Any] = {}


def key_file(host: Host) -> Path:
    """Return the file of the keys: `~/.config/ybs/keys.json`."""
    return host.config_folder / "keys.json"


def place_of(endpoint: str) -> str:
    """Return what the key of a provider is saved for: the origin of its address, of https without the scheme."""
    return origin_of(endpoint).removeprefix("https://")


def stored_key(host: Host, provider: str, server: str) -> str | None:
    """Return the key that was saved for a provider at this server, or None."""
    name = f"{provider}@{server}"
    found = _read(host).get(name)
    return found or (_from_keyring(name) if found == IN_KEYRING else None)


def keys_in_file(host: Host) -> list[str]:
    """Return all keys in the file, and the tokens of logins, so that they can be masked."""
    keys, tokens = kept_keys(host)
    return keys + tokens


def known_keys(host: Host, *, asks_keyring: bool) -> list[str]:
    """Return the keys in the file and the tokens of logins, with those of the keyring: what came from it, or all, which takes its time."""
    for name, key in _read(host).items() if asks_keyring else ():
        if key == IN_KEYRING:
            _from_keyring(name)
    return [*keys_in_file(host), *fetched]


def kept_keys(host: Host) -> tuple[list[str], list[str]]:
    """Return the keys in the file, which the person gave, and the tokens of logins, which are what a server likes."""
    kept = _read(host).values()
    keys = [key for key in kept if key != IN_KEYRING and not key.startswith("{")]
    return keys, [token for key in kept if key.startswith("{") for token in tokens_in(key)]


def tokens_in(login: str) -> list[str]:
    """Return the secrets in a login."""
    try:
        tokens = from_json(login, _Login).tokens
    except msgspec.DecodeError:
        return []
    return [tokens[name] for name in ("access_token", "refresh_token") if tokens.get(name)]


def has_key(host: Host, provider: str, server: str) -> bool:
    """Return whether a key was saved for a provider at this server."""
    return f"{provider}@{server}" in _read(host)


def keep_key(host: Host, provider: str, server: str, key: str) -> str:
    """Save a key and return the place, in words. Raises ConfigError where the file cannot be written."""
    name = f"{provider}@{server}"
    is_in_keyring = _into_keyring(name, key)
    _write(host, {**_read(host), name: IN_KEYRING if is_in_keyring else key})
    return "the keyring of this system" if is_in_keyring else str(key_file(host))


def forget_key(host: Host, provider: str, server: str) -> bool:
    """Remove a key; return whether there was one. Raises ConfigError where the file cannot be written."""
    name, keys = f"{provider}@{server}", _read(host)
    if name not in keys:
        return False
    if keys.pop(name) == IN_KEYRING:
        _out_of_keyring(name)
    _write(host, keys)
    return True


def _write(host: Host, keys: dict[str, str]) -> None:
    path = key_file(host)
    try:
        private_file.replace(path, msgspec.json.format(msgspec.json.encode(keys), indent=2) + b"\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def _read(host: Host) -> dict[str, str]:
    """Return what the file holds; a file that is not ybs's alone, or is damaged, is not used."""
    try:
        data = private_file.read(key_file(host), most_bytes=_MOST_BYTES)
        return msgspec.json.decode(data, type=dict[str, str]) if data else {}
    except (OSError, ConfigError, msgspec.DecodeError):
        return {}


def _keyring() -> Any:
    try:
        import keyring  # pyright: ignore[reportMissingImports] - an extra
    except ImportError:
        return None
    return keyring  # pyright: ignore[reportUnknownVariableType]


def _from_keyring(name: str) -> str | None:
    if (keyring := _keyring()) is None:
        return None
    try:
        key = keyring.get_password(SERVICE, name)
    except Exception:  # a backend of the desktop's own: locked, gone, or failing in its own way
        return None
    secrets = tokens_in(key or "") if (key or "").startswith("{") else [key] if key else []
    fetched.extend(each for each in secrets if each not in fetched)
    return key


def _into_keyring(name: str, key: str) -> bool:
    """Return whether the keyring took the key and gives it back."""
    if (keyring := _keyring()) is None:
        return False
    try:
        keyring.set_password(SERVICE, name, key)
    except Exception:  # as above: the key goes to a file then
        return False
    return _from_keyring(name) == key


def _out_of_keyring(name: str) -> None:
    if (keyring := _keyring()) is None:
        return
    with suppress(Exception):  # as above: what is left there is named by nothing
        keyring.delete_password(SERVICE, name)
