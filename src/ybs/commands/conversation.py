"""Commands about the conversation: begin anew, take out of it."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from ybs.commands.figures import number_in
from ybs.core.messages import AssistantMessage, Message, ToolResult, UserMessage
from ybs.security.incognito import WRITES_NOTHING
from ybs.session.reply import Reply, TerminalActions
from ybs.session.session import Session

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})([^`]*)$")
#: Below the home folder: where conversations go that are exported without a name.
EXPORTS = "ybs-exports"
#: What the model is told where a turn failed on the way.
GO_ON = "The work was cut off. Go on where you stopped."


async def clear(session: Session, _argument: str) -> Reply:
    """Forget the conversation."""
    session.history.clear()
    return Reply(text="The conversation was cleared; the session goes on.")


async def begin_anew(session: Session, _argument: str) -> Reply:
    """Begin a new session with the same model and mode, incognito if this one is."""
    has_jobs = bool(session.environment.has_jobs())
    is_incognito = session.environment.incognito.is_on
    await session.start_anew(is_incognito=is_incognito)
    kind = "A new session was started" + ", incognito as before" * is_incognito
    return Reply(text=f"{kind}.{' The background jobs were stopped.' * has_jobs}")


async def copy(session: Session, argument: str) -> Reply:
    """Copy an answer, or the last code block in one. The frontend says whether that worked."""
    from ybs.security.unicode import printable

    words = argument.lower().split()
    wants_code = "code" in words
    numbers = [word for word in words if word != "code"]
    answers = answers_of(session.conversation.messages)
    number = number_in("".join(numbers) or "1")
    if not number or len(numbers) > 1:
        return Reply.error("Usage: /copy, /copy N or /copy code")
    if number > len(answers):
        there = "is no answer" if not answers else f"are only {len(answers)} answers"
        there = "is only one answer" if len(answers) == 1 else there
        return Reply.error(f"There {there} to copy.")
    text = last_code(answers[number - 1]) if wants_code else answers[number - 1]
    if text is None:
        return Reply.error("There is no code block in that answer.")
    what = "code block" if wants_code else "answer"
    lines = text.count("\n") + 1
    said = f"The {what}, {lines:,} line{'' if lines == 1 else 's'}:"
    return Reply(text=said, terminal=TerminalActions(clipboard=printable(text)))


async def export(session: Session, argument: str) -> Reply:
    """Write the conversation into a new file: Markdown, or JSON lines where its name asks for them."""
    import asyncio

    from ybs.security.paths.new_file import find_place, write_new

    if not session.environment.incognito.may_write:
        text = f"Not written: {WRITES_NOTHING}. /copy copies the last answer."
        return Reply.error(text)
    messages = tuple(session.conversation.messages)
    if not messages:
        return Reply.error("There is nothing to export yet.")
    roots = session.environment.roots
    name = session.journal.name or f"session-{datetime.now():%Y%m%d-%H%M%S}"
    if not argument:  # a project is not littered unasked
        folder = session.host.home / EXPORTS
        await asyncio.to_thread(folder.mkdir, mode=0o700, exist_ok=True)
        argument = str(folder)
    place = find_place(roots, argument, f"{name}.md")
    is_data = place.suffix.lower() in (".json", ".jsonl")
    data = _as_data(session, messages, name) if is_data else _as_text(session, messages)
    await asyncio.to_thread(write_new, roots, place, data)
    return Reply(text=f"Exported {len(messages):,} messages: {place}")


def _as_text(session: Session, messages: Sequence[Message]) -> bytes:
    from ybs.session.export import markdown_of

    status = session.status()
    title = session.journal.replay.title or next(
        (said for _, said in session.history.prompts()), ""
    )
    about = f"{status.shown_provider} {status.model}, in `{status.folder}`"
    firewall = session.environment.secrets.firewall
    return markdown_of(messages, firewall, title=title, about=about).encode("utf-8", "replace")


def _as_data(session: Session, messages: Sequence[Message], name: str) -> bytes:
    from ybs.core.envelope import MAIN
    from ybs.core.events import SystemPrompted
    from ybs.session.export import event_of, lines_of

    system = SystemPrompted(content=session.conversation.system)
    events = [session.beginning(name), system, *map(event_of, messages)]
    now = datetime.now(UTC)
    return lines_of(((event, now, MAIN) for event in events), session.environment.secrets.firewall)


async def retry(session: Session, _argument: str) -> Reply:
    """Send the last request again; where something was done since, go on with that."""
    if session.is_cut_short:
        return Reply(takes_up=True)
    prompts, messages = session.history.prompts(), session.conversation.messages
    if not prompts:
        return Reply.error("There is no request to send again.")
    place = prompts[-1][0]
    if not any(isinstance(each, ToolResult) for each in messages[place:]):
        return Reply(shared=session.history.take_out(place))
    last = messages[-1]
    if isinstance(last, AssistantMessage) and last.stop_reason in ("end", "length"):
        text = "The last request was carried out. /rewind goes back to before it."
        return Reply.error(text)
    return Reply(shared=UserMessage.of(GO_ON))


async def leave(_session: Session, _argument: str) -> Reply:
    """Leave ybs."""
    return Reply(terminal=TerminalActions(wants_quit=True))


def answers_of(messages: Sequence[Message]) -> list[str]:
    """Return the last words of the model in each turn, the newest first; turns without any are left out."""
    answers: list[str] = []
    latest = ""
    for message in (*messages, None):
        match message:
            case UserMessage(origin="guard" | "context"):
                pass
            case UserMessage() | None:
                answers += [latest] if latest else []
                latest = ""
            case AssistantMessage() if message.text.strip():
                latest = message.text.strip("\n")
            case _:
                pass
    return answers[::-1]


def last_code(text: str) -> str | None:
    """Return what stands in the last code block of a Markdown text, or None where there is none."""
    found: str | None = None
    lines = iter(text.split("\n"))
    for line in lines:
        if (opened := _FENCE.match(line)) is not None:
            margin, fence = len(opened[1]), opened[2]
            block: list[str] = []
            for inner in lines:
                end = inner.strip()
                if len(end) >= len(fence) and set(end) == {fence[0]}:
                    break
                block.append(_shifted(inner, margin))
            found = "\n".join(block)
    return found


def _shifted(line: str, margin: int) -> str:
    """Take away the indentation that the fence has too."""
    return line[min(margin, len(line) - len(line.lstrip(" \t"))) :]
