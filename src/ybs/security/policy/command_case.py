"""A shell command on trial: everything that the policy needs to know about it, found out once."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from posixpath import normpath
from typing import Any
from unicodedata import name as name_of
from unicodedata import normalize

from msgspec import DecodeError, json

from ybs.config.schema import SafetySettings
from ybs.core.lazy import lazy
from ybs.security.commands import dangers, options
from ybs.security.commands.command import Command, words_in
from ybs.security.commands.dangers import BY_PROGRAM, INTERPRETERS, stem_of
from ybs.security.commands.wrappers import Reading, read
from ybs.security.commands.writers import IN_GIT, needs_network, writes
from ybs.security.policy import scopes
from ybs.security.policy.rules import Rule
from ybs.security.unicode import hidden_characters

#: Names of arguments that hold commands, in the tools of others.
_COMMAND_NAMES = lazy(r"(?:.*_)?(?:command|commands|cmd|script|shell|bash|exec|run|sql|query|code)", re.I)  # fmt: skip
_MOST_TEXTS = 50
#: Files that are nobody's; the sandbox has its own folders for scratch files.
_NOBODYS = lazy(r"/dev/(?:null|stdout|stderr|tty)$|/tmp/|/var/tmp/")
#: Commands of the shell itself after which other words mean something else, and those that run a text.
_CHANGING = words_in("alias unalias hash enable complete bind trap shopt fc coproc")
_RUNNING_TEXT = words_in("eval source . let")
_SETTING = words_in("export declare typeset readonly local env setenv launchctl set")
_WITH_SUBSCRIPTS = _SETTING | words_in("printf read unset test [ wait mapfile readarray")
_MOVING = words_in("cd pushd chdir")
_NETWORK = lazy(r"/dev/(?:tcp|udp)/")
_FOREIGN_SCRIPT = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")
_LATIN = lazy(r"[A-Za-z]")
_LETTERS = lazy(r"[^\W\d_]+|.", re.DOTALL)


class CommandCase:
    """One command: how it reads, what is dangerous about it, and what could allow it."""

    def __init__(self, command: str, safety: SafetySettings) -> None:
        self.reading: Reading = read(command)
        self.blocked = dangers.blocked_entry(self.reading, safety.blocked_commands)
        self.dangers = dangers.warnings_of(command, self.reading)
        self.foreseen = tuple(each for each in self.dangers if not each.endswith(dangers.FED))
        self.reasons = reasons_to_ask(command, self.reading)
        self.needs_network = needs_network(self.reading)
        self._safe = safety.safe_commands

    @cached_property
    def writes(self) -> str:
        """Return the part that is known to write or to need the network; empty if there is none."""
        return next(iter(writes(self.reading)), "")

    @property
    def needs_git(self) -> bool:
        """Whether a part is known to write in git's folder, which no command in the sandbox can."""
        return self.writes.endswith(IN_GIT)

    @property
    def unlisted(self) -> str:
        """Return a program that is not among `safety.safe_commands`; empty if all are."""
        if not self.reading.is_clear:
            return "it is not understood"
        entries = [entry.split() for entry in self._safe if entry.strip()]
        for words in (run.words for run in self.reading.runs):
            if not any(words[: len(entry)] == entry for entry in entries):
                return f"{words[0] if words else 'it'} is not in safety.safe_commands"
        return ""

    @cached_property
    def scopes(self) -> list[str]:
        """The scopes that together cover the command."""
        return scopes.scopes_of(self.reading)

    @cached_property
    def why_never(self) -> str:
        """Why nothing may be remembered about the command as it stands; empty where something may."""
        return scopes.why_never(self.reading)

    def is_covered_by(self, rules: Sequence[Rule], grants: Collection[str], place: str) -> bool:
        """Return whether a rule's pattern, or a grant for this place, covers each part that does more than read."""
        parts = scopes.parts_to_cover(self.reading)
        return bool(parts) and all(
            any(rule.names("run_shell") and rule.allows_part(part) for rule in rules)
            or f"run_shell({scopes.scope_of(part)}){place}" in grants
            for part in parts
        )

    def may_leave(self, rules: Sequence[Rule]) -> bool:
        """Return whether rules for running outside the sandbox name the command, or each of its parts."""
        parts = self.reading.parts
        return any(rule.is_exactly(self.reading.text) for rule in rules) or (
            bool(parts) and all(any(rule.lets_out(part) for rule in rules) for part in parts)
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


def reasons_to_ask(text: str, reading: Reading) -> tuple[str, ...]:
    """Say what has to be asked about, one line for each thing."""
    found = [f"not understood: {reason}" for reason in reading.doubts]
    moves = any(run.words and run.words[0] in _MOVING for run in reading.runs)
    for run in reading.runs:
        name, words = "".join(run.words[:1]), run.words
        files = [*run.targets, *(options.operands_of(words) if name == "tee" else ())]
        reaching = [(file, _reach_of(file, moves=moves)) for file in files]
        found += [f"writes to {file!r}, {reach}" for file, reach in reaching if reach]
        for each in (*run.sets, *(words[1:] if name in _SETTING else ())):
            if scopes.POWERFUL().match(each) and not scopes.is_harmless(each):
                variable = each.partition("=")[0].rstrip("+")
                found.append(f"sets {variable}, which says how other programs run")
        found += _reasons_of_program(name, run)
    found += dangers.hidden_in(text, reading)
    if _NETWORK().search(text):
        found.append("opens a network connection by way of /dev/tcp or /dev/udp")
    if not text.isascii():
        found += oddities_of(text, reading)
    return tuple(dict.fromkeys(found))


def _reasons_of_program(name: str, run: Command) -> Iterator[str]:
    words = run.words
    if name in _RUNNING_TEXT:
        yield f"{name} runs text or a file as commands of this shell"
    elif name in _CHANGING and len(words) > 1:
        yield f"{name} changes what other commands mean"
    if name in _WITH_SUBSCRIPTS and any("[" in w and ("$(" in w or "`" in w) for w in words[1:]):
        yield f"{name} runs the substitution within a subscript"
    if run.given and stem_of(name) in INTERPRETERS:
        yield f"{name} runs the text of a here-document"
    for option, _ in options.running(words) if name in options.RUNNING else ():
        yield f"{name} {option} runs what it is given"


def oddities_of(text: str, reading: Reading) -> Iterator[str]:
    """Say what a reader could overlook in the command."""
    yield from (f"holds the invisible character {name}" for name in hidden_characters(text))
    for run in reading.runs:
        if run.words and not run.words[0].isascii():
            yield f"the program's name {run.words[0]!r} holds letters that look like others"
    for word in dict.fromkeys(_LETTERS().findall(text)):
        if not word.isascii() and (twin := _deceiver(word)):
            yield f"{word[:40]!r} holds {twin}, which looks like another character"


def _deceiver(word: str) -> str:
    """Return the name of a character in a run of letters that is there to be taken for another one, or nothing."""
    has_latin = bool(_LATIN().search(word))
    for character in word:
        plain = normalize("NFKC", character)
        is_twin = plain != character and plain.isascii() and not plain.isalnum()
        is_foreign = name_of(character, "").startswith(_FOREIGN_SCRIPT)
        if character.isspace() or (is_foreign and (is_twin or has_latin)):
            return f"U+{ord(character):04X}"
    return ""


def _reach_of(target: str, *, moves: bool) -> str:
    """Return what is special about a file that is written to, or nothing."""
    path = normpath(target)
    parts = path.split("/")
    if _NOBODYS().match(path):
        return ""
    if target[:1] in "~$/" or parts[0] == "..":
        return "outside the project"
    if any(part.startswith(".") and part != "." for part in parts):
        return "which other programs read by themselves"
    return "in a folder that is only known when it runs" if moves else ""
