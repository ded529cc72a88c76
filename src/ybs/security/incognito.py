"""Which packages may store what in incognito mode."""

import sys
from typing import Self

from msgspec import Struct

from ybs.config.schema import IncognitoSettings
from ybs.core.errors import ConfigError
from ybs.core.remedies import Remedy
from ybs.security.gate import put_crash

#: Said wherever something is not kept for this reason.
WRITES_NOTHING = "an incognito session saves nothing"


class Incognito(Struct, frozen=True, kw_only=True):
    """Whether a session is incognito, and whether it may use only models on this machine. A session has one to its end.

    Every room that writes something by itself asks `may_write` first: transcripts, checkpoints, memory, identity and
    documents, what is learned and the router's feedback, the input history, long outputs on disk, trust, commits that
    nobody asked for, logs. What a tool changes in the project on purpose is not asked about: it is the work.
    """

    is_on: bool = False
    only_here: bool = False

    @classmethod
    def of(cls, settings: IncognitoSettings) -> Self:
        """Return what the settings of a session say."""
        return cls(is_on=settings.enabled, only_here=settings.only_here)

    @property
    def may_write(self) -> bool:
        """Whether something about the session may be written to disk."""
        return not self.is_on

    @property
    def allows_agents(self) -> bool:
        """Whether another agent may be used: it keeps records of its own, and the model that it asks may be anywhere."""
        return not (self.is_on or self.only_here)

    def check_model(self, provider: str, model: str, *, is_here: bool) -> None:
        """Raise ConfigError for a model on another machine, where only those on this one may be used."""
        if self.only_here and not is_here:
            raise ConfigError(
                f"{f'{provider} {model}'.strip()} does not run on this machine, and incognito.local_only allows no other.",
                remedies=(Remedy("choose_local_model"),),
            )


def leave_no_dump() -> None:
    """Have a crash of this process, or of one that it starts, write no memory to disk. It holds until the end.

    A system's own hook for uncaught exceptions, which may write reports, goes too.
    """
    sys.excepthook = put_crash
    try:
        import resource  # not on every system
    except ImportError:
        return
    # To a program that collects dumps Linux hands them at any limit but 1, which is too little for a file too:
    # https://docs.kernel.org/admin-guide/sysctl/kernel.html#core-pattern and fs/coredump.c
    least = 1 if sys.platform == "linux" else 0
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == resource.RLIM_INFINITY or hard >= least:
        resource.setrlimit(resource.RLIMIT_CORE, (least, hard))
