"""What is said of a session when the person leaves it: its name, what it cost, and how it is continued."""

from ybs.commands.figures import amount, cost
from ybs.core.messages import Usage
from ybs.core.wording import plural
from ybs.security.unicode import printable
from ybs.session.session import Session


def farewell(session: Session) -> list[str]:
    """Return the lines; none where nothing was said."""
    jobs = session.status().jobs
    stopped = [f"{plural(jobs, 'background job')} stopped."] if jobs else []
    if not session.turns:
        return stopped
    usage = sum((turn.usage for turn in session.turns), Usage())
    tokens = f"{amount(usage.input_tokens + usage.output_tokens)} tokens"
    spent = ", ".join(filter(None, (tokens, cost(usage))))
    about = f"{plural(len(session.turns), 'turn')}, {spent}"
    name, path = session.journal.name, session.journal.path
    if not path:
        return [*stopped, f"This session was not saved ({about})."]
    title = f" \u201c{printable(title)}\u201d" if (title := session.journal.replay.title) else ""
    return [*stopped, f"Session {name}{title}: {about}.", f"Continue it with: ybs --resume {name}"]
