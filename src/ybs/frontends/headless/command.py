"""A prompt on the command line that is a line of a chat: a slash command or `!COMMAND`."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ybs.core.errors import YbsError
from ybs.frontends.headless.output import Format, Pipe, Result, make_output, tell
from ybs.frontends.headless.run import fail
from ybs.frontends.layout import lines_of
from ybs.frontends.tty import columns
from ybs.session.reply import Menu, Reply, Table

if TYPE_CHECKING:
    from ybs.session.options import Options
    from ybs.session.session import Session

    Opener: TypeAlias = Callable[[Options], Session]

#: Commands that only show something, so that a prompt from a script cannot change anything by one of them.
SHOWING = frozenset(
    (
        "help",
        "?",
        "sessions",
        "session",
        "status",
        "context",
        "cost",
        "diff",
        "agents",
        "tools",
        "config",
    )
)
#: What uses a skill by its name, and how the prompts of MCP servers begin.
SKILL = ("/skill", "/skills")
OF_SERVER = "/mcp__"


class _Answered(Result, frozen=True, kw_only=True, tag="result"):
    """What a command answered: `result` as text, and the same as data."""

    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    menu: Menu | None = None


def refusal_of(prompt: str) -> str:
    """Return why a line of a chat is not run from the command line; nothing where it is.

    Who writes a prompt for a script may not be the person: nothing is run or changed by it.
    """
    from ybs.commands.registry import command_at, unknown

    prompt = prompt.strip()
    as_words = "`ybs -- PROMPT` sends it to the model as it stands."
    if prompt.startswith("!"):
        return (
            f"{prompt.split(maxsplit=1)[0]!r} at the start runs a command in a chat, and not on the command line. Run it "
            f"in your shell and pipe its output: COMMAND | ybs --print 'PROMPT'. {as_words}"
        )
    word = prompt.split(maxsplit=1)[0]
    command = command_at(word)
    if command is None:
        return f"{unknown(word).text} {as_words}"
    if command.names[0] in SHOWING:
        return ""
    return (
        f"/{command.names[0]} is a command of a chat and not of the command line, where only commands that show something "
        f"are run ({', '.join('/' + name for name in sorted(SHOWING) if name.isalpha())}). Start ybs in a terminal "
        f"and type it there. {as_words}"
    )


def is_own_command(options: "Options", prompt: str) -> bool:
    """Return whether a prompt is a command of the person's own files, a skill, or a prompt of an MCP server.

    What such a command says is in a file of theirs, of a trusted project or of a plugin, or comes from a server that they added, so a
    script may use it.
    """
    from ybs.commands.custom import templates
    from ybs.commands.registry import command_at
    from ybs.session.settings import environment_of, load_settings

    word, *rest = prompt.split(maxsplit=1)
    if word.lower() in SKILL and rest:
        return True
    if not word.startswith("/") or command_at(word) is not None:
        return False
    if word.lower().startswith(OF_SERVER):
        return True
    # What was read is not kept: a person who is asked about trust later changes what holds.
    loaded = load_settings(options)
    found = templates(loaded, options.folder)
    if any(word[1:].lower() in template.command.names for template in found):
        return True
    skill = environment_of(options, loaded).skills.find(word[1:])
    return skill is not None and skill.is_command


def run_command_once(
    options: "Options", line: str, *, output_format: Format = "text", opener: "Opener | None" = None
) -> int:
    """Run a slash command, print what it answers, and return the exit code. No model is asked.

    `opener` opens the session (another one in tests).
    """
    from ybs.commands.open import open_session

    output = make_output(output_format, Pipe(), is_verbose=False)
    try:
        session = (opener or open_session)(options)
        for warning in session.warnings:
            tell(f"ybs: {warning}")
        reply = asyncio.run(_reply(session, line.strip()))
    except YbsError as error:
        return fail(error, output)
    text = "\n".join([*lines_of(reply, columns()), *[reply.diff] * bool(reply.diff)])
    if reply.is_error:
        output.result(Result(result="", reason="error", is_error=True, exit_code=1, message=text))
        return 1
    output.result(
        _Answered(
            result=text,
            reason="done",
            is_error=False,
            exit_code=0,
            tables=reply.tables,
            notes=reply.notes,
            menu=reply.menu,
        )
    )
    return 0


async def _reply(session: "Session", line: str) -> Reply:
    async with session:
        reply = await session.handle(line)
    assert isinstance(reply, Reply)  # noqa: S101 - no command of SHOWING asks a model
    return reply.without_terminal(line)
