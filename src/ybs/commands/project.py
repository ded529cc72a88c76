"""Commands about the project and what runs in it: jobs, trust, incognito."""

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ybs.core.messages import UserMessage
from ybs.security.incognito import WRITES_NOTHING
from ybs.session.masking import masked_reply
from ybs.session.reply import Reply
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.config.review import Review

NO_TRUST = "This project was not trusted."
_HIDDEN = (
    "A secret is hidden in this. `ybs trust show` shows all of it, and `ybs trust give` trusts it."
)
FOR_ONE_RUN = "`ybs --trust` trusts this project for a single run."


async def show_jobs(session: Session, argument: str) -> Reply:
    """List the commands that run in the background, or stop one."""
    jobs = session.environment.workspace.shells.jobs
    action, _, name = argument.partition(" ")
    match action.lower():
        case "" | "list":
            how = ["Stop one with /jobs stop ID."] if jobs.running else []
            return Reply(text="\n".join([jobs.listing(), *how]))
        case "stop" if name.strip():
            job = jobs.find(name)
            await job.stop()
            return Reply(text=job.line)
        case _:
            return Reply.error("Usage: /jobs, or /jobs stop ID")


async def send_to_background(session: Session, _argument: str) -> Reply:
    """Let the running commands go on in the background; the turn goes on without waiting for them."""
    count = session.send_to_background()
    if not count:
        return Reply.error(
            "No command is running that can go on in the background; outside the sandbox none does."
        )
    return Reply(text="The command continues in the background. /jobs lists it.")


async def share(session: Session, argument: str) -> Reply:
    """Send the last command of the person's own shell to the model, with its output; words may stand behind it."""
    return Reply(shared=session.own_commands.shared(argument))


#: What each session has shown whole of its project: nobody trusts what they have not seen.
_shown: "WeakKeyDictionary[Session, str]" = WeakKeyDictionary()


async def change_trust(session: Session, argument: str) -> Reply:
    """Show what the project's own files want, trust exactly that, or take it back: from the next start on."""
    from ybs.trust.decision import digest_of, grant, review_of, revoke

    review = review_of(session.loaded, session.folder)
    if argument.lower() == "revoke":
        was = revoke(session.host, session.folder)
        return Reply(
            text="The trust is revoked; this takes effect at the next start of ybs."
            if was
            else NO_TRUST
        )
    action, *names = argument.split() or ["show"]
    match action.lower():
        case "show":
            return _show_trust(session, review)
        case "give" if not session.environment.incognito.may_write:
            return Reply.error(f"Not trusted: {WRITES_NOTHING}. {FOR_ONE_RUN}")
        case "give":
            is_free = review.is_trusted or review.asks_for_nothing or review.problem
            if not is_free and _shown.get(session) != digest_of(review):
                return _show_trust(session, review, "/trust give again trusts exactly this.")
            if names or not review.is_trusted:
                grant(session.host, review, names)
            return Reply(text="Trusted as it is now; this takes effect at the next start of ybs.")
        case _:
            return Reply.error("Usage: /trust, /trust give [VARIABLE ...] or /trust revoke")


def _show_trust(session: Session, review: "Review", more: str = "") -> Reply:
    from ybs.trust.decision import digest_of
    from ybs.trust.wording import lines_of, state_of

    state = state_of(review, is_trusted=review.is_trusted)
    lines = [*lines_of(review), state]
    text = "\n".join(lines)
    _shown[session] = digest_of(review)
    if masked_reply(session.environment.secrets.firewall, text) != text:
        _shown.pop(session)
        more = _HIDDEN
    return Reply(text="\n".join([*lines, *filter(None, [more])]))


async def change_incognito(session: Session, argument: str) -> Reply:
    """Begin a new session of which nothing is written down, or with `off` one that is as usual."""
    is_on, jobs = session.status().incognito, session.environment.has_jobs()
    ended = " The background jobs were stopped." if jobs else ""
    match argument.lower(), is_on:
        case (("" | "on"), False):
            await session.start_anew(is_incognito=True)
            text = "Incognito: a new session was started, and nothing of it will be saved."
            return Reply(text=f"{text} The previous session stays saved as it was.{ended}")
        case "off", True:
            await session.start_anew(is_incognito=False)
            return Reply(text=f"No longer incognito: a new session was started.{ended}")
        case (("" | "on"), True):
            return Reply(text="This session is incognito. `/incognito off` starts one that is not.")
        case "off", False:
            return Reply(text="This session is not incognito.")
        case _:
            return Reply.error("Usage: /incognito, or /incognito off")


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
        return Reply.error(text)
    wish = f"\nThe person adds: {argument}" if argument else ""
    return Reply(shared=UserMessage.of(_TASK + wish))


def _there(session: Session) -> str:
    """Return the name of the file that says already what AGENTS.md is for; "" where there is none."""
    names = sorted(path.name for path in session.folder.iterdir())
    return next((name for name in names if name.lower() in _SAME), "")


_NONE = "No focus is set for this project. Set one with /focus TEXT; it is kept in .ybs/FOCUS.md."


async def focus(session: Session, argument: str) -> Reply:
    """Show the project's focus, put another in its place, or clear it."""
    from ybs.context.focus import read_focus

    folder = session.folder
    if not argument:
        text = await asyncio.to_thread(read_focus, folder)
        return Reply(text=text or _NONE)
    if not session.environment.incognito.may_write:
        from ybs.security.incognito import WRITES_NOTHING

        return Reply.error(f"The focus was not changed: {WRITES_NOTHING}.")
    if argument.lower() == "clear":
        return await _clear(session)
    return await _set(session, argument)


async def _set(session: Session, text: str) -> Reply:
    from ybs.context.focus import FOCUS_FILE, write_focus

    await asyncio.to_thread(write_focus, session.folder, text)
    session.context.tell(f"The focus of this project is now: {text}")
    return Reply(
        text=f"Saved in {FOCUS_FILE}: it applies from your next message on, and in later sessions."
    )


async def _clear(session: Session) -> Reply:
    from ybs.context.focus import clear_focus

    if not await asyncio.to_thread(clear_focus, session.folder):
        return Reply(text=_NONE)
    session.context.tell("The focus of this project was removed.")
    return Reply(text="The focus was cleared; this applies from your next message on.")
