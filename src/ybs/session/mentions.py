"""Mentions: `@path` in the person's words, and paths of pictures that were dragged or pasted into them."""

import re
from collections.abc import Collection, Iterator
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.lazy import lazy

#: Who sends a text of more than this may not have read it to its end.
MOST_LINES, MOST_CHARACTERS = 10, 1_000
#: What is looked at of very long words.
MOST_MENTIONS = 200
#: An @ counts at the start of a word: not in mail addresses, nor behind a sign that is escaped for a shell.
_START = r"(?:^|(?<=[\s(\[{<'\"`])(?<!\\.))"
_WRITTEN = rf'{_START}@(?:"((?:\\"|[^"\n])+)(?:"(:\d+(?:-\d+)?)?|$)|((?:\\ |[^\s@"])(?:\\ |\S)*))'
_MENTION = lazy(_WRITTEN, re.MULTILINE)
_OPEN = lazy(rf'{_START}@(?:"((?:\\"|[^"\n])*)|((?:[^\s@"]\S*)?))$')
_LINES = lazy(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?")
#: Signs that end a sentence or close a bracket more often than they end a name.
_AFTER = ".,;:!?)]}>'\"`"
_MOST_SIGNS = 40
#: Where the path alone would be read as something else: it needs quotes.
_NEEDS_QUOTES = lazy(rf"[\s\"]|[{re.escape(_AFTER)}]$|:\d+(?:-\d+)?$")
_ENDING = r"\.(?i:png|jpe?g|gif|webp)"
#: A path as terminals write the name of a file that is dropped, a word of a shell: with signs escaped, or in quotes.
_DROPPED = (
    r"""(?:file://)?[/~](?>(?:\\.|[^\s\\'"])*)"""
    r"""|(?=['"](?:file://)?[/~])(?>(?:\\.|'[^'\n]*'|"(?:\\.|[^"\\\n])*"|[^\s\\'"])+)"""
)
#: A mention, a picture, or another path: what stands in one is not looked at again. The expression takes a while to compile.
_NAMED = lazy(
    rf'''{_WRITTEN}|(?:^|(?<=\s))(?:(?:'((?:file://)?[/~][^'\n]*{_ENDING})'|"((?:file://)?[/~][^"\n]*{_ENDING})"'''
    rf"""|((?:file://)?[/~](?:\\.|[^\s\\'"])*{_ENDING}))(?=\s|$)|{_DROPPED})""",
    re.MULTILINE,
)
#: A name that ends as files do, and holds nothing that a call or an address has.
_FILE_NAME = lazy(
    r"[^()@<>{}=;]*[\w-]\.(?:py|pyi|js|jsx|mjs|ts|tsx|vue|css|scss|html|md|rst|txt|json|jsonl|toml|ya?ml|ini|cfg|conf|env"
    r"|rs|go|c|h|cc|cpp|hpp|cs|java|kt|swift|rb|php|lua|sh|sql|csv|tsv|xml|log|lock|diff|patch|pdf|png|jpe?g|gif|webp|svg)"
)
#: How the path of a picture begins.
_BEGINNINGS = tuple(quote + each for quote in ("", "'", '"') for each in ("/", "~", "file://"))
_PICTURE_NAME = lazy(rf"{_ENDING}$")


class MentionReading(Struct, frozen=True):
    """One way to read a mention: a path, and the lines meant (0: from the first, to the last)."""

    path: str
    first: int = 0
    last: int = 0


class Mention(Struct, frozen=True):
    """What is to be attached: the ways to read it, the likeliest first.

    `is_confined`: the person did not write it, so it means nothing outside of the folders that tools may read.
    """

    readings: tuple[MentionReading, ...]
    is_confined: bool = False


class NamedInWords(Struct, frozen=True):
    """What words name: mentions, and the paths of pictures.

    `anywhere`: of these paths alone it is sure that the person meant them (None: of all). Of the others, what lies outside of the folders
    that tools may read is asked about.
    """

    mentions: tuple[Mention, ...] = ()
    pictures: tuple[str, ...] = ()
    anywhere: frozenset[str] | None = None

    def is_sure(self, each: Mention | str) -> bool:
        """Return whether the person meant a mention or the path of a picture, wherever it leads."""
        paths = (each,) if isinstance(each, str) else (reading.path for reading in each.readings)
        return self.anywhere is None or not self.anywhere.isdisjoint(paths)


NOTHING = NamedInWords()


def is_long(text: str) -> bool:
    """Return whether a text is more than a few words, so that others may have written it: it was pasted, or comes from an editor."""
    return len(text) > MOST_CHARACTERS or text.count("\n") >= MOST_LINES


def paths_in(named: NamedInWords) -> set[str]:
    """Return the paths that the person named."""
    own = [each for each in named.mentions if not each.is_confined]
    return {each.path for mention in own for each in mention.readings} | {*named.pictures}


def may_name(text: str) -> bool:
    """Return whether a text could name a file or a picture, with whatever is taken out of it."""
    return "@" in text or "/" in text


def named_in_said(words: str, linked: Collection[str] | None = None) -> NamedInWords:
    """Return what words name that the person sends. In a long text, or where `linked` is given, only what is linked is sure to be meant."""
    named = named_in(words)
    if named is NOTHING or (linked is None and not is_long(words)):
        return named
    return replace(named, anywhere=frozenset(linked or ()))


def named_in(words: str) -> NamedInWords:
    """Return the files and pictures that the person's words name, those that are looked at."""
    has_pictures = "/" in words and any(word.startswith(_BEGINNINGS) for word in words.split())
    if "@" not in words and not has_pictures:
        return NOTHING
    expression = _NAMED if has_pictures else _MENTION
    named = (each for each in expression().finditer(words) if any(each.groups()))
    found = list(islice(named, MOST_MENTIONS))
    mentions = [Mention(_readings_of(each)) for each in found if each[0][:1] == "@"]
    pictures = [_path_of(*each.groups()[3:]) for each in found if each[0][:1] != "@"]
    return NamedInWords(tuple(mentions), tuple(pictures))


def mentions_in(words: str) -> Iterator[tuple[MentionReading, ...]]:
    """Yield each mention with the ways to read it, the likeliest first."""
    if "@" in words:
        yield from map(_readings_of, islice(_MENTION().finditer(words), MOST_MENTIONS))


def _readings_of(found: re.Match[str]) -> tuple[MentionReading, ...]:
    quoted, lines, bare = found.groups()[:3]
    if quoted:
        return _readings(quoted.replace('\\"', '"') + (lines or ""), is_quoted=True)
    return _readings(bare.replace("\\ ", " "), is_quoted=False)


def _readings(text: str, *, is_quoted: bool) -> tuple[MentionReading, ...]:
    readings: list[MentionReading] = []
    shortest = len(text if is_quoted else text.rstrip(_AFTER))
    for end in range(min(len(text), shortest + _MOST_SIGNS), max(shortest, 1) - 1, -1):
        name = text[:end]
        readings.append(MentionReading(name))
        if lines := _LINES().fullmatch(name):
            first = max(int(lines[2]), 1)
            readings.append(MentionReading(lines[1], first, max(int(lines[3] or first), first)))
    return tuple(readings)


def looks_like_path(name: str) -> bool:
    """Return whether a mention can only be a path: decorators (`@app.route`) and packages (`@types/node`) can not."""
    return name.startswith(("/", "./", "../", "~/")) or _FILE_NAME().fullmatch(name) is not None


def is_picture_name(path: str) -> bool:
    """Return whether a file of this name should be a picture."""
    return _PICTURE_NAME().search(path) is not None


def _path_of(single: str | None, double: str | None, bare: str | None) -> str:
    text = single or double or re.sub(r"\\(.)", r"\1", bare or "")
    if not text.startswith("file://"):
        return text
    from urllib.parse import unquote  # few paths are addresses

    return unquote(text.removeprefix("file://"))


def mention_of(path: str) -> str:
    """Write the mention of a path, as `security.names.shown_name` spells it, or "" where it would be read as another one's.

    It needs quotes where it holds spaces, or a second @.
    """
    if path.startswith(("~", "$")):  # only there do they mean something else
        path = f"./{path}"
    quoted = '@"' + path.replace('"', '\\"') + '"'
    ways = (quoted,) if _NEEDS_QUOTES().search(path) else (f"@{path}", quoted)

    def is_it(way: str) -> bool:
        read = named_in(f"{way} and")
        first = [each.readings[0] for each in read.mentions]
        return first == [MentionReading(path)] and not read.pictures

    return next(filter(is_it, ways), "")


def open_mention(line: str) -> tuple[str, int] | None:
    """Return the unfinished mention at the end of a line: its text, and its length with @ and quote."""
    found = _OPEN().search(line)
    if found is None:
        return None
    quoted, bare = found.groups()
    return (bare if quoted is None else quoted.replace('\\"', '"')), len(found[0])
