"""Runs slash commands. A command answers with a reply and never asks the model."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from ybs.commands.advice import told
from ybs.commands.command import Owner, SlashCommand
from ybs.commands.custom import custom_of, each_once
from ybs.commands.figures import number_in
from ybs.commands.table import listed, named
from ybs.core.cutting import shortened
from ybs.core.errors import YbsError
from ybs.security.unicode import printable
from ybs.session.injection import is_command
from ybs.session.masking import mask, masked_reply
from ybs.session.reply import Menu, Reply
from ybs.session.session import Session

#: Another agent's name of a command, and the command that does the same.
ALIASES: Final = {
    "about": "status",
    "approval-mode": "mode",
    "approvals": "permissions",
    "allowed-tools": "permissions",
    "auth": "setup",
    "bashes": "jobs",
    "reasoning-effort": "effort",
    "think": "effort",
    "think-tokens": "effort",
    "branch": "fork",
    "checkpoint": "rewind",
    "checkpoints": "rewind",
    "compress": "compact",
    "history": "sessions",
    "info": "status",
    "keys": "help",
    "login": "setup",
    "memory": "memories",
    "models": "model",
    "remember": "memorize",
    "reset": "clear",
    "settings": "config",
    "stats": "cost",
    "subagents": "agents",
    "summarize": "compact",
    "tasks": "jobs",
    "tokens": "context",
    "usage": "cost",
}
_MODES: Final = (
    "Modes are chosen with /mode: plan reads only, ask asks first, auto works without asking."
)
_FILES: Final = "Write @ and the file's path in your prompt: its content is sent along."
_LATER: Final = "This is not part of this version of ybs. /help lists what there is."
#: What has no command in ybs: how it is done instead.
HINTS: Final = {
    "add": _FILES,
    "architect": _MODES,
    "ask": _MODES,
    "build": "Ask for it in a prompt: the model knows the project's commands. Or type !COMMAND: it runs in the sandbox, and the model sees its output.",
    "bug": "Report a bug where you got ybs from; /doctor shows what to mention.",
    "chat": "/save NAME saves a copy of this session, /resume continues a saved one.",
    "code": _MODES,
    "continue": "Type what to do next, or /resume to continue a saved session.",
    "drop": "Files are not added for good: what was sent is in the conversation. /clear starts it over.",
    "editor": "Ctrl-G (or Ctrl-X Ctrl-E) opens your prompt in your editor.",
    "fetch": "Ask for the page in a prompt. `ybs tools install web_fetch` gives the model a tool that reads pages.",
    "feedback": "Report a bug where you got ybs from; /doctor shows what to mention.",
    "git": "Type !git and the rest: !COMMAND runs it in the sandbox, !!COMMAND in your own shell.",
    "ide": _LATER,
    "lint": "Type !COMMAND to run a linter; the model sees its output and can fix what it found.",
    "ls": "/context shows the documents that the model sees; !ls lists files.",
    "map": "Run `ybs map` in a shell; the model gets the map of the project by itself.",
    "mention": _FILES,
    "paste": "Ctrl-V attaches an image from the clipboard; text is pasted as your terminal does it.",
    "pr-comments": "Ask for it in a prompt, or run your command with !COMMAND and let the model read its output.",
    "privacy": "ybs talks to the provider that you chose and to nobody else: no telemetry, no update check.",
    "read-only": "/mode plan lets the model read and plan, and change nothing.",
    "release-notes": "CHANGELOG.md of ybs says what has changed; /status shows the version.",
    "review": "Ask for it in a prompt, such as: review my uncommitted changes. /diff shows what ybs has changed.",
    "run": "Type !COMMAND: it runs in the sandbox, and the model sees its output.",
    "search": "Ask in a prompt. `ybs tools install web_search` gives the model a tool that searches the web.",
    "security-review": "Ask for it in a prompt, such as: review my uncommitted changes for security problems.",
    "statusline": "The line at the bottom is fixed; the settings under ui change the rest: /config",
    "terminal-setup": "Nothing has to be set up: Shift-Enter, Alt-Enter or Ctrl-J insert a new line. /doctor checks your terminal.",
    "test": "Type !COMMAND to run the tests; the model sees the output and can fix what fails.",
    "theme": "ybs uses the colours of your terminal; ui.color turns them off: /config",
    "upgrade": "ybs does not update itself; upgrade it as you installed it, such as with `uv tool upgrade ybs`.",
    "vim": "Set ui.editing_mode to vi: `ybs config set ui.editing_mode vi`",
    "vt": "Type !!COMMAND: it runs in your own shell, on this terminal, and you drive it; /share shows the model what it printed.",
    "web": "`ybs tools install web_search` and `ybs tools install web_fetch` let the model search and read the web.",
    "yolo": _MODES,
}


_LONGEST_ECHO = 40


def commands_of(session: Session) -> Sequence[SlashCommand]:
    """Return all commands of a session: those of ybs and its plugins, then those of the person's own files."""
    return [*listed(), *each_once(_custom_of(session))]


def _custom_of(session: Session | None) -> Mapping[str, SlashCommand]:
    """Return the commands of files; one that is not the person's own takes no other name of a command of ybs either."""
    custom: Mapping[str, SlashCommand] = custom_of(session, named()) if session is not None else {}
    return {n: each for n, each in custom.items() if n not in ALIASES or each.owner is Owner.PERSON}


def runs_beside_a_turn(line: str, session: Session | None = None) -> bool:
    """Return whether a line is a command that need not wait for the end of a running turn."""
    word, argument = _parts(line)
    command = command_at(word, session)
    if not is_command(line):
        return False
    return command is None or not command.waits or (command.shows_bare and not argument)


def activity_of(line: str) -> str:
    """Return what a command does that may take long; empty for any other line."""
    command = command_at(_parts(line)[0]) if is_command(line) else None
    return command.activity if command is not None else ""


async def run_command(session: Session, line: str) -> Reply:
    """Run a command line; names ignore case. A number takes an item of the menu that the command gave last.

    The reply holds no secret and nothing that acts on a terminal.
    """
    return _shown(session, await _reply_to(session, line))


async def _reply_to(session: Session, line: str) -> Reply:
    word, argument = _parts(line)
    command = command_at(word, session)
    if command is None:
        hint = HINTS.get(word[1:].lower(), "")
        return Reply(text=hint) if hint else unknown(word)
    name = command.names[0]
    is_begun = word[1:].lower() not in {**named(), **_custom_of(session)}
    if chosen := _chosen(session.offered.get(name), f"/{name} {argument}"):
        word, argument = _parts(chosen)  # once: what is called so may be a number too
        command = named()[word[1:]]
        name = command.names[0]
    if argument and not command.arguments:
        return Reply.error(f"Usage: /{name}")
    try:
        reply = await command.run(session, argument)
    except YbsError as error:
        return Reply.error(told(error))
    except OSError as error:  # a folder that may not be read, a disk that is full
        why = error.strerror or str(error)
        where = f": {error.filename}" if error.filename else ""
        return Reply.error(f"{why}{where}")
    if reply.menu is not None and reply.menu.is_numbered:
        session.offered[name] = reply.menu
    if is_begun and not reply.terminal.wants_quit:
        reply = replace(reply, text=f"/{name}\n{reply.text}".rstrip())
    return reply


def command_at(word: str, session: Session | None = None) -> "SlashCommand | None":
    """Return the command with this name, or the only one with a name that begins so; those of ybs come before skills and files of the person's."""
    typed = word[1:].lower()
    known, custom = named(), _custom_of(session)
    command = known.get(typed) or custom.get(typed) or known.get(ALIASES.get(typed, ""))
    if command or typed in HINTS or not typed:
        return command
    for commands in (listed(), each_once(custom)):
        begun = [each for each in commands if any(n.startswith(typed) for n in each.names)]
        if begun:
            return begun[0] if len(begun) == 1 else None
    return None


def first_offer(line: str) -> str:
    """Return the first of the commands whose names begin so; the line itself where it is a command, or not the start of one."""
    typed = line[1:].lower()
    if not typed or typed in HINTS or len(line.split()) != 1 or command_at(line):
        return line
    begun = [
        (place > 0, number, name)
        for number, command in enumerate(listed())
        for place, name in enumerate(command.names)
        if name.startswith(typed)
    ]
    return f"/{min(begun)[2]}" if begun else line


#: What is passed on as it is: to the model, to the person's own prompt or clipboard; events were masked when they were told.
_AS_IT_IS: Final = ("terminal", "events", "shared", "prompt")


def _shown(session: Session, reply: Reply) -> Reply:
    """Mask secrets in all that is shown, and let nothing act on a terminal: names of files and models, and what was typed, stand in it.

    The line of a menu's item stays too: it is what choosing the item sends.
    """
    firewall, none = session.environment.secrets.firewall, Reply()
    bare = {name: getattr(none, name) for name in ("text", *_AS_IT_IS)}
    clean = mask(firewall, replace(reply, **bare))
    clean = _printable(replace(clean, text=masked_reply(firewall, reply.text)))
    if clean.menu is not None and reply.menu is not None:
        pairs = zip(clean.menu.items, reply.menu.items, strict=True)
        items = tuple(replace(item, line=old.line) for item, old in pairs)
        clean = replace(clean, menu=replace(clean.menu, items=items))
    return replace(clean, **{name: getattr(reply, name) for name in _AS_IT_IS})


def _printable(value: Any) -> Any:
    """Return a value with its texts printable."""
    match value:
        case str():
            return printable(value)
        case tuple():
            return tuple(map(_printable, cast("tuple[Any, ...]", value)))
        case Struct():
            fields = {name: _printable(getattr(value, name)) for name in value.__struct_fields__}
            return replace(value, **fields)
        case _:
            return value


def unknown(word: str) -> Reply:
    """Name the commands that are spelled most alike."""
    from difflib import get_close_matches  # only after a typing error

    typed, word = word[1:].lower(), printable(shortened(word, _LONGEST_ECHO))
    begun = [each.names[0] for each in listed() if typed and each.names[0].startswith(typed)]
    near = begun[:3] or get_close_matches(shortened(typed, _LONGEST_ECHO), named(), n=3)
    hint = f"Did you mean {' or '.join('/' + name for name in near)}? " if near else ""
    return Reply.error(f"Unknown command: {word}. {hint}/help lists them all.")


def _parts(line: str) -> tuple[str, str]:
    word, argument = [*line.split(maxsplit=1), "", ""][:2]
    return word, argument.strip()


def _chosen(menu: Menu | None, line: str) -> str:
    """Return the line of the item with this number, if that is one and no item means itself by it."""
    number, items = number_in(_parts(line)[1]), () if menu is None else menu.items
    if not 1 <= number <= len(items) or any(each.line == line for each in items):
        return ""
    chosen = items[number - 1].line
    return "" if chosen.startswith(f"{line} ") else chosen
