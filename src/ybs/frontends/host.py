"""The host of this process, for what a frontend does before there is a session."""

import os
from contextlib import suppress
from pathlib import Path

from ybs.config.host import Host


def this_host() -> Host:
    """Return the host that the environment of this process describes, as it is now."""
    host = Host.of(os.environ)
    with suppress(OSError):  # the folder has gone
        host.work_in(Path.cwd())
    return host
