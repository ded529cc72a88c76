"""Facts: the words of one file, each with what it counts, and the names it defines."""

import re
from collections import Counter
from functools import cache

from msgspec import Struct

from ybs.repo_map.languages import is_packed, utf8_of
from ybs.repo_map.words import LONGEST_COMPOUND, looks_like_key, stems_of

#: What a word counts by where it stands, as multiples of 1 / STEPS. The index keeps the sums: after a change of one of
#: these numbers every cache is stale, and all files are read once more.
NAME_WEIGHT = 6.0  # in the name of the file
FOLDER_WEIGHT = 3.0  # in the folders above it
SYMBOL_WEIGHT = 3.0  # in the name of a definition, on top of its place in the text
CONTENT_WEIGHT = 1.0
STEPS, WEIGHT_BITS = 2, 10
MOST_STEPS = (1 << WEIGHT_BITS) - 1
#: In front of the name of a definition, which is kept as it is written. No stem has it.
DEFINES = "="

_WORD = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]+")
_MOST_REMEMBERED = 150_000


class TermFacts(Struct, frozen=True, gc=False):
    """The terms of a file with their weights in steps, and how many words it has."""

    weights: dict[str, int]
    length: float


class FactReader(dict[bytes, tuple[str, ...]]):
    """Reads facts; it remembers the stems of every identifier, since the same ones come again and again."""

    def __missing__(self, word: bytes) -> tuple[str, ...]:
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        stems = self[word] = stems_of(word.decode(errors="replace"))
        return stems

    def read(self, path: str, data: bytes = b"", language: str = "") -> TermFacts:
        """Return the facts of a file; without data its path alone counts."""
        weights: dict[str, int] = {}
        length = self._add_text(weights, data)
        if language:
            self._add_names(weights, dict.fromkeys(outline(data, language)))
        self._add_path(weights, path)
        for stem, weight in weights.items():
            if weight > MOST_STEPS:
                weights[stem] = MOST_STEPS
        return TermFacts(weights, length)

    def _add_text(self, weights: dict[str, int], text: bytes) -> int:
        steps = int(CONTENT_WEIGHT * STEPS)
        get = weights.get
        total = 0
        for word, count in Counter(_WORD.findall(text)).items():
            total += count
            count *= steps
            for stem in self[word]:
                weights[stem] = get(stem, 0) + count
        return total

    def _add_names(self, weights: dict[str, int], names: dict[str, None]) -> None:
        steps = int(SYMBOL_WEIGHT * STEPS)
        for name in names:
            if len(name) > LONGEST_COMPOUND or looks_like_key(name):
                continue
            weights[DEFINES + name] = STEPS
            for stem in self[name.encode(errors="replace")]:
                weights[stem] = weights.get(stem, 0) + steps

    def _add_path(self, weights: dict[str, int], path: str) -> None:
        folders, _, name = path.rpartition("/")
        for part, weight in ((folders, FOLDER_WEIGHT), (name, NAME_WEIGHT)):
            for word in set(_WORD.findall(part.encode(errors="replace"))):
                for stem in self[word]:
                    weights[stem] = weights.get(stem, 0) + int(weight * STEPS)


def rules() -> tuple[float, ...]:
    """Return the numbers that facts depend on; those read by other ones are no good."""
    return (NAME_WEIGHT, FOLDER_WEIGHT, SYMBOL_WEIGHT, CONTENT_WEIGHT, STEPS)


# Parts of the patterns. `B` is space within a line, `N` a name.
_B = r"[ \t]"
_N = r"[A-Za-z_\x80-\xff][\w\x80-\xff]*+"
#: Words in front of a name: modifiers and the type, none of which starts a statement.
_WORDS = rf"(?:[\w.<>\[\],?&@:*]++{_B}++)"
_STATEMENT = (
    r"(?!(?:return|throw|new|else|case|assert|if|for|foreach|while|switch|catch|try|do|await|yield|goto|delete|"
    r"using|lock|select|from|join|let|where|orderby|group|synchronized|package|import|typedef|co_return|"
    r"co_await|template)\b|(?:public|private|protected|default):)"
)


_PYTHON = (
    rf"{_B}*+(?:async{_B}++)?(?:def|class){_B}++({_N})",
    rf"(?:type{_B}++)?({_N}){_B}*+(?:\[[^\]=\n]*+\]{_B}*+)?(?::[^=\n]++)?=(?!=)",
)
# JavaScript: the parameters of a function, in brackets; what a function looks like that is given to a name.
_J = r"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*+"
_PARAMETERS = r"(?:<[^()\n]{1,80}>)?\((?>(?:[^()]|\([^()]{0,200}+\)){0,300})\)"
_ARROW = (
    rf"(?>(?:async\b)?){_B}*+(?:function\b|[\w$]++{_B}*+=>|"
    rf"{_PARAMETERS}(?:{_B}*+:[^=;{{}}]{{1,100}}+)?{_B}*+=>)"
)
_SCRIPT = (
    rf"(?=[ecdlv])(?:export{_B}++)?(?:declare{_B}++)?(?:const|let|var){_B}++(?!enum\b)({_J})"
    rf"(?!{_B}*+={_B}*+(?:await import|require)\b)",
    rf"{_B}*+(?=[acdefint])(?>(?:(?:export|default|declare|abstract|async){_B}++)*)"
    rf"(?:function{_B}*+\*?{_B}*+|(?:class|interface|(?:const{_B}++)?enum|namespace){_B}++|type{_B}++(?=[\w$]++{_B}*+[<=]))"
    rf"(?!extends\b)({_J})",
    rf"{_B}++(?:const|let|var){_B}++({_J}){_B}*+(?::[^=\n]++)?={_B}*+{_ARROW}",
    rf"{_B}*+(?!(?:if|for|while|switch|catch|function|return|with|super|case|throw|await|yield|new|const|let|var|import)\b)"
    rf"(?>(?:(?:static|async|get|set|public|private|protected|override|abstract|readonly){_B}++(?![(:=]))*)\*?{_B}*+"
    rf"(?>(?:[\w$]++\.){{0,4}})['\"]?(#?{_J})['\"]?\??"
    rf"(?:{_B}*+[:=]{_B}*+{_ARROW}|{_PARAMETERS}{_B}*+(?::[^;{{}}\n]++(?=[;{{\n])|\{{))",
)
_GO = (
    rf"func{_B}*+(?:\([^)\n]*+\){_B}*+)?({_N})",
    rf"(?:type|const|var){_B}++({_N})",
    rf"\t({_N}){_B}++(?:struct|interface)\b",
    rf"\t([A-Z]\w*+){_B}++(?:[\w.]++{_B}++)?=",
    r"\t([A-Z]\w*+)\([^\r\n{]*+(?<=[\w)])(?<!\(\))(?=[\r\n])",
)
_RUST = (
    rf"{_B}*+(?:pub(?:\([^)\n]*+\))?{_B}++)?(?>(?:(?:default|unsafe|async|const|extern){_B}++(?:\"[^\"\n]*+\"{_B}++)?"
    rf"(?=fn|unsafe|async|extern|trait))*)"
    rf"(?:(?:fn|struct|enum|union|trait|type|mod){_B}++|(?:const|static){_B}++(?:mut{_B}++)?|macro_rules!{_B}*+)({_N})",
)
_MODIFIERS = (
    rf"(?>(?:(?:public|private|protected|internal|static|final|abstract|sealed|partial|readonly|ref|unsafe|new|file|"
    rf"non-sealed|strictfp|@(?!interface\b)\w++){_B}++)*)"
)
_JAVA = (
    rf"{_B}*+{_MODIFIERS}(?:class|@?interface|enum|record){_B}++({_N})",
    rf"{_B}++{_STATEMENT}(?>{_WORDS}{{1,12}})({_N})\([^;{{}}]{{0,500}}+[;{{]",
    rf"{_B}++([A-Z]\w*+)\([^;{{}}()]{{0,300}}+\){_B}*+(?:throws[^;{{}}]{{1,200}}+)?\{{",
    rf"{_B}++(?:\w++{_B}++){{0,3}}?static{_B}++final{_B}++{_WORDS}{{1,6}}({_N}){_B}*+=",
)
_CSHARP = (
    rf"{_B}*+(?:\[[^\]\n]*+\]{_B}*+)?{_MODIFIERS}(?:(?:class|interface|enum|struct|record(?:{_B}++(?:class|struct))?){_B}++|"
    rf"delegate{_B}++{_WORDS}{{1,4}})({_N})",
    rf"{_B}++{_STATEMENT}(?:\[[^\]\n]*+\]{_B}*+)?(?>{_WORDS}{{1,12}})(?:\w++\.)?({_N})(?:<[^()\n;]{{1,80}}>)?\([^;{{}}]{{0,500}}+[;{{]",
    rf"{_B}++(?:public|private|protected|internal){_B}++{_WORDS}{{0,8}}({_N}){_B}*+(?:\s{{0,100}}\{{\s{{0,100}}(?:get|set|init)\b|=>)",
    rf"{_B}++(?:\w++{_B}++){{0,3}}?const{_B}++\w++{_B}++({_N}){_B}*+=",
)
_STRUCT = r"(?:typedef[ \t]++)?(?:struct|union|enum)(?:[ \t]++(?:class|struct)\b)?[ \t]++"
_DEFINE = rf"{_B}*+#{_B}*+define{_B}++({_N})(?=\(|{_B}++[^\s/])"
_TYPEDEF = rf"typedef{_B}++[^;{{}}()\n]{{1,200}}?({_N})(?:\[[^\]\n]*+\])?;"
_C = (
    _DEFINE,
    rf"{_STRUCT}({_N}){_B}*+\n?{_B}*+\{{",
    rf"\}}{_B}*+({_N}){_B}*+;",
    _TYPEDEF,
    rf"typedef{_B}++[^;{{}}()\n]{{1,200}}+\({_B}*+\*?{_B}*+({_N})\)",
    rf"typedef{_B}++[^;{{}}()\n]{{1,200}}?[ \t*]({_N})\([^;{{}}]{{0,300}}+;",
    rf"{_STATEMENT}(?:\w++[ \t*]++){{0,10}}({_N}){_B}*+\([^;{{}}]{{0,300}}+\{{",
)
_TEMPLATE = rf"(?:template{_B}*+<[^\n;{{}}]{{0,200}}>{_B}*+)?"
_CPP = (
    _DEFINE,
    rf"{_B}*+{_STRUCT}({_N})[^;(){{}}]{{0,200}}+\{{",
    rf"{_B}*+{_TEMPLATE}(?:class|struct){_B}++(?:[A-Z_]{{2,40}}{_B}++)?(?>(?:\w++::)*)({_N})(?:{_B}*+<[^;{{}}]{{1,200}}>)?[^;(){{}}]{{0,300}}+\{{",
    rf"\}}{_B}*+({_N}){_B}*+;",
    _TYPEDEF,
    rf"{_B}*+{_TEMPLATE}using{_B}++({_N}){_B}*+=",
    rf"{_B}*+{_TEMPLATE}{_STATEMENT}(?:[\w:<>,.*&]++[ \t*&]++){{0,10}}(?:[\w<>,*&]++::){{0,6}}"
    rf"(~?{_N}|operator[^\w\s(]{{1,3}}){_B}*+\((?! ?\")[^;{{}}\[]{{0,300}}+(?:\{{|(?<=default);|(?<=delete);)",
)
_RUBY = (
    rf"{_B}*+(?:\w++{_B}++)?def{_B}++(?:[\w:]++\.)?({_N}[?!=]?|[<>=!+*/%&|^~\[\]-]{{1,3}})",
    rf"{_B}*+(?:class|module){_B}++(?>(?:\w++::)*)({_N})",
    rf"{_B}*+([A-Z]\w*+){_B}*+=(?![=~>])",
)
_PHP = (
    rf"{_B}*+(?>(?:(?:abstract|final|static|public|private|protected|readonly){_B}++)*)"
    rf"(?:function{_B}++&?{_B}*+|(?:class|interface|trait|enum){_B}++)({_N})",
    rf"{_B}*+(?>(?:(?:final|public|private|protected){_B}++)*)const{_B}++(?:[\w|?\\]++{_B}++)?({_N}){_B}*+=",
    rf"{_B}*+define\(['\"](\w++)",
)
_BASH = (
    rf"{_B}*+function{_B}++([\w:.@+-]++)",
    rf"{_B}*+([\w:.@+-]++){_B}*+\({_B}*+\)",
    rf"(?:(?:export|readonly|declare|local|typeset){_B}++(?>(?:-\w++{_B}++)*))?([A-Z_][A-Z0-9_]++)=",
)
#: The shapes of lines that define something, each with one group: the name.
_SHAPES = {
    "python": _PYTHON,
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "go": _GO,
    "rust": _RUST,
    "java": _JAVA,
    "c": _C,
    "cpp": _CPP,
    "csharp": _CSHARP,
    "ruby": _RUBY,
    "php": _PHP,
    "bash": _BASH,
}


@cache
def _pattern_of(language: str) -> re.Pattern[bytes]:
    return re.compile(rf"\n(?:{'|'.join(_SHAPES[language])})".encode("latin-1"))


def outline(data: bytes, language: str) -> list[str]:
    """Return the names of the definitions in the order of the text; a quick guess, not a parse."""
    if language not in _SHAPES or is_packed(data):
        return []
    found = _pattern_of(language).findall(b"\n" + utf8_of(data))
    names = map(b"".join, found) if len(_SHAPES[language]) > 1 else found
    return b"\n".join(names).decode("utf-8", "replace").split("\n") if found else []
