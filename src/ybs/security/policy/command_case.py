"""A shell command on trial: everything that the policy needs to know about it, found out once."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import DecodeError, json

from ybs.config.schema import Safety
from ybs.core.lazy import lazy
from ybs.security.commands.dangers import blocked_entry, stem_of, warnings_of
from ybs.security.commands.destruction import BY_PROGRAM
from ybs.security.commands.wrappers import Reading, read
from ybs.security.commands.writers import needs_git, writes
from ybs.security.policy import scopes
from ybs.security.policy.concerns import concerns_of, notes_of
from ybs.security.policy.rules import Rule

#: Names of arguments that hold commands, in the tools of others.
_COMMAND_NAMES = lazy(r"(?:.*_)?(?:command|commands|cmd|script|shell|bash|exec|run|sql|query|code)", re.I)  # fmt: skip
_MOST_TEXTS = 50


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
    def writes(self) -> str:
        """Say which part is known to write, or to need the network; nothing where none is."""
        return writes(self.reading)

    @property
    def needs_git(self) -> bool:
        """Whether a part is known to write in git's folder, which no command in the sandbox can."""
        return needs_git(self.writes)

    @property
    def unlisted(self) -> str:
        """Say which program is not among `safety.safe_commands`; nothing where all are."""
        if not self.reading.is_clear:
            return "it is not understood"
        entries = [entry.split() for entry in self._safe]
        for run in self.reading.runs:
            if not any(run.words[: len(entry)] == entry for entry in entries if entry):
                return f"{run.words[0] if run.words else 'it'} is not in safety.safe_commands"
        return ""

    @property
    def scopes(self) -> list[str]:
        """The scopes that together cover the command."""
        if self._scopes is None:
            self._scopes = scopes.scopes_of(self.reading)
        return self._scopes

    @property
    def why_never_granted(self) -> str:
        """Why nothing may be remembered about the command as it stands; empty where something may."""
        if self.reading.text.endswith(" *"):
            return "as a rule it would allow more than this command"
        return scopes.why_never(self.reading)

    def is_covered_by(self, rules: Sequence[Rule], grants: Collection[str]) -> bool:
        """Return whether a rule's pattern or a grant covers each part that does more than read."""
        script = self.reading.script
        if not self.reading.is_clear or not script.is_clear or script.has_variables:
            return False
        parts = scopes.parts_to_cover(script)
        return bool(parts) and all(
            any(rule.names("run_shell") and rule.allows_part(part) for rule in rules)
            or scopes.text_of([scopes.scope_of(part)]) in grants
            for part in parts
        )

    def may_leave(self, rules: Sequence[Rule]) -> bool:
        """Return whether rules for running outside the sandbox name the command, or each of its parts."""
        script = self.reading.script
        if any(rule.is_exactly(self.reading.text) for rule in rules):
            return True
        if not self.reading.is_clear or not script.is_clear or script.has_variables:
            return False
        return bool(script.commands) and all(
            any(rule.allows_part(part) for rule in rules) for part in script.commands
        )


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
