"""The host of a test, as its temporary HOME and its environment describe it now."""

import os
from pathlib import Path

from ybs.config.host import Host


def this_host() -> Host:
    """Return the host of the running test."""
    return Host.of(os.environ)


def host_at(home: Path) -> Host:
    """Return a host whose environment names a home folder and the programs of this machine, and nothing else."""
    return Host.of({"HOME": str(home), "PATH": os.environ["PATH"]})
