"""Shell commands: a flat part of the language is recognised, and every other text is only scanned for words.

This is not a boundary: it decides what is asked about and what the person is told. A text is clear when it is a
flat line: words, quotes, plain variables among the arguments, `&&`, `||`, `;`, `|`, newlines, and redirections
to a word. All else (comments, substitutions, here-documents, loops, …) is not understood on purpose: shells
differ there, and a wrong reading would hide a command.
"""

import re

from msgspec import Struct, field

from ybs.core.lazy import lazy

#: Longer texts are not clear, nor those with more separators and quotes.
_MOST_CHARACTERS = 100_000
_MOST_MARKS = 2_000
_MARKS = "\"'`$(){}[];|&<>\\\n"
_PLAIN = r"""[^\s\0-\x1f\x7f'"`\\$&|;<>(){}#]++"""
_VARIABLE = r"\$[A-Za-z_][A-Za-z0-9_]*"
_PIECE = (
    rf"""{_PLAIN}|'[^']*'|"(?>(?:[^"`$\\]|{_VARIABLE})*)"|\\[^\0-\x08\n-\x1f\x7f]"""
    rf"|\{{[A-Za-z0-9_-]*\}}|{_VARIABLE}"
)
_WORD = rf"(?:{_PIECE})(?:{_PIECE}|\#)*"
_TOKEN = lazy(
    r"[ \t]*(?:(?P<separator>&&|\|\|?|[;\n])|(?P<copy>[0-9]?>&[0-9](?=[ \t\n;|]|$))"
    rf"|[0-9]*(?:(?P<output>>>?)|<)[ \t]*(?P<file>{_WORD})|(?P<word>{_WORD}))|(?P<space>[ \t]+)"
)
#: The most ordinary line: nothing in it means anything to a shell but its spaces.
_PLAIN_LINE = re.compile(r"[A-Za-z0-9_./:@%+,^= \t-]++")
_QUOTE = re.compile(r"['\"\\]")
_QUOTES = lazy(r"""'([^']*)'|"([^"]*)"|\\(.)""")
_ASSIGNMENT = lazy(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
#: Where the shell begins to make more of a word, and what may be the last of that.
_OPENING = lazy(r"[$`*?\[]|\{(?!\})|[@+!]\(")
_CLOSING = lazy(r"\$\w*|[`*?\]})@!#-]")
_EXPANDED = lazy(r"[*?\[$]|\{(?!\})")
_GLOB = lazy(r"[*?\[]")
#: How a word begins of which the shell could make an option, by a file of such a name; behind a `=` the option is known.
_MAY_BE_OPTION = lazy(r"(?:-[^=]*)?[*?\[]")
_WITHOUT_QUOTES = str.maketrans("", "", "\\'\"")
#: What may stand between the letters of a name.
_NOTHING = lazy(r"\$\(\)|``|\$(?:\{[\w@*]*\}|[@*#?!$\d-])(?=[\w-])")
_BRACED = lazy(r"\$\{(\w+)\}")
_BEHIND_A_NAME = lazy(r"(?<=[A-Za-z])\$\w+")  # `rm$x`, where x is likely to be empty
_DEFAULT = lazy(r"\$\{\w+:?[-=+?]")
_SEPARATORS = lazy(r"[\s;&|()<>{},`#]+")


class Glob(str):
    """A word that the shell replaces by names of files, which may begin with a dash."""

    __slots__ = ()


class Command(Struct):
    """One simple command: the program and its arguments without quotes, the files its output goes to, and its place.

    `sets`: the assignments before the program. `given`: the text of its here-documents. `sources`: the files its input comes from.
    """

    words: list[str]
    targets: list[str]
    is_piped_into: bool = False
    given: str = ""
    sets: list[str] = field(default_factory=list[str])
    sources: list[str] = field(default_factory=list[str])

    @property
    def may_gain_options(self) -> bool:
        """Whether a file of the right name would be an option (`*`, not `./*`): no rule covers what no word of the command shows."""
        ends = self.words.index("--") if "--" in self.words else None
        return any(isinstance(word, Glob) for word in self.words[:ends])


class Script(Struct):
    """The commands of a flat line; of any other text those before the first thing not understood.

    `is_clear`: all of it is understood. `has_variables`: an argument is only known when it runs.
    `is_simple`: one command without separators, redirections, variables and assignments. `doubts`: in words, why
    it is not clear.
    """

    commands: list[Command]
    is_clear: bool
    has_variables: bool = False
    is_simple: bool = False
    doubts: dict[str, None] = field(default_factory=dict[str, None])


def words_in(text: str) -> frozenset[str]:
    """Return the words of a table."""
    return frozenset(text.split())


#: Words of the grammar that stand where a program could.
GRAMMAR = words_in(
    "! [[ if then elif else fi for while until do done case esac function select coproc { }"
)

#: Commands of the shell after which names mean other files.
MOVING = words_in("cd pushd chdir")


def is_short(text: str) -> bool:
    """Return whether a text is short enough to be judged."""
    has_few = len(text) <= _MOST_MARKS or sum(map(text.count, _MARKS)) <= _MOST_MARKS
    return len(text) <= _MOST_CHARACTERS and has_few


def is_open(token: str) -> bool:
    """Return whether a word as it stands has parts that the shell replaces: variables, globs, braces."""
    if _QUOTE.search(token):
        token = _QUOTES().sub(r"\2", token)
    return _EXPANDED().search(token) is not None


def ends_of(word: str) -> tuple[str, str] | None:
    """Return how a word begins and ends that is only known when it runs: before, and behind, its variables, globs and braces; None for any other word.

    What stood in quotes counts as well, as a word does not tell.
    """
    opening = _OPENING().search(word)
    return opening and (word[: opening.start()], _CLOSING().split(word)[-1])


def parse(text: str) -> Script:
    """Recognise a flat line. Never raises."""
    script = Script([Command([], [])], is_clear=is_short(text))
    if script.is_clear and _PLAIN_LINE.fullmatch(text):
        words = text.split()
        if words and words[0] not in GRAMMAR and "=" not in words[0]:
            return Script([Command(words, [])], is_clear=True, is_simple=True)
    place, kinds = 0, {"space", "word"}
    while script.is_clear and (token := _TOKEN().match(text, place)):
        kind, place = token.lastgroup or "", token.end()
        kinds.add(kind)
        if kind == "word":
            _add_word(script, token["word"])
        elif kind == "file":
            _add_file(script, token["file"], is_output=token["output"] is not None)
        elif kind == "separator":
            script.commands.append(
                Command([], [], is_piped_into=_is_fed(script, token["separator"]))
            )
    script.is_clear = script.is_clear and place == len(text)
    script.commands = [c for c in script.commands if c != Command([], [], c.is_piped_into)]
    is_one = len(script.commands) == 1 and len(kinds) == 2 and not script.commands[0].sets
    script.is_simple = is_one and script.is_clear and not script.has_variables
    return script


def scan(text: str) -> list[str]:
    """Return everything in a text that could be a word of a command, once quotes and escapes are gone."""
    texts = [text.replace("\\\n", ""), text.replace("\\\n", " ")] if "\\\n" in text else [text]
    words: list[str] = []
    for each in texts:
        bare = each.translate(_WITHOUT_QUOTES)
        if "$" in bare or "`" in bare:
            bare = bare.replace("${IFS}", " ").replace("$IFS", " ")
            bare = _BRACED().sub(r"$\1", _NOTHING().sub("", bare))
            bare = _DEFAULT().sub(" ", _BEHIND_A_NAME().sub("", bare))
        words += _SEPARATORS().split(bare)
    return [word for word in words if word]


def _is_fed(script: Script, separator: str) -> bool:
    last = script.commands[-1]
    is_empty = not (last.words or last.sets or last.targets)  # a pipe goes on behind a newline
    return separator == "|" or (separator == "\n" and is_empty and last.is_piped_into)


def _add_word(script: Script, token: str) -> None:
    command = script.commands[-1]
    open_text = word = token
    if _QUOTE.search(token):
        open_text, word = _QUOTES().sub(r"\2", token), _QUOTES().sub(r"\1\2\3", token)
    script.has_variables = script.has_variables or "$" in open_text
    if _MAY_BE_OPTION().match(word) and _GLOB().search(_QUOTES().sub("", token)):
        word = Glob(word)
    is_set = not command.words and _ASSIGNMENT().match(token) is not None
    (command.sets if is_set else command.words).append(word)
    if command.words == [word] and (
        word in GRAMMAR or (word != "[" and _EXPANDED().search(open_text))
    ):
        script.is_clear = False  # its program is only known when it runs


def _add_file(script: Script, token: str, *, is_output: bool) -> None:
    script.is_clear = script.is_clear and not _EXPANDED().search(token)
    command = script.commands[-1]
    (command.targets if is_output else command.sources).append(_QUOTES().sub(r"\1\2\3", token))
