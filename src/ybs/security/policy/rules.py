"""Rules such as `run_shell(git log *)`: which calls an allow or a deny covers.

The grammar: `TOOL`, `TOOL(PATTERN)`, `TOOL:PATTERN`. In a tool's name and in the pattern of a command `*` stands
for any text; the pattern of a file tool is a glob of paths relative to the project's folder.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ybs.core.errors import ConfigError

if TYPE_CHECKING:
    from ybs.security.commands.command import Command
    from ybs.security.commands.wrappers import Reading

_RULE = r"(?P<tool>[\w*.-]+)(?:\((?P<inner>.*)\)|:(?P<rest>.*))?"


class Rule(Struct, frozen=True):
    """A tool's name, perhaps with `*`, and a pattern; without one it covers every call."""

    tool: str
    pattern: str | None = None

    @property
    def text(self) -> str:
        """The rule as it is written."""
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    def names(self, tool: str) -> bool:
        """Return whether the rule is about the tool."""
        return _fits(self.tool, tool)

    def covers_paths(self, paths: tuple[str, ...]) -> bool:
        """Return whether every path lies within the pattern; a relative one covers no absolute path."""
        is_absolute = (self.pattern or "").startswith("/")
        return bool(paths) and all(
            path.startswith("/") == is_absolute and self.covers_path(path) for path in paths
        )

    def is_exactly_path(self, paths: tuple[str, ...]) -> bool:
        """Return whether the pattern is the one path itself."""
        return paths == ((self.pattern or "").removeprefix("./"),)

    def covers_path(self, path: str) -> bool:
        """Return whether the path, as `Roots.show` writes it, fits the pattern."""
        from ybs.security.paths import globs  # most sessions have no rules

        return bool(globs.compiled((self.pattern or "").removeprefix("./")).fullmatch(path))

    def allows_command(self, command: str, reading: "Reading") -> bool:
        """Return whether the rule covers the whole command: it is the pattern, or every part of it fits."""
        if self.is_exactly(command):
            return True
        if self.pattern is None:
            return reading.is_clear
        script = reading.script
        if not reading.is_clear or not script.is_clear or script.has_variables:
            return False
        if script.is_simple and _fits(self.pattern, command.strip()):
            return not self._hides(script.commands[0])
        return bool(script.commands) and all(self.allows_part(part) for part in script.commands)

    def allows_part(self, part: "Command") -> bool:
        """Return whether the pattern covers one command of a line, without redirections and assignments."""
        if self.pattern is None or part.targets or part.sources or part.start or not part.words:
            return False
        return _fits(self.pattern, " ".join(part.words)) and not self._hides(part)

    def _hides(self, part: "Command") -> bool:
        """Return whether a word makes the program run or make something that the pattern does not name.

        The star of a pattern stands for how a program does its work, never for another program or another goal.
        """
        from ybs.security.commands import (
            options,  # only shell calls need them
            wrappers,
        )
        from ybs.security.policy.goals import goals_beyond

        words = part.words
        names = [option.name for option in options.running(words)]
        names += [*wrappers.words_that_run(words), *goals_beyond(words, self.pattern or "")]
        return any(name and name not in (self.pattern or "") for name in names)

    def denies_command(self, command: str, reading: "Reading") -> bool:
        """Return whether the rule covers the command or any part of it."""
        if self.pattern is None:
            return True
        texts = [command.strip(), *(" ".join(run.words) for run in reading.runs)]
        return any(_fits(self.pattern, text) for text in texts) or (
            not reading.is_clear and _is_among(self.pattern, reading.scanned)
        )

    def is_exactly(self, command: str) -> bool:
        """Return whether the pattern is the command itself, character by character."""
        return self.pattern is not None and self.pattern.strip() == command.strip()


def rule_of(text: str) -> Rule:
    """Read a rule. Raises ConfigError for an invalid one."""
    from ybs.security.paths import globs  # most sessions have no rules

    found = re.fullmatch(_RULE, text.strip(), re.DOTALL)
    pattern = None if found is None else found["inner"] if found["rest"] is None else found["rest"]
    if found is None or (pattern is not None and not pattern.strip()):
        raise ConfigError(
            f"{text!r} is not a valid rule; write TOOL, TOOL(PATTERN) or TOOL:PATTERN"
        )
    rule = Rule(found["tool"], pattern)
    try:
        globs.compiled("" if rule.names("run_shell") else pattern or "")
    except re.error as error:
        raise ConfigError(f"the pattern of the rule {text!r} is not valid: {error}") from error
    return rule


def outside_rules(patterns: Sequence[str]) -> list[Rule]:
    """Read `safety.outside_sandbox`. Raises ConfigError for a pattern that does not name its program."""
    for pattern in patterns:
        if "*" in pattern.split(" ")[0] or not pattern.strip():
            raise ConfigError(f"{pattern!r} in safety.outside_sandbox does not name a program; write `git push *`")  # fmt: skip
    return [Rule("run_shell", pattern.strip()) for pattern in patterns]


def _fits(pattern: str, text: str) -> bool:
    """Match a whole text. `git log *` covers `git log` as well."""
    pattern = pattern.strip()
    if pattern.endswith(" *") and _fits(pattern[:-2], text):
        return True
    first, *middle = pattern.split("*")
    if not middle:
        return text == first
    last = middle.pop()
    place = _place_behind(middle, text, len(first)) if text.startswith(first) else -1
    return 0 <= place <= len(text) - len(last) and text.endswith(last)


def _place_behind(pieces: list[str], text: str, place: int) -> int:
    """Return where the pieces end that stand one after the other in the text, or -1."""
    for piece in pieces:
        found = text.find(piece, place)
        if found < 0:
            return -1
        place = found + len(piece)
    return place


def _is_among(pattern: str, words: list[str]) -> bool:
    """Return whether a command that fits may begin anywhere among the words; programs without their folder."""
    pieces = (" " + " ".join(pattern.split()).removesuffix(" *")).split("*")
    plain = " " + " ".join(words) + " "
    texts = (plain, re.sub(r" \S*bin/", " ", plain), re.sub(r" \S*/", " ", plain))
    return any(_place_behind(pieces, text, 0) >= 0 for text in texts)
