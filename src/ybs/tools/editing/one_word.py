"""Finds a block that differs from the file in one word of a comment or of a sentence in a string."""

import re

from ybs.tools.editing.lines import Lines
from ybs.tools.editing.prefix import shared
from ybs.tools.editing.spelling import says_enough, spaced

_FEWEST_LINES = 3
_FEW_LINES = 6
_FEWEST_WORDS = 3  # a string of fewer is a key or a name
_MOST_TRIED = 200
_NEARLY = 2  # a place that differs in so many lines casts doubt on one that differs in one
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_STRING = re.compile(r'(?<![\w\\])"((?:[^"\\]|\\.)*)"|(?<![\w\\])\'((?:[^\'\\]|\\.)*)\'')
_OPENERS = ("//", "///", "//!", "#", "##", "#:", "--")
_SCANNED = re.compile(
    r'"""|\'\'\'|(?<!\S)/\*(?=[\s*!])|\*/|//[^\n]*|#[^\n]*|"(?:[^"\\\n]|\\.)*"|(?<!\w)\'(?:[^\'\\\n]|\\.)*\''
)
_QUERY = re.compile(
    r"\b(?:SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|JOIN|CREATE|ALTER|DROP|MATCH|VALUES)\b"
)
_ORDERS = ("+", "@", "-*-")  # `// +build` and its like are for a tool
_CLOSERS = {'"""': '"""', "'''": "'''", "/*": "*/"}


def one_word_off(lines: Lines, wanted: list[str]) -> tuple[list[int], int]:
    """Find the run of solid lines that differs in one word of one line: where it begins, and which line.

    Several runs mean doubt: another place comes as near, or nearly so, be it in code.
    """
    signs = lines.coded(wanted)
    if len(wanted) < _FEWEST_LINES or sum(not sign for sign in signs) > 1:
        return [], -1
    near = [(run, _unlike(lines, run, signs)) for run in _tried(lines, signs)]
    for run, unlike in near:
        if len(unlike) == 1:
            index = unlike[0]
            rest = "".join(line for at, line in enumerate(wanted) if at != index)
            if says_enough(rest) and _is_one_word(lines, lines.solid[run + index], wanted[index]):
                others = [
                    other for other, unlike in near if len(unlike) <= _NEARLY and other != run
                ]
                return [run, *others], index
    return [], -1


def _tried(lines: Lines, signs: list[str]) -> list[int]:
    """List where the run may begin: one part of the block, in thirds, is as the file has it."""
    third = max(len(signs) // 3, 1)
    parts = (0, third), (third, 2 * third), (2 * third, len(signs))
    runs: set[int] = set()
    for start, stop in parts:
        part = signs[start:stop]
        if all(part):
            runs.update(place - start for place in lines.coded_runs("".join(part)))
    inside = sorted(run for run in runs if 0 <= run <= len(lines.solid) - len(signs))
    return inside if len(inside) <= _MOST_TRIED else []


def _unlike(lines: Lines, run: int, signs: list[str]) -> list[int]:
    found: list[int] = []
    for index, sign in enumerate(signs):
        if sign != lines.sign(run + index):
            found.append(index)
            if len(found) > _NEARLY:
                break
    return found


def _is_one_word(lines: Lines, number: int, line: str) -> bool:
    mine, theirs = spaced(line), spaced(lines.all[number])
    head = shared(mine, theirs)
    tail = shared(mine[head:][::-1], theirs[head:][::-1])
    words = [_word_at(text, head, len(text) - tail) for text in (mine, theirs)]
    if not all(words):
        return False
    (start, stop), (other_start, other_stop) = words[0] or (0, 0), words[1] or (0, 0)
    if not _has_neighbour(mine, start, stop):
        return False
    is_alone = mine[:start] == theirs[:other_start] and mine[stop:] == theirs[other_stop:]
    return is_alone and all(
        _is_prose(text, at, lines, number) for text, at in ((mine, start), (theirs, other_start))
    )


def _has_neighbour(line: str, start: int, stop: int) -> bool:
    """Tell whether another word stands right beside this one, as in a sentence."""
    before, after = line[:start], line[stop:]
    return bool(re.search(r"[^\W\d_][,;]? \Z", before) or re.match(r"[,;]? [^\W\d_]", after))


def _word_at(text: str, start: int, stop: int) -> tuple[int, int] | None:
    """Return the one word of letters that holds this stretch; a name with digits or `_` is none."""
    for hit in _WORD.finditer(text):
        if hit.start() <= start and stop <= hit.end():
            around = text[max(hit.start() - 1, 0) : hit.start()] + text[hit.end() : hit.end() + 1]
            is_name = any(
                sign.isalnum() or sign in "_$@{}()[]=<>/\\.:`" for sign in around.rstrip(".")
            )
            return None if is_name else hit.span()
    return None


def _is_prose(line: str, place: int, lines: Lines, number: int) -> bool:
    """Tell whether the place lies in a comment or in a string that reads like a sentence."""
    closer = _open_at(lines.text[: lines.starts[number]])
    if closer != "*/" and _QUERY.search(line):
        return False  # code in a string
    if closer:
        words = _WORD.findall(line.partition(closer)[0])
        return len(words) >= _FEWEST_WORDS and not 0 <= line.find(closer) < place
    if line.startswith(tuple(_CLOSERS)):
        return len(_WORD.findall(line)) >= _FEWEST_WORDS and _closes_after(line, place)
    for hit in _STRING.finditer(line):
        if hit.start() < place < hit.end():
            inside = hit[1] or hit[2] or ""
            return len(_WORD.findall(inside)) >= _FEWEST_WORDS and not set(inside) & set("{$`")
    return any(_is_after(line, place, opener, lines.text) for opener in _OPENERS)


def _is_after(line: str, place: int, opener: str, text: str) -> bool:
    """Tell whether a comment begins before the place; the file must have whole lines of such comments."""
    at = line.find(f"{opener} ", 0, place)
    if at < 0 or (at > 0 and line[at - 1] != " "):
        return False
    if line.startswith(_ORDERS, at + len(opener) + 1):
        return False
    has_quote = any(line.count(quote, 0, at) % 2 for quote in "\"'`")
    own_lines = re.search(rf"^[ \t]*{re.escape(opener)} +\w+ +\w", text, re.MULTILINE)
    enough = len(_WORD.findall(line, at)) >= _FEWEST_WORDS
    return not has_quote and enough and own_lines is not None


def _open_at(before: str) -> str:
    """Return what would end the block comment or long string that is open where the text ends."""
    closer = ""
    for hit in _SCANNED.finditer(before):
        found = hit[0]
        if not closer:
            closer = _CLOSERS.get(found, "")
        elif closer in found and (found == closer or found[0] in "/#\"'"):
            closer = ""
    return closer


def _closes_after(line: str, place: int) -> bool:
    opener = next(opener for opener in _CLOSERS if line.startswith(opener))
    end = line.find(_CLOSERS[opener], len(opener))
    return end < 0 or end > place
