"""What may be skipped in CI. A skip hides what it does not test, so any other one fails the run there."""

import fnmatch
from collections.abc import Iterable

#: Patterns of reasons (`fnmatch`), each with why no CI machine can do without it.
EXPECTED = (
    "root may read everything",  # CI runs as root; people run these as themselves
    "root may write everywhere",
    "the superuser may write everywhere",
    "only root can *",  # the other half: CI that does not run as root
    "only root makes devices: *",
    "NOT TESTED: only root can try both users",
    "NOT TESTED: this interpreter is no toolchain of the home folder",  # it is the system's
    "NOT TESTED: node is not installed",  # only the client in JavaScript needs it
    "NOT TESTED: cargo is not installed",  # no machine needs a toolchain for Rust but to see that one works in the sandbox
    "NOT TESTED: npm is not installed",  # it brings clients that others wrote, for a slow test
    "NO NPM *",  # nor others' registry that is in order at this moment
    "NOT TESTED: libfaketime is not installed",  # only clocks that jump need it, in slow tests
    "NOT TESTED: ps is not installed",  # small containers have none, and /proc in its place
    "the platform edits nothing",  # the suite of all chat platforms, some of which cannot do all
    "the platform has no *",
    "NOT TESTED: * is in another home folder than this one",  # HOME was set to an empty one
)


def unexpected(reasons: Iterable[str]) -> list[str]:
    """Return the reasons that are not on the list, each once."""
    return sorted(
        {
            reason
            for reason in reasons
            if not any(fnmatch.fnmatchcase(reason, pattern) for pattern in EXPECTED)
        }
    )
