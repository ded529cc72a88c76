"""Addresses that were given and cannot be read: they stay, marked, so that no weaker one takes their place.

A prompt and a key would go where the person did not want them. The mark is itself neither an address nor a provider's
name, so it fails wherever it is used.
"""

from ybs.config.tree import KeyPath

_MARK = "unusable: "
#: How a warning ends; an error says what to do instead.
LEFT_OUT = "; it is ignored"
NOTHING_SENT = "; nothing is sent until this is corrected"


def is_address(path: KeyPath) -> bool:
    """Return whether a setting says where words are sent."""
    way = path[2:] if path[:1] == ("profiles",) else path
    if way[:1] == ("providers",):
        return len(way) == 3 and way[2] == "endpoint"
    return way in {("llm", "endpoint"), ("llm", "provider")}


def mark(complaint: str) -> str:
    """Return what stands in place of an address that cannot be read."""
    return _MARK + complaint


def complaint_of(address: str | None) -> str | None:
    """Return what is wrong with an address that is marked, or None for any other."""
    if address is None or not address.startswith(_MARK):
        return None
    return address.removeprefix(_MARK).removesuffix(NOTHING_SENT)
