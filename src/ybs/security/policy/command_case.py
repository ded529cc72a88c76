"""A shell command on trial: everything that the policy needs to know about it, found out once."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias

from msgspec import DecodeError, json

from ybs.config.schema import Safety
from ybs.core.lazy import lazy
from ybs.security.commands import options
from ybs.security.commands.command import Command
from ybs.security.commands.dangers import blocked_entry, stem_of, warnings_of
from ybs.security.commands.destruction import BY_PROGRAM
from ybs.security.commands.wrappers import Reading, read
from ybs.security.policy import scopes
from ybs.security.policy.concerns import concerns_of, notes_of
from ybs.security.policy.own_programs import runs_more
from ybs.security.policy.rules import Rule

#: Names of arguments that hold commands, in the tools of others.
_COMMAND_NAMES = lazy(r"(?:.*_)?(?:command|commands|cmd|script|shell|bash|exec|run|sql|query|code)", re.I)  # fmt: skip
_MOST_TEXTS = 50
#: Programs without an option or operand that writes or runs: beside what is granted they may stand in a writable sandbox.
_HARMLESS = frozenset(
    ("basename", "cat", "cd", "cmp", "comm", "cut", "df", "dirname", "du", "echo", "false", "grep", "head")
) | {"id", "ls", "nl", "pwd", "readlink", "realpath", "seq", "stat", "tail", "tr", "true", "uname", "wc", "whoami"}  # fmt: skip
_UNCHECKED = (
    "it has parts that cannot be checked word by word, such as a loop, a group or $(\u2026)"
)


#: As in `policy.AllowedBy`.
Covered: TypeAlias = Literal["grant", "reading"]


class CommandCase:
    """One command: how it reads, what is dangerous about it, and what could allow it."""

    def __init__(self, command: str, safety: Safety) -> None:
        self.reading: Reading = read(command)
        self.blocked = blocked_entry(self.reading, safety.blocked_commands)
        self.dangers = warnings_of(command, self.reading)
        self.concerns = concerns_of(command, self.reading)
        #: What no "always" may stand for.
        self.grave = (
            concerns_of(command, self.reading, with_harmless=False) if self.concerns else ()
        )
        self._safe = safety.safe_commands
        self._scopes: list[str] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the person should look at where they are asked anyway."""
        return notes_of(self.reading)

    @property
    def unsafe(self) -> str:
        """Say which part is not a safe command, and why; nothing where all are."""
        reading, script = self.reading, self.reading.script
        if not reading.is_clear or not script.is_clear:
            return _UNCHECKED
        if script.has_variables:
            return "one of its words, such as $NAME, is only known when it runs"
        entries = _entries(self._safe)
        reasons = (_unsafe(part, entries) for part in script.commands)
        if reason := next((reason for reason in reasons if reason), ""):
            return reason
        return "one program in it runs another" if len(reading.runs) != len(script.commands) else ""

    @property
    def scopes(self) -> list[str]:
        """The scopes that together cover the command."""
        if self._scopes is None:
            self._scopes = scopes.scopes_of(self.reading)
        return self._scopes

    @property
    def is_reading(self) -> bool:
        """Whether the scopes that cover the command are those of programs that only read."""
        return all(map(scopes.is_reading, self.scopes))

    @property
    def why_never_granted(self) -> str:
        """Why nothing may be remembered about the command as it stands; empty where something may."""
        if scopes.scopes_in(f"run_shell({self.reading.text})"):
            return "as a rule it would allow more than this command"
        return scopes.why_never(self.reading)

    def covered_by(
        self, rules: Sequence[Rule], grants: Collection[str], *, counts_safe: bool
    ) -> Covered | None:
        """Say what covers each part: a rule's pattern or a grant, or (with `counts_safe`) that it is safe.

        `reading`: a part is only known to read, so the whole must be kept from writing.
        """
        reading, script = self.reading, self.reading.script
        if not (rules or grants) or not reading.is_clear or not script.is_clear:
            return None
        if script.has_variables or runs_more(
            reading, lambda part: bool(scopes.scope_of_part(part))
        ):
            return None
        found = [self._part_covered_by(part, rules, grants) for part in script.commands]
        if None in found or ("reading" in found and not counts_safe):
            return None
        is_held = any(
            each == "reading" and not (part.words and part.words[0] in _HARMLESS)
            for each, part in zip(found, script.commands, strict=True)
        )
        return "reading" if is_held or "grant" not in found else "grant"

    def _part_covered_by(
        self, part: Command, rules: Sequence[Rule], grants: Collection[str]
    ) -> Covered | None:
        if any(rule.names("run_shell") and rule.allows_part(part) for rule in rules):
            return "grant"
        if scopes.text_of([scope := scopes.scope_of_part(part)]) in grants:
            return "reading" if scopes.is_reading(scope) else "grant"
        return None if _unsafe(part, _entries(self._safe)) else "reading"


def commands_in(arguments: bytes) -> Iterator[str]:
    """Yield the texts among a tool's arguments that look like commands: by their name, or their first word."""
    try:
        decoded = json.decode(arguments)
    except DecodeError:
        return
    texts = [text for text in _texts("", decoded) if _looks_like_command(*text)]
    yield from (text for _, text in texts[:_MOST_TEXTS])
    if len(texts) > _MOST_TEXTS:
        yield "\n".join(text for _, text in texts[_MOST_TEXTS:])


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(str(key), inner)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        if value and all(isinstance(each, str) for each in value):  # pyright: ignore[reportUnknownVariableType]
            yield name, " ".join(value)  # pyright: ignore[reportUnknownArgumentType]
        else:
            for inner in value:  # pyright: ignore[reportUnknownVariableType]
                yield from _texts(name, inner)


def _looks_like_command(name: str, text: str) -> bool:
    if _COMMAND_NAMES().fullmatch(name):
        return True
    first, _, rest = text.strip().partition(" ")
    program = stem_of(first.rpartition("/")[2])
    return bool(rest) and (program in BY_PROGRAM or program == "sudo") and text.isprintable()


def _unsafe(part: Command, entries: dict[str, list[list[str]]]) -> str:
    """Say why a command is not among the safe ones, or nothing."""
    words = part.words
    shown = " ".join(words)[:60]
    if part.start:
        return f"`{shown}` sets a variable"
    if target := next((each for each in part.targets if each != "/dev/null"), ""):
        return f"`{shown}` writes to {target}"
    fitting = entries.get(words[0], ()) if words else ()
    if not any(words[: len(entry)] == entry for entry in fitting):
        return f"`{shown}` is not one of the read-only commands"
    if glob := options.from_globs(words, part.globs):
        return f"`{shown}` may do more than read: {glob} can stand for a file that is named like an option"
    if option := options.writing(words) or next((o.name for o in options.running(words)), ""):
        return f"`{shown}` does more than read: {option}"
    return ""


@cache
def _entries(safe_commands: tuple[str, ...]) -> dict[str, list[list[str]]]:
    """Return the words of the safe commands, by program."""
    entries: dict[str, list[list[str]]] = {}
    for entry in safe_commands:
        if words := entry.split():
            entries.setdefault(words[0], []).append(words)
    return entries
