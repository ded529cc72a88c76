"""The host of this process, for what a frontend does before there is a session."""

import os

from ybs.config.host import Host


def this_host() -> Host:
    """Return the host that the environment of this process describes, as it is now."""
    return Host.of(os.environ)
