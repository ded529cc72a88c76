"""The edits that a request may mean, as a grammar: a line that it is about, and what becomes of it."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from ybs.agent.small_models.grammar import as_json, call_of, inside, literal
from ybs.agent.small_models.intents import intent_of
from ybs.agent.small_models.mentions import files_in, without_commands
from ybs.agent.small_models.topics import is_topic
from ybs.core.lazy import lazy

#: In longer files any text may be the one to replace.
MOST_LINES: Final = 80
#: Words that say what a line is about: names, numbers and longer words.
_WORD = lazy(r"\w*[A-Z_\d]\w*|\w{4,}")
_SIGN = lazy(r"\w")
_IDENTIFIER = lazy(r"\b[A-Za-z_]\w{2,}\b")
_SIGNS = lazy(r"[\s#*>-]*(?=\w)")
_BLANKS: Final = lazy(r"(?i)\b(?:blanks?|indent\w*|spaces?|tabs?|whitespace)\b")
#: What is added within a line, not as one.
_WITHIN: Final = lazy(
    r"(?i)\b(?:argument|attribute|brace|bracket|character|colon|comma|dot|parameter|parenthes[ie]s|period|prefix|quote|quotation"
    r"|semicolon|space|suffix)s?\b|\bput\b.*\bright\b"
)
_NEWLINE: Final = "\n"
#: What is added: one line, or several.
ONE_LINE: Final = "line end"
LINES: Final = "lines end"
_EVERYWHERE: Final = '","replace_all":true}}\n```'
_END: Final = '"}}\n```'


class ReadFile(Struct, frozen=True):
    """What was read of a file, and whether that goes to its end."""

    path: str
    lines: Sequence[str]
    is_whole: bool = True


def edit_of(file: ReadFile, words: str, tried: Container[str], added: str) -> str:
    """Return the grammar of an edit that replaces a line of a file by another one, takes it away, or adds some below it.

    What a line begins with before its first word stays, such as the sign of a heading or a list.
    What ends with a colon or comma still does: a model of this size goes on with the line below it, or forgets the comma.
    What was `tried` in vain is left out; `added` is the grammar of what is added. Nothing where its place is not known.
    """
    lines = [line for line in file.lines if line.strip()]
    if not 0 < len(lines) <= MOST_LINES:
        return call_of("edit_file", path=[file.path], old_text=(), new_text=())
    head = f'```json\n{{"name":"edit_file","arguments":{{"path":{as_json(file.path)},"old_text":"'
    intent = intent_of(words)
    if intent == "rename" and (names := list(names_in_both(words, file.lines))):
        olds = " | ".join(literal(f'{name}","new_text":"') for name in names)
        return f"{literal(head)} ({olds}) name {literal(_EVERYWHERE)}"
    every = [old for old in _unique(file.lines, range(len(file.lines)), words) if old not in tried]
    if _adds_lines(words):
        olds = _tails(file, tried) if intent == "append" else every
        places = [f"{_pair(old, old + _NEWLINE)} {added}" for old in olds]
    else:
        about = _about(words, file.lines)
        olds = [old for old in _unique(file.lines, about, words) if old not in tried]
        olds = [old for old in olds or every if re.search(_SIGN(), old)] or every
        places = [_changed(old, keeps_beginning=not _is_about_blanks(words)) for old in olds]
        if intent == "remove":
            places += [_pair(old + _NEWLINE, "") for old in olds]
    if not places and intent == "append":
        return ""
    if not places:
        return call_of("edit_file", path=[file.path], old_text=(), new_text=())
    return f"{literal(head)} ({' | '.join(places)}) {literal(_END)}"


def _tails(file: ReadFile, tried: Container[str]) -> list[str]:
    """Return the last line of a file that was read to its end, with as many of those above it as it takes to be found once."""
    whole = "\n".join(file.lines).rstrip()
    if not file.is_whole:
        return []
    lines = whole.split("\n")
    tails = ("\n".join(lines[-count:]).lstrip() for count in range(1, len(lines) + 1))
    tail = next((tail for tail in tails if tail and whole.count(tail) == 1), "")
    return [tail] if tail and tail not in tried else []


def _changed(old: str, *, keeps_beginning: bool) -> str:
    """Return the grammar of another first line; those below it only tell which one is meant, and stay."""
    first, line_end, others = old.partition(_NEWLINE)
    begin = _beginning(first) if keeps_beginning else ""
    kept = f" {literal(inside(line_end + others))}" if others else " end"
    return f"{_pair(old, begin)} {_rest(first)}{kept}"


def _pair(old: str, new: str) -> str:
    """Return the grammar of what is replaced, and of what the new text begins with."""
    return literal(f'{inside(old)}","new_text":"{inside(new)}')


def _rest(old: str) -> str:
    """Return the grammar of what follows the beginning of a new line."""
    if old.endswith(":"):
        return " ".join(["part"] * old.count(":"))
    return 'line ","' if old.endswith(",") else "line"


def _adds_lines(words: str) -> bool:
    """Return whether lines are to be added to those there are, rather than something within one."""
    intent = intent_of(words)
    return intent == "append" or (intent == "add" and not re.search(_WITHIN(), words))


def _is_about_blanks(words: str) -> bool:
    """Return whether it is about blanks, such as an indentation."""
    return re.search(_BLANKS(), words) is not None


def names_in_both(words: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield the names in the words that stand in the lines, and not as a part of another one."""
    text = "\n".join(lines)
    for name in dict.fromkeys(re.findall(_IDENTIFIER(), without_commands(words))):
        if is_topic(name) and len(re.findall(rf"\b{name}\b", text)) == text.count(name) > 0:
            yield name


def _about(words: str, lines: Sequence[str]) -> list[int]:
    """Return the lines that have a word of the request, with the blocks that they begin; where there are none, all.

    Where something is to be put right, it is within such a block.
    """
    words = re.sub("|".join(map(re.escape, files_in(words))) or "$^", " ", without_commands(words))
    asked = set(re.findall(_WORD(), words))
    found = dict[int, None]()
    heads = set[int]()
    block = None
    for place, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if block is not None and line.strip() and depth <= block:
            block = None
        has_word = not asked.isdisjoint(re.findall(_WORD(), line))
        if has_word and line.endswith((":", "{")) and block is None:
            block = depth
            heads.add(place)
        if has_word or block is not None:
            found[place] = None
    within = [place for place in found if place not in heads]
    return within if within and intent_of(words) == "fix" else list(found or range(len(lines)))


def _unique(lines: Sequence[str], places: Iterable[int], words: str) -> Iterator[str]:
    """Yield each of these lines from its first sign, with as many of those below it as it takes to be found once."""
    whole = "\n".join(lines)
    for place in places:
        ends = range(place + 1, len(lines) + 1)
        texts = ("\n".join(lines[place:end]) for end in ends)
        if not _is_about_blanks(words):
            texts = (text.lstrip() for text in texts)
        text = next((text for text in texts if whole.count(text) == 1), "")
        if lines[place].strip() and text:
            yield text


def _beginning(line: str) -> str:
    found = re.match(_SIGNS(), line)
    return found[0] if found else ""
