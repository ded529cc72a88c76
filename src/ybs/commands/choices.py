"""What can stand behind a slash command, for completion."""

from collections.abc import Callable, Sequence

from ybs.commands.models import MODE_WORDS
from ybs.session.session import Session


def words(*words: str) -> Callable[[Session], Sequence[str]]:
    """Return what offers these words."""
    return lambda _session: words


def modes(_session: Session) -> Sequence[str]:
    """Return the modes, and the one that asks before each edit."""
    return tuple(MODE_WORDS)


def providers(session: Session) -> Sequence[str]:
    """Return the names of the providers."""
    from ybs.providers.registry import provider_names

    return provider_names(session.config)


def models(session: Session) -> Sequence[str]:
    """Return the names that /model offered last."""
    menu = session.offered.get("model")
    lines = [item.line for item in menu.items] if menu else []
    return [line.removeprefix("/model ") for line in lines if line.startswith("/model ")]


def offered_sessions(session: Session) -> Sequence[str]:
    """Return the names that /sessions or /resume offered last."""
    menu = session.offered.get("resume")
    return [item.line.removeprefix("/resume ") for item in menu.items] if menu else []


def jobs(session: Session) -> Sequence[str]:
    """Return how each running job is stopped."""
    return [f"stop {job.name}" for job in session.environment.workspace.shells.jobs.running]
