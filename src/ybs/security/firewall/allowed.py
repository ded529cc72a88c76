"""Texts that are not secrets: the list `firewall.allow` of the configuration."""

import re

from ybs.core.errors import ConfigError


class AllowList:
    """Values that are not secrets. Raises ConfigError for an invalid expression."""

    def __init__(self, entries: tuple[str, ...] = ()) -> None:
        self._hashes = {entry for entry in map(str.lower, entries) if _is_hash(entry)}
        self._patterns: list[re.Pattern[str]] = []
        for entry in entries:
            if not _is_hash(entry.lower()):
                self._patterns.append(_compiled(entry))

    def add(self, value: str) -> None:
        """Take a value for no secret from now on."""
        self._hashes.add(_hash(value))

    def holds(self, value: str) -> bool:
        """Return whether the value is on the list."""
        if self._hashes and _hash(value) in self._hashes:
            return True
        return any(pattern.fullmatch(value) for pattern in self._patterns)


def _is_hash(entry: str) -> bool:
    return len(entry) == 64 and not entry.strip("0123456789abcdef")


def _hash(value: str) -> str:
    from hashlib import sha256  # only who has a list of values needs it

    return sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def _compiled(entry: str) -> re.Pattern[str]:
    try:
        return re.compile(entry)
    except re.error as error:
        raise ConfigError(
            f"firewall.allow: {entry!r} is not a regular expression: {error}"
        ) from error
