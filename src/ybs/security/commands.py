"""Shell commands, read as far as the policy needs: the words of every command in a line.

This is no boundary: it decides what is asked about and what the person is told. What it cannot read for
certain says so (`is_clear`), and is then asked about. Syntax: POSIX.1-2024, Shell Command Language.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

_SPACE = " \t"
_ENDS = ";&|()\n"
_OPERATOR = re.compile(r"\|\||\|&?|&&|[;&()\n]")
_REDIRECT = re.compile(r"&?>[>&|]?|<<<|<<-?|<[>&]?")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
#: Words of the grammar that stand before a command, or instead of one.
_GRAMMAR = frozenset(
    {"{", "}", "!", "if", "then", "elif", "else", "fi", "while", "until", "do", "done"} | {"coproc"}
)
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
_DEEPEST = 20


class Command(Struct):
    """One simple command: its words without quotes, where its output goes, and what its place is.

    `is_dynamic`: its program is only known when it runs (`$X foo`).
    """

    words: list[str]
    targets: list[str]
    is_piped_into: bool = False
    is_dynamic: bool = False

    @property
    def argv(self) -> list[str]:
        """The words without assignments and grammar before them."""
        words = self.words
        start = 0
        while start < len(words) and (words[start] in _GRAMMAR or _ASSIGNMENT.match(words[start])):
            start += 1
        return words[start:]


class Script(Struct):
    """All commands of a line, those in substitutions included.

    `is_simple`: one command without any operator, redirection, substitution, variable or assignment.
    `is_clear`: everything in it could be read.
    """

    commands: list[Command]
    is_simple: bool
    is_clear: bool


def parse(text: str) -> Script:
    """Read a command line. Never raises."""
    reader = _Reader(text)
    reader.read_all()
    bodies = [
        body for command in reader.commands if _name(command) in SHELLS for body in reader.bodies
    ]
    for body in bodies:  # a here-document for a shell is a script of its own
        reader.take(_Reader(body, reader.depth + 1))
    commands = [command for command in reader.commands if command.words or command.targets]
    is_simple = reader.is_plain and len(commands) == 1 and commands[0].argv == commands[0].words
    return Script(commands=commands, is_simple=is_simple, is_clear=reader.is_clear)


def _name(command: Command) -> str:
    argv = command.argv
    return argv[0].rpartition("/")[2] if argv else ""


class _Reader:
    """One pass over a text, character by character."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self._text, self._at = text.replace("\\\n", ""), 0
        self._length = len(self._text.rstrip())
        self.depth = depth
        self.commands: list[Command] = [Command(words=[], targets=[])]
        self.bodies: list[str] = []
        self._waiting: list[tuple[str, bool]] = []  # here-documents that begin at the next newline
        self.is_plain = self.is_clear = True

    def read_all(self) -> None:
        """Read to the end."""
        self._check_depth()
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in _SPACE:
                self._at += 1
            elif character == "#":
                self._skip_comment()
            elif redirect := _REDIRECT.match(self._text, self._at):
                self._redirect(redirect[0])
            elif operator := _OPERATOR.match(self._text, self._at):
                self._end_command(operator[0])
            else:
                self._add_word()
        if self._waiting:
            self.is_clear = False

    def _check_depth(self) -> None:
        if self.depth > _DEEPEST:
            self.is_clear = False
            self._at = len(self._text)

    def take(self, inner: "_Reader") -> None:
        """Read a text within this one and take its commands over."""
        inner.read_all()
        self.commands[-1:-1] = inner.commands
        self.bodies += inner.bodies
        self.is_plain = False
        self.is_clear = self.is_clear and inner.is_clear

    def _skip_comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _end_command(self, operator: str) -> None:
        self._at += len(operator)
        if operator == "\n" and self._waiting:
            self._read_bodies()
        if operator != "\n" or self._at < self._length:
            self.is_plain = False
        last = self.commands[-1]
        is_carried = last.is_piped_into and not last.words  # `a | (b)`, or b on the next line
        is_pipe = operator in ("|", "|&")
        self.commands.append(Command(words=[], targets=[], is_piped_into=is_pipe or is_carried))

    def _redirect(self, operator: str) -> None:
        self._at += len(operator)
        self.is_plain = False
        if operator in ("<", ">") and self._text[self._at : self._at + 1] == "(":
            self._at += 1
            inner = self._until("(", ")")
            self.take(_Reader(inner, self.depth + 1))
            self.commands[-1].words.append(f"{operator}({inner})")
            return
        words = self.commands[-1].words
        if words and words[-1].isdigit() and self._text[self._at - len(operator) - 1].isdigit():
            words.pop()  # the 2 of `2>file`
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        start = self._at
        target, _ = self._word()
        if operator in ("<<", "<<-"):
            is_quoted = any(mark in self._text[start : self._at] for mark in "'\"\\")
            self._waiting.append((target, is_quoted))
            self.is_clear = False
        elif ">" in operator and not target.isdigit():
            self.commands[-1].targets.append(target)

    def _read_bodies(self) -> None:
        for delimiter, is_quoted in self._waiting:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at) % (len(self._text) + 1)
                line = self._text[self._at : end]
                self._at = end + 1
                if line.lstrip("\t") == delimiter:
                    break
                lines.append(line)
            self.bodies.append("\n".join(lines))
            if not is_quoted:
                self._scan_quoted("\n".join(lines))
        self._waiting = []

    def _scan_quoted(self, text: str) -> None:
        """Find the substitutions in a text that the shell expands as if it stood in double quotes."""
        inner = _Reader(text, self.depth + 1)
        inner.expand_all()
        self.commands[-1:-1] = [command for command in inner.commands if command.words]
        self.is_clear = self.is_clear and inner.is_clear

    def expand_all(self) -> None:
        """Read the whole text as the inside of double quotes."""
        self._check_depth()
        while self._at < len(self._text):
            self._quoted_piece()

    def _add_word(self) -> None:
        start = self._at
        word, is_expanded = self._word()
        command = self.commands[-1]
        is_program = not command.argv
        command.words.append(word)
        raw = self._text[start : self._at]
        if is_program and command.argv and (is_expanded or ("{" in raw and "," in raw)):
            command.is_dynamic = True
            self.is_clear = False

    def _word(self) -> tuple[str, bool]:
        """Read one word; return it without quotes, and whether it holds an expansion."""
        pieces: list[str] = []
        is_expanded = False
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in _SPACE or character in _ENDS or character in "<>":
                break
            if character in "$`":
                piece, expanded = self._expansion()
                is_expanded = is_expanded or expanded
            elif character == '"':
                piece, expanded = self._double_quoted()
                is_expanded = is_expanded or expanded
            else:
                piece = self._plain_piece(character)
            pieces.append(piece)
        return "".join(pieces), is_expanded

    def _plain_piece(self, character: str) -> str:
        if character == "'":
            return self._single_quoted()
        if character == "\\":
            self._at += 2
            return self._text[self._at - 1 : self._at]
        self._at += 1
        return character

    def _single_quoted(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            self.is_clear = False
            end = len(self._text)
        piece = self._text[self._at + 1 : end]
        self._at = end + 1
        return piece

    def _double_quoted(self) -> tuple[str, bool]:
        self._at += 1
        pieces: list[str] = []
        is_expanded = False
        while self._at < len(self._text):
            if self._text[self._at] == '"':
                self._at += 1
                return "".join(pieces), is_expanded
            piece, expanded = self._quoted_piece()
            pieces.append(piece)
            is_expanded = is_expanded or expanded
        self.is_clear = False
        return "".join(pieces), is_expanded

    def _quoted_piece(self) -> tuple[str, bool]:
        character = self._text[self._at]
        if character in "$`":
            return self._expansion(is_quoted=True)
        if character == "\\" and self._text[self._at + 1 : self._at + 2] in tuple('$`"\\'):
            self._at += 1
        self._at += 1
        return self._text[self._at - 1 : self._at], False

    def _expansion(self, *, is_quoted: bool = False) -> tuple[str, bool]:
        start = self._at
        following = self._text[start + 1 : start + 2]
        self._at += 1
        if self._text[start] == "`":
            self._backquoted()
        elif following == "(":
            self._at += 1
            self.take(_Reader(self._until("(", ")"), self.depth + 1))
        elif following == "{":
            self._at += 1
            body = self._until("{", "}")
            if body.startswith("!") or "@" in body:
                self.is_clear = False  # names or prompts that are computed (bash)
            self._scan_quoted(body)
        elif name := _NAME.match(self._text, self._at):
            self._at = name.end()
        elif following in ("'", '"') and not is_quoted:
            self.is_clear = False  # $'..' of bash: escapes of its own
            return "", False
        else:
            return "$", False
        self.is_plain = False
        return self._text[start : self._at], True

    def _backquoted(self) -> None:
        end = self._at
        while end < len(self._text) and self._text[end] != "`":
            end += 2 if self._text[end] == "\\" else 1
        if end >= len(self._text):
            self.is_clear = False
        inner = re.sub(r"\\([`$\\])", r"\1", self._text[self._at : end])
        self._at = end + 1
        self.take(_Reader(inner, self.depth + 1))

    def _until(self, opening: str, closing: str) -> str:
        """Return the text up to the closing character, and stand behind it."""
        start, level = self._at, 1
        for place, character in self._significant():
            level += (character == opening) - (character == closing)
            if level == 0:
                self._at = place + 1
                return self._text[start:place]
        self.is_clear = False
        self._at = len(self._text)
        return self._text[start:]

    def _significant(self) -> Iterator[tuple[int, str]]:
        """Yield the characters from here on that are neither quoted nor escaped, with their places."""
        place, quote = self._at, ""
        while place < len(self._text):
            character = self._text[place]
            if character == "\\" and quote != "'":
                place += 1
            elif quote:
                quote = "" if character == quote else quote
            elif character in "'\"":
                quote = character
            else:
                yield place, character
            place += 1
