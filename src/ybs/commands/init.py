"""The command /init: has the model write AGENTS.md from what it finds in the project."""

import asyncio

from ybs.core.messages import UserMessage
from ybs.session.reply import Reply
from ybs.session.session import Session

#: Files that say the same; with one of them there is nothing to write.
_SAME = ("agents.md", "claude.md")
_TASK = """\
Write AGENTS.md for this project: the rules and facts that somebody who works on its code with you needs and would not guess.
Look first: the README, the files that say how it is built and tested, CI, rules for other tools (.cursor/rules, \
.github/copilot-instructions.md), and enough of the code to know how its parts hang together.
Then write the file with write_file, under 60 lines: what the project is in a sentence or two; the commands to set up, build, lint \
and test, and how to run a single test; the parts and how they work together, where that takes reading several files; conventions \
that the code keeps to. Only what you have seen: no general advice, no list of every file, nothing that you only suppose. \
Run no command that changes something. The file counts from your next turn on."""


async def init(session: Session, argument: str) -> Reply:
    """Have the model write AGENTS.md; the words go along. One that is there is the person's work: it is never touched."""
    if name := await asyncio.to_thread(_there, session):
        text = f"{name} exists already, and /init does not overwrite it. Say in your own words what should change in it."
        return Reply(text=text, is_error=True)
    wish = f"\nThe person adds: {argument}" if argument else ""
    return Reply(shared=UserMessage.of(_TASK + wish))


def _there(session: Session) -> str:
    """Return the name of the file that says already what AGENTS.md is for; "" where there is none."""
    names = sorted(path.name for path in session.folder.iterdir())
    return next((name for name in names if name.lower() in _SAME), "")
