"""Shell commands: a flat part of the language is recognised, and every other text is only scanned for words.

This is no boundary: it decides what is asked about and what the person is told. A text is clear when it is a
flat line: words, quotes, plain variables among the arguments, `&&`, `||`, `;`, `|`, newlines, and redirections
to a word. All else (comments, substitutions, here-documents, loops, …) is not understood on purpose: shells
differ there, and a wrong reading would hide a command.
"""

import re

from msgspec import Struct

#: Longer texts are not clear, nor those with more separators and quotes.
_MOST_CHARACTERS = 100_000
_MOST_MARKS = 5_000
_MARKS = " \t\n;|&<>'\"\\$"
_PLAIN = r"""[^\s\0-\x1f\x7f'"`\\$&|;<>(){}#]++"""
_VARIABLE = r"\$[A-Za-z_][A-Za-z0-9_]*"
_PIECE = (
    rf"""{_PLAIN}|'[^']*'|"(?:[^"`$\\]|{_VARIABLE})*+"|\\[^\0-\x08\n-\x1f\x7f]"""
    rf"|\{{[A-Za-z0-9_-]*\}}|{_VARIABLE}"
)
_WORD = rf"(?:{_PIECE})(?:{_PIECE}|\#)*"
_TOKEN = re.compile(
    r"(?P<space>[ \t]+)|(?P<separator>&&|\|\|?|[;\n])|(?P<copy>[0-9]?>&[0-9](?=[ \t\n;|]|$))"
    rf"|[0-9]*(?:(?P<output>>>?)|<)[ \t]*(?P<file>{_WORD})|(?P<word>{_WORD})"
)
_QUOTES = re.compile(r"""'([^']*)'|"([^"]*)"|\\(.)""")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_EXPANDED = re.compile(r"[*?\[$]|\{(?!\})")
#: Words of the grammar that stand where a program could.
_GRAMMAR = frozenset(
    ("!", "[[", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case")
) | {"esac", "function", "select", "coproc"}
_WITHOUT_QUOTES = str.maketrans("", "", "\\'\"")
_NOTHING = re.compile(
    r"\$\(\)|``|\$(?:\{[\w@*]*\}|[@*#?!$\d-])(?=[\w-])"
)  # between the letters of a name
_BRACED = re.compile(r"\$\{(\w+)\}")
_DEFAULT = re.compile(r"\$\{\w+:?[-=+?]")
_SEPARATORS = re.compile(r"[\s;&|()<>{},`#]+")


class Command(Struct):
    """One simple command: its words without quotes, the files its output goes to, and its place.

    `start`: how many of the words are assignments before the program.
    """

    words: list[str]
    targets: list[str]
    is_piped_into: bool = False
    start: int = 0

    @property
    def argv(self) -> list[str]:
        """The program and its arguments."""
        return self.words[self.start :]


class Script(Struct):
    """The commands of a flat line; of any other text those before the first thing not understood.

    `is_clear`: all of it is understood. `has_variables`: an argument is only known when it runs.
    `is_simple`: one command without separators, redirections, variables and assignments.
    """

    commands: list[Command]
    is_clear: bool
    has_variables: bool = False
    is_simple: bool = False


def parse(text: str) -> Script:
    """Recognise a flat line. Never raises."""
    script = Script([Command([], [])], is_clear=_is_short(text))
    place, kinds = 0, {"space", "word"}
    while script.is_clear and (token := _TOKEN.match(text, place)):
        kind, place = token.lastgroup or "", token.end()
        kinds.add(kind)
        if kind == "word":
            _add_word(script, token[0])
        elif kind == "file":
            _add_file(script, token["file"], is_output=token["output"] is not None)
        elif kind == "separator":
            script.commands.append(Command([], [], is_piped_into=_is_fed(script, token[0])))
    script.is_clear = script.is_clear and place == len(text)
    script.commands = [command for command in script.commands if command.words or command.targets]
    is_one = len(script.commands) == 1 and len(kinds) == 2 and not script.commands[0].start
    script.is_simple = is_one and script.is_clear and not script.has_variables
    return script


def scan(text: str) -> list[str]:
    """Return everything in a text that could be a word of a command, once quotes and escapes are gone."""
    texts = [text.replace("\\\n", ""), text.replace("\\\n", " ")] if "\\\n" in text else [text]
    words: list[str] = []
    for each in texts:
        bare = each.translate(_WITHOUT_QUOTES)
        bare = _BRACED.sub(r"$\1", _NOTHING.sub("", bare))
        words += _SEPARATORS.split(_DEFAULT.sub(" ", bare))
    return [word for word in words if word]


def _is_short(text: str) -> bool:
    return len(text) <= _MOST_CHARACTERS and sum(map(text.count, _MARKS)) <= _MOST_MARKS


def _is_fed(script: Script, separator: str) -> bool:
    last = script.commands[-1]
    is_empty = not last.words and not last.targets  # a pipe goes on behind a newline
    return separator == "|" or (separator == "\n" and is_empty and last.is_piped_into)


def _add_word(script: Script, token: str) -> None:
    command = script.commands[-1]
    open_text = _QUOTES.sub(r"\2", token)
    word = _QUOTES.sub(r"\1\2\3", token)
    script.has_variables = script.has_variables or "$" in open_text
    if command.start == len(command.words):
        if _ASSIGNMENT.match(token):
            command.start += 1
        elif word in _GRAMMAR or (word != "[" and _EXPANDED.search(open_text)):
            script.is_clear = False  # its program is only known when it runs
    command.words.append(word)


def _add_file(script: Script, token: str, *, is_output: bool) -> None:
    script.is_clear = script.is_clear and not _EXPANDED.search(token)
    if is_output:
        script.commands[-1].targets.append(_QUOTES.sub(r"\1\2\3", token))
