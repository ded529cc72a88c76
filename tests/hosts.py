"""The host of a test, as its temporary HOME and its environment describe it now."""

import os
from argparse import Namespace
from pathlib import Path

from ybs.config.host import Host
from ybs.frontends.subcommands import trust as subcommand
from ybs.session.options import Options
from ybs.trust.decision import digest_of, review_of
from ybs.trust.settings import load


def this_host() -> Host:
    """Return the host of the running test."""
    return Host.of(os.environ)


def host_at(home: Path) -> Host:
    """Return a host whose environment names a home folder and the programs of this machine, and nothing else."""
    return Host.of({"HOME": str(home), "PATH": os.environ["PATH"]})


def trust(host: Host, action: str, folder: Path, *, is_json: bool = False, digest: str = "") -> int:
    """Do what `ybs trust` does for a folder where nobody can be asked; `give` trusts what lies there now, unless a `digest` is given."""
    if action == "give" and not digest:
        review = review_of(load(host, folder=folder), folder)
        digest = "" if review.asks_for_nothing else digest_of(review)
    shape = "json" if is_json else "text"
    arguments = Namespace(action=action, grant=(), format=shape, digest=digest)
    return subcommand.trust(arguments, Options(host=host, folder=folder))
