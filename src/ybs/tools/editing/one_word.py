"""Finds a block that differs from the file in one word of a comment or of a sentence in a string."""

import re

from ybs.core.lazy import lazy
from ybs.tools.editing.diff import shared
from ybs.tools.editing.lines import Lines, letters, says_enough, spaced

_FEWEST_LINES = 3
_ENOUGH_LETTERS = 24  # that a block of fewer lines has beside the word
_MOST_TRIED = 200
_NEARLY = 2  # a place that differs in so many lines casts doubt on one that differs in one
_ALIKE = 0.5  # of the words that such lines share


def one_word_off(lines: Lines, wanted: list[str]) -> tuple[list[int], int]:
    """Find the run of solid lines that differs in one word of one line: where it begins, and which line.

    Several runs mean doubt: another place comes as near, or nearly so, be it in code.
    """
    signs = lines.coded(wanted)
    if sum(not sign for sign in signs) > 1:
        return [], -1
    near = [(run, _unlike(lines, run, signs)) for run in _tried(lines, signs, wanted)]
    for run, unlike in near:
        if len(unlike) != 1:
            continue
        index = unlike[0]
        if _is_one_word(lines, lines.solid[run + index], wanted, index):
            others = [
                other
                for other, unlike in near
                if other != run and _comes_near(lines, other, unlike, wanted)
            ]
            return [run, *others], index
    return [], -1


def _tried(lines: Lines, signs: list[str], wanted: list[str]) -> list[int]:
    """List where the run may begin: one part of the block, in thirds, is as the file has it."""
    if len(signs) == 1:
        return _lines_like(lines, wanted[0].strip())
    third = max(len(signs) // 3, 1)
    parts = (0, third), (third, 2 * third), (2 * third, len(signs))
    runs: set[int] = set()
    for start, stop in parts:
        part = signs[start:stop]
        if part and all(part):
            runs.update(place - start for place in lines.coded_runs("".join(part)))
    inside = sorted(run for run in runs if 0 <= run <= len(lines.solid) - len(signs))
    return inside if len(inside) <= _MOST_TRIED else []


def _lines_like(lines: Lines, wanted: str) -> list[int]:
    """List the solid lines that have one half of a line."""
    halves = wanted[: len(wanted) // 2], wanted[len(wanted) // 2 :]
    found = [
        run
        for run, number in enumerate(lines.solid)
        if any(half in lines.all[number] for half in halves)
    ]
    return found if len(found) <= _MOST_TRIED else []


def _comes_near(lines: Lines, run: int, unlike: list[int], wanted: list[str]) -> bool:
    """Return whether a place differs in few lines only, and they have words of the wanted ones."""
    if len(unlike) > _NEARLY:
        return False
    return all(
        _shares_words(wanted[index], lines.all[lines.solid[run + index]]) for index in unlike
    )


def _shares_words(one: str, two: str) -> bool:
    mine, theirs = set(spaced(one).split()), set(spaced(two).split())
    return len(mine & theirs) >= _ALIKE * max(len(mine), len(theirs))


def _unlike(lines: Lines, run: int, signs: list[str]) -> list[int]:
    found: list[int] = []
    for index, sign in enumerate(signs):
        if sign != lines.sign(run + index):
            found.append(index)
            if len(found) > _NEARLY:
                break
    return found


def _is_one_word(lines: Lines, number: int, wanted: list[str], index: int) -> bool:
    mine, theirs = spaced(wanted[index]), spaced(lines.all[number])
    head = shared(mine, theirs)
    tail = shared(mine[head:][::-1], theirs[head:][::-1])
    word, other = (word_at(text, head, len(text) - tail) for text in (mine, theirs))
    if word is None or other is None:
        return False
    above_and_below = "".join(line for at, line in enumerate(wanted) if at != index)
    before, after = mine[: word[0]], mine[word[1] :]
    is_enough = len(wanted) >= _FEWEST_LINES and says_enough(above_and_below)
    if not is_enough and letters(above_and_below + before + after) < _ENOUGH_LETTERS:
        return False
    is_alone = (before, after) == (theirs[: other[0]], theirs[other[1] :])
    return is_alone and is_prose(theirs, other, lines, number)


_FEWEST_WORDS = 3  # a string of fewer is a key or a name
_WORD = lazy(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_STRING = lazy(
    r'(?<![\w\\])[bfru]{0,2}"((?:[^"\\]|\\.)*)"|(?<![\w\\])[bfru]{0,2}\'((?:[^\'\\]|\\.)*)\''
    r"|(?<![\w\\])`((?:[^`\\]|\\.)*)`"
)
_OPENERS = ("//", "///", "//!", "#", "##", "#:", "--", "/*")
_SCANNED = lazy(
    r'"""|\'\'\'|(?<!\S)/\*(?=[\s*!])|\*/|//[^\n]*|#[^\n]*|"(?:[^"\\\n]|\\.)*"|(?<!\w)\'(?:[^\'\\\n]|\\.)*\''
)
_QUERY = lazy(r"\b(?:SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|JOIN|CREATE|ALTER|DROP|MATCH|VALUES)\b")
_ORDERS = ("+", "@", "-*-")  # `// +build` and its like are for a tool
_CLOSERS = {'"""': '"""', "'''": "'''", "/*": "*/"}
_TEXT_WORD = lazy(r"[(\"'*_>\[]*[^\W\d_]+(?:['\u2019-][^\W\d_]+)*[)\"'*_,.;:!?\]]*")
#: Words of sentences that no programming language has, and words that one may have.
_SAID = """
the an of this that you your are be been will its it have has should must does we they there these those which was were can may would
could also their
"""
_SAID_TOO = "a and as by for from in is not on or to with"
_TELLING = frozenset(_SAID.split())
_MORE_TELLING = _TELLING.union(_SAID_TOO.split())
_ITEM = lazy(r"\s*(?:[*+>-]|\d+[.)])\s+[A-Z]")  # a list item or a quotation
_NO_TEXT = lazy(
    r"^\s*(?:#+|//+|--) *[+@]|[;{}=(]\s*\Z|\s(?://|#|--|/\*)\s|[=!<>]=|[-=]>|&&|\|\||::"
)


def word_at(text: str, start: int, stop: int) -> tuple[int, int] | None:
    """Return the one word of letters that holds this part of a line; None if it is a name or a part of one."""
    for hit in _WORD().finditer(text):
        if hit.start() <= start and stop <= hit.end():
            before, after = text[: hit.start()], text[hit.end() :]
            is_open = before.endswith((" (", "\t(")) or before == "("
            is_closed = after.startswith(")") and re.search(r"(?:^|\s)\([^()]*\Z", before)
            rest = after[1:] if is_closed else after
            is_end = re.match(r"\.(?!\w)|:(?:[\s\"']|\Z)", rest)
            around = (before[:-1] if is_open else before)[-1:] + ("" if is_end else rest[:1])
            is_name = any(sign.isalnum() or sign in "_$@{}()[]=<>/\\.:`" for sign in around)
            return None if is_name else hit.span()
    return None


def is_prose(line: str, word: tuple[int, int], lines: Lines, number: int) -> bool:
    """Return whether a word, from its beginning to its end, is one of a sentence in this line of the file."""
    return _has_neighbour(line, *word) and (
        _is_set_apart(line, word[0], lines, number) or _is_text(line, word[0])
    )


def _has_neighbour(line: str, start: int, stop: int) -> bool:
    """Return whether another word stands right beside this one, as in a sentence."""
    before, after = line[:start], line[stop:]
    is_after = re.search(r"[^\W\d_][,;:.)\"']* [(\"']?\Z", before)
    return bool(is_after or re.match(r"[,;:.)\"']* [(\"']?[^\W\d_]", after))


def _is_text(line: str, place: int) -> bool:
    """Return whether the place is among plain words, and the line has words that only sentences have."""
    tokens = list(re.finditer(r"\S+", line))
    at = next(index for index, token in enumerate(tokens) if token.end() > place)
    are_plain = [_TEXT_WORD().fullmatch(token[0]) is not None for token in tokens]
    first, last = at, at
    while first > 0 and are_plain[first - 1]:
        first -= 1
    while last < len(tokens) - 1 and are_plain[last + 1]:
        last += 1
    telling = _MORE_TELLING if _ITEM().match(line) else _TELLING
    near = {token[0].strip("(*_,.;:!?)").lower() for token in tokens[first : last + 1]}
    if last - first + 1 < _FEWEST_WORDS or not are_plain[at]:
        return False
    if _NO_TEXT().search(line) or _QUERY().search(line) or _string_at(line, place):
        return False
    told = {token[0].lower() for token, is_plain in zip(tokens, are_plain, strict=True) if is_plain}
    return not near.isdisjoint(telling) or len(told & telling) > 1


def _is_set_apart(line: str, place: int, lines: Lines, number: int) -> bool:
    """Return whether the place lies in a comment or in a string that reads like a sentence."""
    closer = _open_at(lines.text[: lines.starts[number]])
    is_query = _QUERY().search(line) is not None  # code in a string
    if closer:
        words = _WORD().findall(line.partition(closer)[0])
        is_long = len(words) >= _FEWEST_WORDS and not (is_query and closer != "*/")
        return is_long and not 0 <= line.find(closer) < place
    if line.startswith(tuple(_CLOSERS)):
        return len(_WORD().findall(line)) >= _FEWEST_WORDS and _closes_after(line, place)
    if hit := _string_at(line, place):
        inside = hit[1] or hit[2] or hit[3] or ""
        is_told = hit[3] is None or not _TELLING.isdisjoint(inside.split())
        return (
            is_told and not is_query and _is_message(inside, place - hit.start(hit.lastindex or 0))
        )
    return any(_is_after(line, place, opener, lines.text) for opener in _OPENERS)


def _string_at(line: str, place: int) -> re.Match[str] | None:
    return next((hit for hit in _STRING().finditer(line) if hit.start() < place < hit.end()), None)


def _is_message(inside: str, place: int) -> bool:
    """Return whether the place in a string is one of a sentence, not of what a program puts in."""
    before = inside[:place]
    is_inserted = before.count("{") > before.count("}") or before.count("`") % 2
    return len(_WORD().findall(inside)) >= _FEWEST_WORDS and not is_inserted


def _is_after(line: str, place: int, opener: str, text: str) -> bool:
    """Return whether a comment begins before the place; the file must have whole lines of such comments."""
    at = line.find(f"{opener} ", 0, place)
    if opener == "/*":
        return at > 0 and line[at - 1] == " " and line.find("*/", at) > place
    if at < 0 or (at > 0 and line[at - 1] != " "):
        return False
    if line.startswith(_ORDERS, at + len(opener) + 1):
        return False
    has_quote = any(line.count(quote, 0, at) % 2 for quote in "\"'`")
    own_lines = re.search(rf"^[ \t]*{re.escape(opener)} +\w\S* +\w", text, re.MULTILINE)
    enough = len(_WORD().findall(line, at)) >= _FEWEST_WORDS
    return not has_quote and enough and own_lines is not None


def _open_at(before: str) -> str:
    """Return the end mark of the block comment or long string that is open at the end of the text."""
    closer = ""
    for hit in _SCANNED().finditer(before):
        found = hit[0]
        if not closer:
            closer = _CLOSERS.get(found, "")
        elif closer in found:
            closer = ""
    return closer


def _closes_after(line: str, place: int) -> bool:
    opener = next(opener for opener in _CLOSERS if line.startswith(opener))
    end = line.find(_CLOSERS[opener], len(opener))
    return end < 0 or end > place
