"""The host of this process, for what a frontend does before there is a session, and for how it writes paths."""

import os

from ybs.config.host import Host


def this_host() -> Host:
    """Return the host that the environment of this process describes, as it is now."""
    return Host.of(os.environ)


def short(path: str) -> str:
    """Write the home folder as `~`."""
    return this_host().short(path)
